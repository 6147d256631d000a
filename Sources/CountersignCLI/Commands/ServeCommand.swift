// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignChallenges
import CountersignAddresses
import CountersignHome
import CountersignNIO
import CountersignCLinux
import CountersignEvents
import CountersignProxy
import CountersignReporting
import CountersignRouting
import CountersignVault
import FoundationEssentials
import Glibc

/// `countersign serve`.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the proxy in the foreground.",
        discussion: """
            Prints `countersign: listening on ADDRESS` for each address when it accepts connections, and notifies \
            systemd (Type=notify). Changes to the home take effect within a second or two; SIGHUP reloads everything and \
            opens the access log and the audit again, as logrotate needs it. On SIGUSR2, a new process takes the sockets over without \
            refusing a connection, and this one ends when its clients have been served. On SIGTERM and SIGINT, requests in progress get 10 seconds to finish; a second signal stops immediately.

            Only processes of your own user may use the proxy, and those of --allow-user. Others get a 403. If the vault needs a passphrase and there is no \
            terminal to ask for it, the proxy starts with a locked vault and answers no challenge until `countersign \
            vault unlock`.

            With socket activation by systemd, listens on the sockets of the unit in place of --listen.

            The token in --client-token-file has at least 16 characters from A-Z a-z 0-9 _ -, and only you may be able \
            to read the file. In a file with several tokens, each line is NAME TOKEN; for=token:NAME in the list of \
            sites names the clients that send it. for=socket:NAME names those of --listen unix:PATH, whose file name \
            without its extension is NAME.

            A fault of its own ends the server at once, so that a service manager starts it again. With \
            COUNTERSIGN_BACKTRACE=1 in its environment, the Swift runtime prints a backtrace before, which contains \
            memory, if SWIFT_BACKTRACE enables that.

            EXAMPLES:
              countersign serve
              countersign serve --listen 127.0.0.1:0 --access-log -
              countersign serve --listen unix:/run/user/1000/countersign.sock
              countersign serve --parent pac:http://pac.corp.example/proxy.pac --parent direct
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var logOptions: AccessLogOptions

    @Option(
        help: ArgumentHelp(
            "Listen on HOST:PORT, a loopback address (port 0: any free port), or on unix:PATH; may be repeated. "
                + "(default: 127.0.0.1:3128)",
            valueName: "address"))
    var listen: [String] = []

    @Flag(
        help:
            "Allow non-loopback addresses. Requires --client-token-file; disables the same-user check.")
    var unsafeListen = false

    @Option(
        help: ArgumentHelp(
            "Require clients to send the token in this file's first line, or one of those in its lines NAME TOKEN, as "
                + "the password of the proxy URL.",
            valueName: "file"))
    var clientTokenFile: String?

    @Option(help: ArgumentHelp("Wait this long for the first byte of a response.", valueName: "seconds"))
    var originTimeout: UInt64 = 300

    @Option(help: ArgumentHelp("Run this many event loops. (default: one per core, at most two)", valueName: "n"))
    var threads: Int?

    @Flag(
        help: """
            Let commands such as `credential set` ask for the vault's passphrase, even while this server has the vault \
            open. (default: it performs them)
            """)
    var askPassphrase = false

    @Flag(
        help: """
            If a site requires a scope that the access token of a sign-in does not have, or a stronger sign-in, ask you \
            for it in your browser, once. Has no effect in a service. (default: the response says which command asks)
            """)
    var askScopes = false

    @Flag(
        help: """
            Answer nothing: decide about each challenge, and report in the log, in `watch` and in Proxy-Status what \
            would have been answered.
            """)
    var dryRun = false

    @Flag(
        help: """
            Do not ask with a notification of the desktop whether a request that waits (approve=) is permitted. \
            (default: ask, if there is a session bus)
            """)
    var noNotify = false

    @OptionGroup var auditOptions: AuditOptions
    @OptionGroup var logging: LoggingOptions
    @OptionGroup var allowedUsers: AllowedUserOption
    @OptionGroup var spool: SpoolOption
    @OptionGroup var localNames: LocalNamesOption
    @OptionGroup var http2: HTTP2Option
    @OptionGroup var parents: ParentOptions

    @OptionGroup var secrets: SecretOption

    func validate() throws {
        let addresses = try addresses()
        guard (1...86_400).contains(originTimeout) else {
            throw ValidationError("--origin-timeout must be 1 to 86400 seconds, not \(originTimeout)")
        }
        if let threads, !(1...64).contains(threads) {
            throw ValidationError("--threads must be 1 to 64, not \(threads)")
        }
        guard !unsafeListen || clientTokenFile != nil else {
            throw ValidationError("--unsafe-listen requires --client-token-file")
        }
        for address in addresses where !address.isLocal && !unsafeListen {
            throw ValidationError(
                "--listen \(address.text) is not a loopback address: pass --unsafe-listen and --client-token-file"
            )
        }
    }

    private func addresses() throws -> [ListenAddress] {
        try (listen.isEmpty ? ["127.0.0.1:3128"] : listen).map(ListenAddress.init(parsing:))
    }

    func run() async throws {
        let inherited = try InheritedSockets.take(permitsNetwork: unsafeListen)
        if let inherited, !inherited.replacesProcess, !listen.isEmpty {
            throw ValidationError("--listen and the sockets of the service manager exclude each other")
        }
        let home = try homeOption.locatedOrNew()
        let console = logging.logger
        let watchers = ServeWatchers(audit: auditOptions.recorder(home) { console.error("\($0)") }) {
            console.notice("\($0)")
        }
        let logger = logging.logger(telling: watchers.events)
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = try inherited?.addresses ?? addresses().map(\.address)
        configuration.originTimeoutSeconds = originTimeout
        configuration.clientTokens = try clientTokenFile.map { try ClientTokenFile(path: $0).read() } ?? []
        configuration.requiresSameUser = !unsafeListen
        configuration.allowedUsers = try allowedUsers.numbers()
        spool.apply(to: &configuration, home)
        configuration.permitsLocalNames = localNames.allowLocal
        configuration.speaksHTTP2 = !http2.isOff
        let log = try logOptions.open(logger)
        let access = VaultAccess(home: home, secrets: secrets.input)
        let routes = try await parents.loadedFinder(home)
        Startup.reportHardening()
        let keeper = try PolicyKeeper(
            home: home, interception: .whenNeeded, environment: ProcessInfo.processInfo.environment, logger: logger,
            events: watchers.events, approvals: watchers.approvals.board, isDryRun: dryRun, now: { Int64(time(nil)) },
            again: inherited?.replacesProcess == true ? nil : access.again,
            passphrase: { () throws in
                guard inherited?.replacesProcess != true else {
                    throw VaultError(.passphraseNeeded, "the vault is locked, as it was in the former process")
                }
                return try access.passphrase()
            })
        ParentOptions.answerParents(with: keeper, logger: logger)
        Self.warn(about: keeper)
        if dryRun { Console.warning("nothing is answered, because of --dry-run") }
        // The process that this one replaces may still have it.
        if inherited?.replacesProcess != true { try watchers.audit?.open(with: keeper.vault) }
        if watchers.audit != nil, keeper.vault == nil {
            Console.log("info", "the audit begins when the vault is there and open, with the first credential")
        }
        let watch = EndingWarnings.start(keeper)
        Self.raiseFileLimit()
        Self.keepMemoryOfBodies()
        let environment = ProcessInfo.processInfo.environment
        let person = askScopes ? PersonAtHand(in: environment) : nil
        if askScopes, person == nil {
            Console.warning("--ask-scopes has no effect: there is nobody to ask, without a display and a terminal")
        }
        let scopes = person.map { $0.scopeRequests(keeper, logger) }
        let runtime = try await ProxyRuntime(
            keeper: keeper, configuration: configuration, accessLog: log, threads: threads ?? Self.defaultThreads,
            hasControlSocket: true, inheritedControlSocket: inherited?.control,
            isAccepting: inherited?.replacesProcess != true,
            reporter: askPassphrase ? nil : Self.reporter(routes),
            clientTokenFile: clientTokenFile.flatMap(HomeFile.absolutePath), scopeRequests: scopes, routes: routes,
            version: ProductVersion.short,
            watchers: watchers.watchers(of: keeper, routes), logger: logger)
        watchers.addresses.set(runtime.addresses)
        for name in runtime.addresses { Console.result("countersign: listening on \(name)\n") }
        if isatty(STDERR_FILENO) == 1 { Self.sayHowToUse(watchers.addresses) }
        if let inherited, inherited.replacesProcess {
            await inherited.takeOver()
            await runtime.setAccepting(true)
        } else {
            // A process that is replaced reports that itself: systemd listens only to the main process.
            ServiceManager.notify("READY=1")
        }
        let askers = PersonAskers(
            watchers.approvals, notifies: !noNotify, usesTerminal: logging.logFormat == .text,
            environment: environment, logger: logger)
        let upkeep = Task { await routes?.run() }
        let auditing = watchers.audit?.keepOpening(with: keeper, logger)
        defer {
            askers.stop()
            upkeep.cancel()
            auditing?.cancel()
            watchers.audit?.close()
            watch.cancel()
        }
        await Self.waitForStop(runtime, log, watchers.audit, keeper, routes, askers)
    }

    /// For the person who has started it in a terminal.
    private static func sayHowToUse(_ addresses: ListeningAddresses) {
        Console.log("info", "shells use it after: eval \"$(countersign env)\"")
        guard let address = addresses.forBrowsers else { return }
        Console.log("info", "browsers use it with the automatic proxy configuration http://\(address)/proxy.pac")
    }

    /// Reports what is not answered, and why.
    private static func warn(about keeper: PolicyKeeper) {
        if let shut = keeper.vaultErrorAtStart {
            Console.warning("\(shut.detail); challenges are not answered", hint: "run `countersign vault unlock`")
        }
        if keeper.policy.current.sites.isReallyEmpty { SiteReports.noneListed(in: keeper.home) }
        if keeper.home.isPaused { Console.warning(Refusal.paused.text) }
        SiteReports.write(keeper.remarks)
    }

    /// Answers for `explain` and `test`.
    private static func reporter(_ routes: RouteFinder?) -> PolicyReporter {
        { question, keeper, isAbandoned in
            switch question {
            case .explain(let url, let method, let client):
                let route = try Blocking.run { try await RouteHop.all(to: url, routes) }
                return try ExplainCommand.report(
                    try AbsoluteURL(parsing: url, defaultScheme: .https), method, client, keeper, route: route)
            case .test(let url):
                let url = try AbsoluteURL(parsing: url, defaultScheme: .https)
                return try Blocking.run(isAbandoned: isAbandoned) { try await TestCommand.report(url, keeper, routes) }
            }
        }
    }

    private enum Event: Sendable {
        case signal(SignalWatch.Arrival)
        /// ``Replacement/begin()`` has permitted it.
        case restart
        case replaced(Replacement.Outcome)
        case stopped
    }

    /// Handles signals; returns after the proxy has stopped.
    private static func waitForStop(
        _ runtime: ProxyRuntime, _ log: AccessLog?, _ audit: AuditRecorder?, _ keeper: PolicyKeeper,
        _ routes: RouteFinder?, _ askers: PersonAskers
    ) async {
        let (events, event) = AsyncStream.makeStream(of: Event.self)
        let signals = Task {
            for await arrival in SignalWatch.arrivals() { event.yield(.signal(arrival)) }
        }
        defer { signals.cancel() }
        let replacement = Replacement(keeper)
        keeper.setRestarter { () throws(CountersignError) in
            try replacement.begin()
            event.yield(.restart)
        }
        var (isStopping, hasSuccessor, isHastened) = (false, false, false)
        for await next in events {
            switch next {
            case .signal(let arrival) where arrival.number == SIGHUP:
                runtime.reload()
                reopen(log)
                reopen(audit)
                Task { for fault in await routes?.load() ?? [] { Console.log("warning", fault) } }
            case .signal(let arrival) where arrival.number == SIGUSR2:
                if !isStopping, !hasSuccessor { requestRestart(keeper) }
            case .signal where hasSuccessor && !isHastened:
                isHastened = true
                runtime.hasten()
            case .signal(let arrival) where isStopping || hasSuccessor:
                _exit(128 + arrival.number)
            case .signal:
                isStopping = true
                // The next signal ends the process at once.
                askers.leaveTerminal()
                ServiceManager.notify("STOPPING=1")
                replacement.cancel()
                Task {
                    await runtime.stop()
                    event.yield(.stopped)
                }
            case .restart:
                guard !isStopping else { continue }
                ServiceManager.notify("RELOADING=1\nMONOTONIC_USEC=\(monotonicMicroseconds)")
                Task { event.yield(.replaced(await replacement.run(runtime))) }
            case .replaced(.failed(let reason)):
                guard !isStopping else { continue }
                ServiceManager.notify("READY=1")
                Console.warning("the restart has failed, and this process goes on: \(reason)")
            case .replaced(.ready(let process)):
                if isStopping {
                    kill(process, SIGTERM)
                    continue
                }
                hasSuccessor = true
                askers.handOver()
                ServiceManager.notify("MAINPID=\(process)\nREADY=1")
                Console.log("info", "process \(process) has taken over")
                Task {
                    try? await Task.sleep(for: auditPatience)
                    audit?.close()
                }
                Task {
                    await runtime.handOver()
                    await runtime.stop()
                    event.yield(.stopped)
                }
            case .stopped: return
            }
        }
    }

    /// How long requests in progress may take until their uses of credentials are no longer recorded here: the process
    /// that replaces this one waits for the audit.
    private static let auditPatience = Duration.seconds(10)

    private static func requestRestart(_ keeper: PolicyKeeper) {
        do throws(CountersignError) {
            try keeper.restart()
        } catch {
            Console.warning("there is no restart: \(error.detail)", hint: error.hint)
        }
    }

    private static var monotonicMicroseconds: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000_000 + time.tv_nsec / 1000
    }

    private static func reopen(_ log: AccessLog?) {
        do {
            try log?.reopen()
        } catch {
            Console.warning("\(error.detail); it stays in the old file")
        }
    }

    private static func reopen(_ audit: AuditRecorder?) {
        do {
            try audit?.reopen()
        } catch {
            Console.warning("\(error.detail); it stays in the old file", hint: error.hint)
        }
    }

    static var defaultThreads: Int { max(1, min(2, ProcessInfo.processInfo.activeProcessorCount)) }

    /// A request body that is buffered for replay takes up to 1 MiB for milliseconds. By default the C library returns
    /// that memory to the kernel each time, and the kernel zeroes the pages again for the next body.
    private static func keepMemoryOfBodies() {
        csn_mallopt(8 << 20, 1 << 20)
    }

    /// Raises the soft limit of open files to the hard limit, at most 65,536.
    private static func raiseFileLimit() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < min(limit.rlim_max, 65_536) else { return }
        limit.rlim_cur = min(limit.rlim_max, 65_536)
        _ = setrlimit(resource, &limit)
    }
}
