// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignCertificates
import CountersignChallenges
import Countersign
import CountersignCryptography
import Dispatch
import FoundationEssentials
import Glibc
import NIOPosix
import CountersignProxy
import CountersignSitePolicy
import CountersignVault

/// `countersign demo`.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Run the proxy in front of loopback sites that challenge it.",
        discussion: """
            Starts five sites under demo.localhost that truly challenge and verify (Basic, NTLM with channel binding, a client \
            certificate, an open one, and one whose certificate nobody trusts), enrols what they ask for under the name `demo`, \
            and runs the proxy in front of them. Shows one answered request of each kind, prints curl lines to paste, and stays \
            up until Ctrl-C. Everything named `demo` is taken out of the home again when it ends.

            EXAMPLES:
              countersign demo
              countersign demo --home . --listen 127.0.0.1:0
            """)

    @OptionGroup var homeOption: HomeOption

    @Option(
        help: ArgumentHelp(
            "Where the proxy listens. Default: 127.0.0.1:3128, or a free port where that is taken.", valueName: "door"))
    var listen: String?

    @OptionGroup var secrets: SecretOption

    func run() async throws {
        let home = try homeOption.located()
        let door = VaultDoor(home: home, secrets: secrets.input)
        let now = Int64(time(nil))
        let demoHome = DemoHome(home: home, vault: try door.openOrCreate())
        try demoHome.refuseToReplace()
        let authorities = try DemoAuthorities(named: DemoHome.name, at: now)
        let account = PasswordCredential(
            name: DemoHome.name, user: "demo", password: Secret(utf8: Hex.encode(Randomness.bytes(12))), generation: 1)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var servers: [DemoServer] = []
        do {
            for kind in DemoSite.Kind.allCases {
                servers.append(try await .start(authorities.site(kind, account: account, at: now), group: group))
            }
            try demoHome.list(servers.map { $0.site.line(port: $0.port) })
            try demoHome.enroll(
                user: account.user, password: account.password, identity: authorities.identity,
                anchor: authorities.sites.root)
            try await show(servers, home, door)
            try demoHome.remove()
        } catch {
            try? demoHome.remove()
            throw error
        }
        for server in servers { await server.stop() }
        try? await group.shutdownGracefully()
    }

    private func show(_ servers: [DemoServer], _ home: Home, _ door: VaultDoor) async throws {
        let environment = ProcessInfo.processInfo.environment
        let keeper = try PolicyKeeper(
            home: home, interception: .always, environment: environment, logger: ConsoleLogHandler.logger(.warning),
            now: { Int64(time(nil)) }, passphrase: door.passphrase)
        if let shut = keeper.vaultErrorAtStart { throw shut }
        let runtime = try await start(keeper)
        let address = runtime.addresses.first ?? ""
        Console.result("countersign: listening on \(address)\n")
        let client = DemoClient(proxy: "http://\(address)", trustPath: home.rootCertificate.path)
        for server in servers { await present(server, client, keeper.policy.current) }
        invite(servers, address, home)
        for await arrival in SignalWatch.arrivals() where arrival.number != SIGHUP { break }
        Console.result("\ncountersign: stopping\n")
        await runtime.stop()
    }

    private func start(_ keeper: PolicyKeeper) async throws -> ProxyRuntime {
        let wanted = try ListenAddress(parsing: listen ?? "127.0.0.1:3128")
        guard wanted.isLocal else { throw ValidationError("the demo listens on loopback only") }
        do {
            return try await start(keeper, on: wanted)
        } catch  where listen == nil {
            return try await start(keeper, on: ListenAddress(parsing: "127.0.0.1:0"))
        }
    }

    private func start(_ keeper: PolicyKeeper, on door: ListenAddress) async throws -> ProxyRuntime {
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [door.door]
        configuration.drainSeconds = 1
        return try await ProxyRuntime(
            keeper: keeper, configuration: configuration, accessLog: nil, threads: 1, hasControlSocket: false,
            logger: ConsoleLogHandler.logger(.warning))
    }

    /// One request through the proxy, and the checks behind its answer.
    private func present(_ server: DemoServer, _ client: DemoClient, _ policy: Policy) async {
        let url = server.url
        let response = await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: client.get(url)) }
        }
        Console.result("\n\(server.site.kind.rawValue): GET \(url)\n")
        if let failure = response.failure {
            Console.result("  \(failure)\n")
        } else {
            Console.result("  \(response.status) \(response.body)")
        }
        guard let origin = try? Origin(url: url) else { return }
        let table = Explanation(of: origin, policy: policy, now: Int64(time(nil))).description
        for line in table.split(separator: "\n", omittingEmptySubsequences: false) where !line.isEmpty {
            Console.result("  | \(line)\n")
        }
        if server.site.kind == .untrusted {
            Console.result(
                "  The site's certificate is not trusted, and whether to go on is yours to decide: curl shows why it stops;\n"
            )
            Console.result("  with -k you go on, and its challenge comes back to you unanswered.\n")
        }
    }

    private func invite(_ servers: [DemoServer], _ address: String, _ home: Home) {
        Console.result("\nTry it from another terminal (Ctrl-C here ends the demo):\n\n")
        for server in servers {
            let goesOn = server.site.kind == .untrusted ? " -k" : ""
            Console.result(
                "  curl\(goesOn) --noproxy '' --proxy http://\(address) --cacert \(home.rootCertificate.path) \(server.url)\n"
            )
        }
        Console.result("\n")
    }
}
