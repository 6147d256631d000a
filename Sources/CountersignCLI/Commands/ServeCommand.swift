// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignCLinux
import Countersign
import FoundationEssentials
import Glibc
import CountersignProxy

/// `countersign serve`.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the proxy in the foreground.",
        discussion: """
            Prints `countersign: listening on …` for each door once it answers, and tells systemd (Type=notify). What changes in \
            the home is in force within a second or two; SIGHUP reads everything again. SIGTERM and SIGINT let what is in flight \
            finish, for 10 seconds; a second one stops at once.

            Only processes of your own user may use the proxy. Where the vault is opened by a passphrase and nobody is there to \
            give it, the proxy starts with a locked vault and answers nothing until `countersign vault unlock`.

            EXAMPLES:
              countersign serve
              countersign serve --listen 127.0.0.1:0 --access-log -
              countersign serve --listen unix:/run/user/1000/countersign.sock
            """)

    @OptionGroup var homeOption: HomeOption

    @Option(
        help: ArgumentHelp(
            "A door: HOST:PORT on a loopback address (port 0: a free one), or unix:PATH. May be repeated.",
            discussion: "Default: 127.0.0.1:3128.", valueName: "door"))
    var listen: [String] = []

    @Flag(
        help:
            "Allow doors that other machines reach. Needs --client-token-file, and asks nobody whose process they are.")
    var unsafeListen = false

    @Option(
        help: ArgumentHelp(
            "Serve only clients that send the token in this file's first line, as the password of a proxy URL.",
            discussion: "16 characters or more of A-Z a-z 0-9 _ -; the file must be yours alone.", valueName: "file"))
    var clientTokenFile: String?

    @Option(help: ArgumentHelp("Append a JSON object a request to this file; - is standard output.", valueName: "file"))
    var accessLog: String?

    @Option(help: ArgumentHelp("How long an origin may take to its first byte.", valueName: "seconds"))
    var originTimeout: UInt64 = 300

    @Option(help: ArgumentHelp("Event loops. Default: one a core, two at most.", valueName: "n"))
    var threads: Int?

    @OptionGroup var secrets: SecretOption

    func validate() throws {
        let doors = try doors()
        guard (1...86_400).contains(originTimeout) else {
            throw ValidationError("--origin-timeout is 1 to 86400 seconds, not \(originTimeout)")
        }
        if let threads, !(1...64).contains(threads) { throw ValidationError("--threads is 1 to 64, not \(threads)") }
        guard !unsafeListen || clientTokenFile != nil else {
            throw ValidationError("--unsafe-listen needs --client-token-file")
        }
        for door in doors where !door.isLocal && !unsafeListen {
            throw ValidationError(
                "--listen \(door.text) can be reached from other machines; that takes --unsafe-listen and --client-token-file"
            )
        }
    }

    private func doors() throws -> [ListenAddress] {
        try (listen.isEmpty ? ["127.0.0.1:3128"] : listen).map(ListenAddress.init(parsing:))
    }

    func run() async throws {
        let home = try homeOption.located()
        let logger = ConsoleLogHandler.logger()
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = try doors().map(\.door)
        configuration.originTimeoutSeconds = originTimeout
        configuration.clientToken = try clientTokenFile.map { try ClientTokenFile(path: $0).read() }
        configuration.requiresSameUser = !unsafeListen
        let log = try accessLog.map { path throws in try AccessLog(path: path) }
        let door = VaultDoor(home: home, secrets: secrets.input)
        Startup.reportHardening()
        let keeper = try PolicyKeeper(
            home: home, interception: .whenNeeded, environment: ProcessInfo.processInfo.environment, logger: logger,
            now: { Int64(time(nil)) }, passphrase: door.passphrase)
        if let shut = keeper.vaultErrorAtStart {
            Console.warning("\(shut.detail); challenges are not answered", hint: "`countersign vault unlock` opens it")
        }
        Self.raiseFileLimit()
        Self.keepMemoryOfBodies()
        let runtime = try await ProxyRuntime(
            keeper: keeper, configuration: configuration, accessLog: log, threads: threads ?? Self.defaultThreads,
            hasControlSocket: true, logger: logger)
        for name in runtime.addresses { Console.result("countersign: listening on \(name)\n") }
        ServiceManager.notify("READY=1")
        await Self.waitForStop(runtime)
    }

    /// Returns when everything is closed.
    private static func waitForStop(_ runtime: ProxyRuntime) async {
        var stopping: Task<Void, Never>?
        let (stopped, finish) = AsyncStream.makeStream(of: SignalWatch.Arrival?.self)
        let signals = Task {
            for await arrival in SignalWatch.arrivals() { finish.yield(arrival) }
        }
        defer { signals.cancel() }
        for await arrival in stopped {
            guard let arrival else { return }
            if arrival.number == SIGHUP {
                runtime.reload()
            } else if stopping == nil {
                ServiceManager.notify("STOPPING=1")
                stopping = Task {
                    await runtime.stop()
                    finish.yield(nil)
                }
            } else {
                _exit(128 + arrival.number)
            }
        }
    }

    static var defaultThreads: Int { max(1, min(2, ProcessInfo.processInfo.activeProcessorCount)) }

    /// A body that is kept for another try takes a megabyte for milliseconds. By default the C library returns it to the system
    /// each time, and gets it back as pages that have to be zeroed.
    private static func keepMemoryOfBodies() {
        csn_mallopt(8 << 20, 1 << 20)
    }

    /// As many open files as the system lets this user have, up to 65,536.
    private static func raiseFileLimit() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < min(limit.rlim_max, 65_536) else { return }
        limit.rlim_cur = min(limit.rlim_max, 65_536)
        _ = setrlimit(resource, &limit)
    }
}
