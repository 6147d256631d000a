// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChannelTLS
import CountersignCryptography
import CountersignHTTP1
import CountersignSitePolicy
import CountersignUpstream
import NIOCore

/// The services that the connections of one event loop share. Only that loop may use them.
final class LoopServices {
    let shared: ProxyServices
    let loop: any EventLoop
    /// For results that other threads compute, and that may take longer than the proxy runs.
    let gate: EventLoopGate
    let pool: UpstreamPool
    private(set) var connector: UpstreamConnector
    let spare = SpareBuffer()
    let questions: TrustQuestions
    let readThrottle: ReadThrottle
    /// Nil if the system does not provide one.
    private(set) lazy var splicePipe = SplicePipe()
    /// Monotonic time in seconds as of the last tick, which is precise enough for every limit here.
    private(set) var now: UInt64
    private(set) var isDraining = false
    /// Connections are being closed.
    private(set) var isStopped = false
    /// How many ``LateVerdict`` wait.
    var lateVerdicts = 0
    /// Clients that have connected already are still served, with one more request each.
    private(set) var isHandedOver = false
    let ownListeners = OwnListeners()
    private var routes = RouteTable()
    /// ``SiteList/clientRules`` of the policy with this ``CurrentPolicy/version``.
    private var clientRules = (version: -1, rules: Set<ClientRule>())
    /// ``RouteFinding/version`` of the connections.
    private var hopsVersion: UInt64?
    private var watched: [ObjectIdentifier: any TimeWatched] = [:]
    private var tick: RepeatedTask?
    private var lastTick: NIODeadline?

    var configuration: ProxyConfiguration { shared.configuration }

    init(shared: ProxyServices, loop: any EventLoop) {
        self.shared = shared
        self.loop = loop
        pool = UpstreamPool(http1Origins: shared.http1Origins)
        gate = EventLoopGate(loop)
        connector = UpstreamConnector(
            loop: loop, limits: shared.configuration.connector, spare: spare, ownListeners: ownListeners,
            ownSite: shared.configuration.ownSite)
        questions = TrustQuestions(loop: loop, limit: shared.configuration.trustQuestion)
        readThrottle = ReadThrottle(loop: loop)
        now = MonotonicClock.seconds()
        hopsVersion = shared.routes?.version
        if let routes = shared.routes {
            connector = UpstreamConnector(
                loop: loop, limits: shared.configuration.connector, spare: spare, paths: ParentPaths(routes, self),
                ownListeners: ownListeners, ownSite: shared.configuration.ownSite)
        }
    }

    /// The route of connections to `origin` under the current policy. For their requests see ``route(of:_:on:)``.
    func route(to origin: Origin, for client: RouteClient) -> Route {
        routes.route(to: origin, for: client, shared, pool)
    }

    /// The same for the client of `session`.
    func route(to origin: Origin, for session: ClientSession) -> Route {
        let uid = session.process.uid
        let version = shared.policy.version
        if clientRules.version != version {
            clientRules = (version, shared.policy.current.sites.clientRules)
        }
        let rules = clientRules.rules
        guard !rules.isEmpty else { return route(to: origin, for: RouteClient(principal: uid)) }
        let standing = session.client?.standing(among: rules) ?? ClientStanding(ClientFacts(uid: uid), among: rules)
        return route(to: origin, for: RouteClient(principal: uid, standing: standing))
    }

    /// The route of a request to the origin of `base`, the route of its connections.
    func route(of head: borrowing RequestHead, _ path: ArraySlice<UInt8>, on base: Route) -> Route {
        guard let lines = base.requestRules else { return base }
        return routes.route(of: SiteRequest(method: head.methodText, target: path), lines, on: base, shared, pool)
    }

    /// The way has changed that `route` expects.
    func discard(_ route: Route) { routes.remove(route) }

    /// The first parent on the route to a listed site opens no tunnel to it.
    func tunnelRefused(on route: Route) {
        guard case .parent(let parent)? = shared.routes?.knownRoute(to: route.origin, path: "/")?.first?.hop else {
            return
        }
        routes.tunnelRefused(route, by: parent.site, now: now)
    }

    /// Whether `route` is still what ``route(to:for:)`` would return.
    func isInForce(_ route: Route) -> Bool {
        route.isInTable && route.policyVersion == shared.policy.version
    }

    /// The terms of a connection that will carry requests on `route`. `needsHTTP1`: HTTP/2 will not do.
    func terms(on route: Route, needsHTTP1: Bool = false) -> ConnectionTerms {
        ConnectionTerms(
            mayBeLocal: route.mayBeLocal, answersSite: route.answersSite,
            offersHTTP2: !needsHTTP1 && route.speaksHTTP2 && !pool.http1Origins.contains(route.origin, now: now))
    }

    /// There is no connection to `origin`.
    func notReached(_ origin: Origin, _ error: UpstreamError) {
        if error.step == .tls { pool.http1Origins.remove(origin) }
        shared.observer?.ended(error, at: origin)
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

    /// The clients that are connected, in no order.
    var clients: [ConnectedClient] {
        var seen: Set<ObjectIdentifier> = []
        return watched.values.compactMap(\.clientSession)
            .filter { seen.insert(ObjectIdentifier($0)).inserted }.map { ConnectedClient($0) }
    }

    /// All connections are closed.
    var isQuiet: Bool { watched.isEmpty }

    func drain() {
        isDraining = true
        isHandedOver = false
        pool.shutDown()
        for object in watched.values { object.drain() }
    }

    /// Another process accepts the clients now. Those of this one get the answer to a request that they have sent, or
    /// may be about to send.
    func handOver() {
        isDraining = true
        isHandedOver = true
    }

    func stop() {
        tick?.cancel()
        tick = nil
        isStopped = true
        pool.shutDown()
        for object in watched.values { object.abort() }
        gate.close()
    }

    private func secondPassed() {
        now = MonotonicClock.seconds()
        measureLag()
        spare.release()
        pool.timePassed(now: now)
        shared.journal.secondPassed(now: now)
        shared.approvals?.secondPassed()
        forgetOldPolicy()
        routes.timePassed(now: now)
        for object in watched.values { object.secondPassed(now: now) }
    }

    /// Reports how late the loop is for its work of every second.
    private func measureLag() {
        guard let meter = shared.journal.meter else { return }
        let time = NIODeadline.now()
        if let lastTick {
            meter.eventLoopWasLate(nanoseconds: UInt64(max(0, (time - lastTick - .seconds(1)).nanoseconds)))
        }
        lastTick = time
    }

    /// Releases the state of an earlier policy: connections, and the secrets that routes and accepted answers hold.
    private func forgetOldPolicy() {
        let policy = shared.policy.current
        pool.keepOnly(settings: policy.generation)
        routes.keepOnly(version: shared.policy.version)
        shared.acceptedAnswers.keepOnly(policy)
        forgetOldHops()
    }

    /// Closes the idle connections of an earlier network or script, because another way may lead to their origins now,
    /// and those of networks that are gone.
    private func forgetOldHops() {
        guard let version = shared.routes?.version, version != hopsVersion else { return }
        hopsVersion = version
        pool.closeIdle()
        routes.removeAll()
        connector.open.networkChanged(ownAddresses: OpenConnections.ownAddresses())
    }
}
