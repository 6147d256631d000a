// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignHTTP1
import CountersignSitePolicy
import Glibc

/// What every request of a client connection must pass before it becomes an exchange, and the route that it takes. The
/// same for each version of HTTP.
struct RequestAdmission {
    private let session: ClientSession
    private let services: LoopServices
    /// The route of connections to the origin of the last request. Most clients send the next one to the same origin.
    private var lastRoute: Route?

    init(session: ClientSession, services: LoopServices) {
        self.session = session
        self.services = services
    }

    // MARK: Refusals

    /// The response to a request that is not served at all: the access log cannot be written, or the request has
    /// already passed through this proxy.
    func refusal(of head: borrowing RequestHead) -> OwnResponse? {
        if let refusal = services.shared.journal.log?.refusal { return refusal }
        guard head.fields.values(of: .via).contains(where: { $0.contains(services.shared.pseudonym) }) else {
            return nil
        }
        return .loop("this request has already passed through this proxy")
    }

    /// Refuses a TRACE to a listed site, because its response would contain the credentials that the proxy adds (RFC
    /// 9110 §9.3.8), and a TRACE or OPTIONS whose Max-Forwards is 0 (RFC 9110 §7.6.2).
    func checkTrace(_ head: borrowing RequestHead, _ route: Route) throws(RequestTarget.Failure) {
        if head.isTrace, route.policy.sites.rule(for: route.origin) != nil {
            throw RequestTarget.Failure(
                status: 405, detail: "TRACE is not forwarded to a site whose challenges are answered")
        }
        guard head.method.takesMaxForwards else { return }
        if head.fields.value(of: .maxForwards).flatMap({ UInt($0) }) == 0 {
            throw RequestTarget.Failure(
                status: 405, detail: "Max-Forwards is 0, and this proxy does not answer \(head.methodText)")
        }
    }

    // MARK: The target

    /// The route of an absolute-form request, and the target to send to the origin.
    mutating func destination(of head: RequestHead) throws(RequestTarget.Failure) -> (Route, ArraySlice<UInt8>) {
        if let lastRoute, let path = RequestTarget.path(of: head, after: lastRoute.targetSpelling),
            services.isInForce(lastRoute)
        {
            return admitted(head, path, on: lastRoute)
        }
        let target: RequestTarget
        if let own = ownPage(head) { target = own } else { target = try RequestTarget(absoluteFormOf: head) }
        try checkOwnPage(target.origin)
        let route = services.route(to: isOwn(target.origin) ? ownOrigin ?? target.origin : target.origin, for: session)
        lastRoute = route
        route.targetSpelling = Array(target.spelling)
        return admitted(head, target.path, on: route)
    }

    /// The target of a request for the proxy's own page, which was sent as to any server; nil for another one.
    private func ownPage(_ head: RequestHead) -> RequestTarget? {
        services.configuration.ownSite.flatMap {
            RequestTarget(originFormOf: head, to: $0.origin, port: session.serverPort)
        }
    }

    private var ownOrigin: Origin? { services.configuration.ownSite?.origin }

    /// Whether an origin is the proxy's own page, at any port: a browser may use the proxy for the link to the page.
    private func isOwn(_ origin: Origin) -> Bool {
        guard let ownOrigin else { return false }
        return origin.host == ownOrigin.host && origin.scheme == .http
    }

    /// Whether a request is for the proxy's own page, which has a token of its own.
    func isForOwnPage(_ head: RequestHead) -> Bool { ownPage(head) != nil }

    /// The page shows what one user does, and is for no other, even if others may use the proxy.
    private func checkOwnPage(_ origin: Origin) throws(RequestTarget.Failure) {
        guard isOwn(origin), session.process.uid != getuid() else { return }
        throw RequestTarget.Failure(status: 403, detail: "this page is for the user who runs the proxy")
    }

    /// The same for a request inside the CONNECT to `site`.
    mutating func destination(
        of head: RequestHead, inside site: ClientSession.ConnectSite
    ) throws(RequestTarget.Failure) -> (Route, ArraySlice<UInt8>) {
        if let lastRoute, let path = RequestTarget.path(of: head, host: lastRoute.hostSpelling),
            services.isInForce(lastRoute)
        {
            return admitted(head, path, on: lastRoute)
        }
        let target = try RequestTarget(insideConnectTo: site.origin, head: head)
        let route = services.route(to: site.origin, for: session)
        lastRoute = route
        route.hostSpelling = Array(target.spelling)
        return admitted(head, target.path, on: route)
    }

    /// The route of a request, and its target in the form in which the site's lines have compared it.
    private func admitted(
        _ head: RequestHead, _ path: ArraySlice<UInt8>, on base: Route
    ) -> (Route, ArraySlice<UInt8>) {
        let route = services.route(of: head, path, on: base)
        guard route !== base, case .answer = route.verdict, let clean = CanonicalPath.withoutDotSegments(path) else {
            return (route, path)
        }
        return (route, clean[...])
    }

    /// The next requests are for another site.
    mutating func forgetRoute() { lastRoute = nil }

    /// An idle client must not keep the secrets of a policy that is no longer in force, above all not after the vault
    /// was locked.
    mutating func forgetOldPolicy() {
        guard let route = lastRoute, !services.isInForce(route) else { return }
        lastRoute = nil
        session.keepOnly(settings: services.shared.policy.current.generation)
    }
}
