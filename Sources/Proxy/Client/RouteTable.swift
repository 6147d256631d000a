// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignSitePolicy
import CountersignUpstream

/// The routes of one event loop.
struct RouteTable {
    private struct Key: Hashable {
        let origin: Origin
        let client: RouteClient
        let decision: RequestRules.Decision?

        init(_ origin: Origin, _ client: RouteClient, _ decision: RequestRules.Decision?) {
            self.origin = origin
            self.client = client
            self.decision = decision
        }
    }

    private static let capacity = 4096
    private var routes: [Key: Route] = [:]
    private var version = 0
    private var refusals = TunnelRefusals()

    /// The route of connections to `origin` under the current policy.
    mutating func route(
        to origin: Origin, for client: RouteClient, _ shared: ProxyServices, _ pool: UpstreamPool
    ) -> Route {
        let policy = shared.policy
        let current = policy.version
        if current != version || routes.count >= Self.capacity { removeAll() }
        version = current
        let key = Key(origin, client, nil)
        if let route = routes[key] { return route }
        let route = Route(to: origin, for: client, nil, policy.current, version: current, shared, pool, refusals)
        keep(route, key, shared)
        return route
    }

    /// The route of `request` under the policy of `base`, which is the route of connections to its origin.
    mutating func route(
        of request: SiteRequest, _ lines: RequestRules, on base: Route, _ shared: ProxyServices, _ pool: UpstreamPool
    ) -> Route {
        let decision = lines.decision(on: request)
        let key = Key(base.origin, base.client, decision)
        if base.isInTable, let route = routes[key] { return route }
        let route = Route(
            to: base.origin, for: base.client, decision, base.policy, version: base.policyVersion, shared, pool,
            refusals)
        if base.isInTable, routes.count < Self.capacity { keep(route, key, shared) } else { route.isInTable = false }
        return route
    }

    private mutating func keep(_ route: Route, _ key: Key, _ shared: ProxyServices) {
        // A script has not said yet whether a parent may challenge.
        guard
            key.origin.scheme == .https
                || shared.routes.map({ $0.knownRoute(to: key.origin, path: "/") != nil }) ?? true
        else {
            route.isInTable = false
            return
        }
        routes[key] = route
    }

    /// Discards one route, so that the next request finds another.
    mutating func remove(_ route: Route) {
        route.isInTable = false
        let key = Key(route.origin, route.client, route.decision)
        if routes[key] === route { routes[key] = nil }
    }

    /// `parent`, which is listed, opens no tunnel to the origin of `route`.
    mutating func tunnelRefused(_ route: Route, by parent: Origin, now: UInt64) {
        refusals.add(parent, port: route.origin.port, now: now)
        removeAll()
    }

    mutating func timePassed(now: UInt64) {
        if refusals.timePassed(now: now) { removeAll() }
    }

    /// Discards the routes of an earlier policy.
    mutating func keepOnly(version current: Int) {
        if current != version { removeAll() }
    }

    /// Discards all routes.
    mutating func removeAll() {
        for route in routes.values { route.isInTable = false }
        routes = [:]
    }
}
