// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignHome
import CountersignNIO
import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignDemo
import CountersignIssuer
import CountersignProxy
import CountersignVault
import Dispatch
import FoundationEssentials
import Glibc
import NIOPosix

/// `countersign demo`.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Run the proxy with local test sites that challenge it.",
        discussion: """
            Starts six sites under demo.localhost: one with Basic, one with NTLM and channel binding, one that \
            requires a client certificate, an open one, one whose certificate does not verify, and one that requires \
            a token of an OAuth 2.0 provider, which the demo starts too. The sites verify the answers. Enrols \
            credentials named `demo` for them and starts the proxy. Shows one request of each kind, prints commands \
            to paste, and runs until Ctrl-C. With the profile that it writes into the home, `countersign enroll PROFILE` \
            signs you in at the provider as `demo-sign-in`. Removes all that from the home when it ends.

            EXAMPLES:
              countersign demo
              countersign demo --home . --listen 127.0.0.1:0
            """)

    @OptionGroup var homeOption: HomeOption

    @Option(
        help: ArgumentHelp(
            "Listen on this address. (default: 127.0.0.1:3128, or a free port if that is in use)", valueName: "address")
    )
    var listen: String?

    @OptionGroup var secrets: SecretOption

    func run() async throws {
        let home = try homeOption.locatedOrNew()
        let access = VaultAccess(home: home, secrets: secrets.input)
        let now = Int64(time(nil))
        let demoHome = DemoHome(home: home, vault: try access.openOrCreate())
        try demoHome.refuseToReplace()
        demoHome.signOut()
        let certificates = try DemoCertificates(named: DemoHome.name, at: now)
        let account = PasswordCredential(
            name: DemoHome.name, user: "demo", password: Secret(utf8: Hex.encode(Randomness.bytes(12))), generation: 1)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var servers: [DemoServer] = []
        let provider = try await IssuerServer.start(
            DemoProvider.settings(account), group: group, now: { Int64(time(nil)) })
        let grant: @Sendable (Secret) -> LocalIssuer.Grant? = { provider.issuer.grant(of: $0, now: Int64(time(nil))) }
        do {
            for kind in DemoSite.Kind.allCases {
                let site = try certificates.site(kind, account: account, at: now, grant: grant)
                servers.append(try await .start(site, group: group))
            }
            try demoHome.list(servers.compactMap { $0.site.line(port: $0.port) })
            for server in servers where server.site.kind == .token {
                try demoHome.write(profile: DemoProvider.profile(issuer: provider.issuer.url, site: server.origin))
            }
            try demoHome.enroll(
                user: account.user, password: account.password, identity: certificates.identity,
                anchor: certificates.sites.root)
            try await show(servers, home, access)
            demoHome.signOut()
            try demoHome.remove()
        } catch {
            demoHome.signOut()
            try? demoHome.remove()
            throw error
        }
        await provider.stop()
        for server in servers { await server.stop() }
        try? await group.shutdownGracefully()
    }

    private func show(_ servers: [DemoServer], _ home: Home, _ access: VaultAccess) async throws {
        let environment = ProcessInfo.processInfo.environment
        let keeper = try PolicyKeeper(
            home: home, interception: .always, environment: environment, logger: ConsoleLogHandler.logger(.warning),
            now: { Int64(time(nil)) }, again: access.again, passphrase: access.passphrase)
        if let shut = keeper.vaultErrorAtStart { throw shut }
        let runtime = try await start(keeper)
        let address = runtime.addresses.first ?? ""
        Console.result("countersign: listening on \(address)\n")
        let client = CurlClient(
            proxy: "http://\(address)", trustPath: home.rootCertificate.path, userAgent: "countersign-demo")
        let page = DemoPage(isColoured: DemoPage.coloursTerminal(environment))
        Console.result(unchanged: page.introduction)
        for server in servers where server.site.kind != .token {
            Console.result(unchanged: page.line(for: server.site.kind, await response(of: server, client)))
        }
        Console.result(unchanged: page.invitation(to: servers.map { ($0.site.kind, $0.url) }, address, home))
        for await arrival in SignalWatch.arrivals() where arrival.number != SIGHUP { break }
        Console.result("\ncountersign: stopping\n")
        await runtime.stop()
    }

    private func start(_ keeper: PolicyKeeper) async throws -> ProxyRuntime {
        let wanted = try ListenAddress(parsing: listen ?? "127.0.0.1:3128")
        guard wanted.isLocal else { throw ValidationError("the demo listens only on loopback addresses") }
        do {
            return try await start(keeper, on: wanted)
        } catch  where listen == nil {
            return try await start(keeper, on: ListenAddress(parsing: "127.0.0.1:0"))
        }
    }

    private func start(_ keeper: PolicyKeeper, on listening: ListenAddress) async throws -> ProxyRuntime {
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [listening.address]
        configuration.drainSeconds = 1
        return try await ProxyRuntime(
            keeper: keeper, configuration: configuration, accessLog: nil, threads: 1, hasControlSocket: false,
            logger: ConsoleLogHandler.logger(.warning))
    }

    private func response(of server: DemoServer, _ client: CurlClient) async -> CurlClient.Response {
        let url = server.url
        return await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: client.get(url)) }
        }
    }
}
