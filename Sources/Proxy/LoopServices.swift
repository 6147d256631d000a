// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Glibc
import CountersignHTTP1
import NIOCore
import CountersignTLS
import CountersignUpstream

/// Whatever has time limits: told once a second, and when the proxy stops.
protocol TimeWatched: AnyObject {
    /// `now` is ``LoopServices/now``.
    func secondPassed(now: UInt64)
    /// The proxy stops: close when what is in flight is done.
    func drain()
    /// The proxy's patience is over.
    func abort()
}

/// What every event loop needs, shared by all of them.
package final class ProxyServices: Sendable {
    package let configuration: ProxyConfiguration
    package let policy: CurrentPolicy
    package let breaker: BreakerBoard
    package let learned = ProtectionSpaceCache()
    let leaves = LeafCache()
    let accessLog: AccessLog?
    /// Asked about listed origins that do not verify, where no standing decision speaks for them. Nil: nobody.
    let serverTrustDecider: (any ServerTrustDecider)?
    /// Asked where an origin refuses the credential of its line. Nil: nobody.
    let suppliedCredentials: ReplacementCredentials?
    /// Told what origins make of client identities. Nil: nobody.
    let identityRefresher: IdentityRefresher?
    /// Told what becomes of challenges. Nil: nobody.
    let observer: ChallengeObserver?
    /// This process in `Via` (RFC 9110 §7.6.3): a pseudonym, new each run.
    let pseudonym: String
    /// What is added to what is forwarded.
    let via: ViaField
    /// Seconds since 1970.
    let wallClock: @Sendable () -> Int64

    package init(
        configuration: ProxyConfiguration, policy: CurrentPolicy, accessLog: AccessLog?,
        breaker: BreakerBoard = BreakerBoard(),
        serverTrustDecider: (any ServerTrustDecider)? = nil, suppliedCredentials: ReplacementCredentials? = nil,
        identityRefresher: IdentityRefresher? = nil, observer: ChallengeObserver? = nil,
        pseudonym: String,
        wallClock: @escaping @Sendable () -> Int64
    ) {
        self.configuration = configuration
        self.policy = policy
        self.accessLog = accessLog
        self.breaker = breaker
        self.serverTrustDecider = serverTrustDecider
        self.suppliedCredentials = suppliedCredentials
        self.identityRefresher = identityRefresher
        self.observer = observer
        self.pseudonym = pseudonym
        via = ViaField("1.1 \(pseudonym)")
        self.wallClock = wallClock
    }
}

/// What the connections of one event loop share. Only that loop touches it.
final class LoopServices {
    let shared: ProxyServices
    let loop: any EventLoop
    let pool = UpstreamPool()
    let connector: UpstreamConnector
    let spare = SpareBuffer()
    let questions: TrustQuestions
    let readThrottle: ReadThrottle
    /// Nil where the system has none.
    private(set) lazy var splicePipe = SplicePipe()
    /// Monotonic seconds, as of the last tick: good enough for every limit here.
    private(set) var now: UInt64
    private(set) var isDraining = false
    /// The ports that this proxy listens on, to refuse a loop.
    var ownPorts: Set<UInt16> = [] {
        didSet { routes.removeAll() }
    }
    private var routes = RouteTable()
    private var watched: [ObjectIdentifier: any TimeWatched] = [:]
    private var tick: RepeatedTask?

    var configuration: ProxyConfiguration { shared.configuration }

    init(shared: ProxyServices, loop: any EventLoop) {
        self.shared = shared
        self.loop = loop
        connector = UpstreamConnector(loop: loop, limits: shared.configuration.connector, spare: spare)
        questions = TrustQuestions(loop: loop, limit: shared.configuration.trustQuestion)
        readThrottle = ReadThrottle(loop: loop)
        now = Self.monotonicSeconds()
    }

    /// The route under the policy that is in force now.
    func route(to origin: Origin, for principal: UInt32?) -> Route {
        routes.route(to: origin, for: principal, self)
    }

    /// Whether what `route` was found out from is as it was.
    func isInForce(_ route: Route) -> Bool {
        route.isInTable && route.policyVersion == shared.policy.version
    }

    func start() {
        let bound = NIOLoopBound(self, eventLoop: loop)
        tick = loop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
            bound.value.secondPassed()
        }
    }

    func watch(_ watchedObject: any TimeWatched) {
        watched[ObjectIdentifier(watchedObject)] = watchedObject
    }

    func unwatch(_ watchedObject: any TimeWatched) {
        watched[ObjectIdentifier(watchedObject)] = nil
    }

    /// No connection is left.
    var isQuiet: Bool { watched.isEmpty }

    func drain() {
        isDraining = true
        pool.shutDown()
        for object in watched.values { object.drain() }
    }

    func stop() {
        tick?.cancel()
        tick = nil
        pool.shutDown()
        for object in watched.values { object.abort() }
    }

    private func secondPassed() {
        now = Self.monotonicSeconds()
        spare.release()
        pool.timePassed(now: now)
        pool.keepOnly(settings: shared.policy.current.generation)
        for object in watched.values { object.secondPassed(now: now) }
    }

    private static func monotonicSeconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return UInt64(time.tv_sec)
    }
}
