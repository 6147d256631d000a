// SPDX-License-Identifier: Apache-2.0

package import Countersign
import CountersignAnswering
import CountersignChallenges
package import CountersignCryptography
package import CountersignParents
import CountersignProxy
import CountersignSitePolicy
import CountersignRouting
import Glibc
package import Logging
import NIOPosix
import Synchronization

/// Takes this process's own requests, which have ``ControlRoutes``, through parents that demand a password or TLS. From
/// the first such request on it listens on a port of the loopback interface, and serves only this user's processes that
/// know its password.
package final class ParentRelay: ControlRelay {
    private let sites: @Sendable () throws -> SiteList?
    private let logger: Logger
    private let makeKeeper: @Sendable () throws -> PolicyKeeper
    private let running = Mutex<Running?>(nil)

    private struct Running {
        let keeper: PolicyKeeper
        let door: Secret
        /// Kept because it would stop otherwise.
        let listener: ProxyListener
    }

    /// For a process that has a policy.
    package convenience init(_ keeper: PolicyKeeper, logger: Logger) {
        self.init(sites: { keeper.policy.current.sites }, logger: logger) { keeper }
    }

    /// For a command that reads the home if it must. `keeper` is called once, for the first request that needs the
    /// relay.
    package convenience init(
        _ home: Home, logger: Logger, keeper: @escaping @Sendable () throws -> PolicyKeeper
    ) {
        self.init(sites: { try home.exists() ? home.sites() : nil }, logger: logger, keeper: keeper)
    }

    private init(
        sites: @escaping @Sendable () throws -> SiteList?, logger: Logger,
        keeper: @escaping @Sendable () throws -> PolicyKeeper
    ) {
        self.sites = sites
        self.logger = logger
        makeKeeper = keeper
    }

    package func door(to parents: [ParentProxy]) throws(ParentsError) -> Secret? {
        var isNeeded = parents.contains { $0.kind == .https }
        if !isNeeded { isNeeded = try isListed(parents) }
        guard isNeeded else { return nil }
        do {
            return try running.withLock { running in
                if let running {
                    running.keeper.refresh()
                    return running.door
                }
                let started = try start()
                running = started
                return started.door
            }
        } catch {
            let fault = Diagnostic.all(in: error).first
            throw ParentsError(
                .notAuthenticated, "cannot answer the parent: \(fault?.message ?? "\(error)")", hint: fault?.hint)
        }
    }

    package func requestEnded() {
        let keeper = running.withLock { $0?.keeper }
        try? Blocking.run { await keeper?.breaker.flush() }
    }

    private func isListed(_ parents: [ParentProxy]) throws(ParentsError) -> Bool {
        do {
            guard let sites = try sites() else { return false }
            return parents.contains { parent in
                if case .answer = sites.verdict(for: parent.site) { true } else { false }
            }
        } catch {
            let fault = Diagnostic.all(in: error).first
            throw ParentsError(
                .notAuthenticated, "cannot find out whether the parent is listed: \(fault?.message ?? "\(error)")",
                hint: fault?.hint)
        }
    }

    private func start() throws -> Running {
        let keeper = try makeKeeper()
        let token = Secret(utf8: Hex.encode(Randomness.bytes(16)))
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.clientToken = token
        configuration.answersSites = false
        configuration.drainSeconds = 0
        return try Blocking.run { [logger, configuration] in
            let services = ProxyServices(
                configuration: configuration, policy: keeper.policy, accessLog: nil, breaker: keeper.breaker,
                routes: try await ControlRoutes.finder().map { ParentsOnly($0) },
                pseudonym: "countersign-\(Hex.encode(Randomness.bytes(4)))", wallClock: { Int64(time(nil)) })
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let listener = try await ProxyListener(services: services, group: group) { logger.notice("\($0)") }
            guard let address = try await listener.listen().first else {
                throw CountersignError(.environment, "cannot listen on a port of 127.0.0.1")
            }
            let door = Secret(utf8: "http://countersign:\(token.utf8Text ?? "")@\(address)")
            return Running(keeper: keeper, door: door, listener: listener)
        }
    }
}

/// The same routes without direct connections: libcurl makes those, after its own checks of the addresses.
private final class ParentsOnly: RouteFinding {
    private let base: any RouteFinding

    init(_ base: any RouteFinding) { self.base = base }

    func knownRoute(to origin: Origin, path: String) -> [Route.Candidate]? {
        base.knownRoute(to: origin, path: path)?.filter { $0.hop != .direct }
    }

    func findRoute(to origin: Origin, path: String) async throws(ParentsError) -> [Route.Candidate] {
        try await base.findRoute(to: origin, path: path).filter { $0.hop != .direct }
    }

    func parentFailed(_ parent: ParentProxy) { base.parentFailed(parent) }

    func parentAnswered(_ parent: ParentProxy) { base.parentAnswered(parent) }

    var version: UInt64 { base.version }
}
