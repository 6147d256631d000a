// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignHome
import CountersignNIO
import CountersignParents
import CountersignReporting
import CountersignRouting
import CountersignVault
import FoundationEssentials
import Glibc
import Logging

/// `--parent` and `--no-proxy`, for commands that run a proxy or print its routes.
struct ParentOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Go out through this parent proxy: http://HOST:PORT, https://HOST, socks5://HOST, socks5h://HOST, "
                + "pac:URL, pac:FILE, wpad (DNS only), system (the desktop's settings, else the proxy variables) or "
                + "direct. May be repeated; the next one is used if "
                + "one cannot be reached. (default: $COUNTERSIGN_PARENT, else direct)",
            valueName: "parent"))
    var parent: [String] = []

    @Option(
        help: ArgumentHelp(
            "Go directly to these hosts, as curl's option of this name. This machine is one of them, unless the list "
                + "contains <-loopback>. (default: $COUNTERSIGN_NO_PROXY, else $no_proxy, else $NO_PROXY)",
            valueName: "hosts"))
    var noProxy: String?

    /// Nil if every connection is direct. Throws ``ParentsError``.
    func finder(_ home: Home) throws(ParentsError) -> RouteFinder? {
        try Self.finder(home, parent, noProxy, ProcessInfo.processInfo.environment)
    }

    /// The hops for a URL by these options; without options, those of the home's running server. Throws
    /// ``ParentsError``.
    func route(to url: String, _ home: Home) throws -> [RouteHop] {
        if !isGiven, let route = try RouteHop.all(to: url, byServerOf: home) { return route }
        let finder = try finder(home)
        return try Blocking.run {
            for fault in await finder?.load() ?? [] { Console.warning(fault) }
            return try await RouteHop.all(to: url, finder)
        }
    }

    /// Whether the command line or a variable contains one of them.
    var isGiven: Bool { !parent.isEmpty || noProxy != nil }

    /// Makes the process's own requests go the same way.
    func loadedFinder(_ home: Home) async throws(ParentsError) -> RouteFinder? {
        let finder = try finder(home)
        for fault in await finder?.load() ?? [] { Console.warning(fault) }
        ControlRoutes.use(finder)
        return finder
    }

    /// Routes the requests of a command without these options by the environment variables, which are read at the first
    /// request.
    static func useVariables(_ environment: [String: String], _ home: Home) {
        guard environment["COUNTERSIGN_PARENT"]?.isEmpty == false else { return }
        ControlRoutes.use { () throws(ParentsError) in
            let finder = try finder(home, [], nil, environment)
            for fault in await finder?.load() ?? [] { Console.warning(fault) }
            return finder
        }
        KeptPassphrase.isWanted = true
        ControlRoutes.relay = ParentRelay(home, logger: ConsoleLogHandler.logger(.warning)) { answersParents in
            let access = VaultAccess(home: home, secrets: SecretInput(isStandardInput: false))
            let keeper = try PolicyKeeper(
                home: home, interception: .never, environment: environment,
                logger: ConsoleLogHandler.logger(.warning), now: { Int64(time(nil)) }, again: access.again,
                passphrase: {
                    guard answersParents else {
                        throw VaultError(.passphraseNeeded, "the vault is not needed for a parent that is not listed")
                    }
                    return try access.passphrase()
                })
            if answersParents, let shut = keeper.vaultErrorAtStart { throw shut }
            return keeper
        }
    }

    /// Makes the process's own requests answer parents with the credentials of `keeper`.
    static func answerParents(with keeper: PolicyKeeper, logger: Logger) {
        KeptPassphrase.isWanted = false
        ControlRoutes.relay = ParentRelay(keeper, logger: logger)
    }

    /// The proxies in the desktop's settings; empty without any.
    static func desktopSettings() -> String {
        guard let pipe = popen("timeout 5 \(DesktopProxies.command) 2>/dev/null", "re") else { return "" }
        defer { pclose(pipe) }
        var output: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4096)
        while case let count = fread(&part, 1, part.count, pipe), count > 0 { output += part[..<count] }
        return String(decoding: output, as: UTF8.self)
    }

    private static func finder(
        _ home: Home, _ parents: [String], _ noProxy: String?, _ environment: [String: String]
    ) throws(ParentsError) -> RouteFinder? {
        let given = parents.isEmpty ? [environment["COUNTERSIGN_PARENT"] ?? ""] : parents
        let settings = try ParentSettings(
            parents: given.filter { !$0.isEmpty }, noProxy: noProxy ?? environment["COUNTERSIGN_NO_PROXY"],
            environment: environment, desktop: desktopSettings)
        guard !settings.sources.isEmpty else { return nil }
        let scripts = ScriptReading(home: home)
        return RouteFinder(settings, storage: scripts.storage, read: scripts.read) { Console.log("warning", $0) }
    }
}
