// SPDX-License-Identifier: Apache-2.0

package import Countersign
import CountersignAddresses
import CountersignAnswering
package import CountersignCryptography
package import CountersignHome
package import CountersignParents
import CountersignProxy
import CountersignSitePolicy
import CountersignRouting
import Glibc
package import Logging
import NIOPosix
import Synchronization

/// Takes this process's own requests, whose routes are in ``ControlRoutes``, through parents that demand a password or
/// TLS. From the first such request on it listens on a port of the loopback interface, and serves only processes of
/// this user that know its password.
package final class ParentRelay: ControlRelay {
    private let sites: @Sendable () throws -> SiteList?
    private let logger: Logger
    private let makeKeeper: KeeperSource
    private let state = Mutex(State.idle)

    /// The policy. The argument says whether it needs the vault.
    package typealias KeeperSource = @Sendable (_ answersParents: Bool) throws -> PolicyKeeper

    private enum State {
        case idle
        case running(Running)
        /// There is no policy. The prompt for the passphrase must not appear for every request.
        case failed(ParentsError)
    }

    private struct Running {
        let keeper: PolicyKeeper
        let door: Secret
        /// Kept because it would stop otherwise.
        let listener: ProxyListener
    }

    /// For a process that has a policy.
    package convenience init(_ keeper: PolicyKeeper, logger: Logger) {
        self.init(sites: { keeper.policy.current.sites }, logger: logger) { _ in keeper }
    }

    /// For a command that reads the home if it must. `keeper` is called for the first request that needs the relay, and
    /// not again if it throws.
    package convenience init(_ home: Home, logger: Logger, keeper: @escaping KeeperSource) {
        self.init(sites: { try home.exists() ? home.sites() : nil }, logger: logger, keeper: keeper)
    }

    private init(sites: @escaping @Sendable () throws -> SiteList?, logger: Logger, keeper: @escaping KeeperSource) {
        self.sites = sites
        self.logger = logger
        makeKeeper = keeper
    }

    package func door(to parents: [ParentProxy]) throws(ParentsError) -> Secret? {
        let isListed = try isListed(parents)
        guard isListed || parents.contains(where: { $0.kind == .https }) else { return nil }
        let result = state.withLock { state -> Result<Secret, ParentsError> in
            switch state {
            case .running(let running):
                running.keeper.refresh()
                return .success(running.door)
            case .failed(let error): return .failure(error)
            case .idle: break
            }
            let keeper: PolicyKeeper
            do {
                keeper = try makeKeeper(isListed)
            } catch {
                let error = Self.fault("cannot answer the parent", error)
                state = .failed(error)
                return .failure(error)
            }
            do {
                let running = try start(keeper)
                state = .running(running)
                return .success(running.door)
            } catch {
                return .failure(Self.fault("cannot answer the parent", error))
            }
        }
        return try result.get()
    }

    private static func fault(_ what: String, _ error: any Error) -> ParentsError {
        let reason = Diagnostic.all(in: error).first
        return ParentsError(.notAuthenticated, "\(what): \(reason?.message ?? "\(error)")", hint: reason?.hint)
    }

    package func requestEnded() {
        guard case .running(let running) = state.withLock({ $0 }) else { return }
        try? Blocking.run { await running.keeper.breaker.flush() }
    }

    private func isListed(_ parents: [ParentProxy]) throws(ParentsError) -> Bool {
        do {
            guard let sites = try sites() else { return false }
            return parents.contains { parent in
                if case .answer = sites.verdict(for: parent.site) { true } else { false }
            }
        } catch {
            throw Self.fault("cannot find out whether the parent is listed", error)
        }
    }

    private func start(_ keeper: PolicyKeeper) throws -> Running {
        let token = Secret(utf8: Hex.encode(Randomness.bytes(16)))
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.clientTokens = [ClientToken(token)]
        configuration.answersSites = false
        configuration.drainSeconds = 0
        // Shorter than the limit of any request, so that the next hop can be tried.
        configuration.connector.connect = .seconds(3)
        return try Blocking.run { [logger, configuration] in
            let services = ProxyServices(
                configuration: configuration, policy: keeper.policy, accessLog: nil, breaker: keeper.breaker,
                routes: try await ControlRoutes.finder().map { ParentsOnly($0) },
                ownFault: { logger.error("\($0)") },
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
