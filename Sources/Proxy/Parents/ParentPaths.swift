// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignHTTP1
import CountersignParents
import CountersignSitePolicy
import CountersignUpstream
import NIOCore

/// The ways to origins of one event loop, as the settings about parent proxies name them.
///
/// A parent is listed like a site, as `proxy://HOST:PORT`. Its challenges to CONNECT are answered by a
/// ``ParentExchange``; a SOCKS parent gets the user name and password of its line.
final class ParentPaths: PathSource {
    let routes: any RouteFinding
    /// They own this object, and may be released while a connection is still being closed.
    private weak var services: LoopServices?
    /// The answers that parents have accepted, by their place in the list, for later connections.
    private var accepted: [Origin: AcceptedAnswer] = [:]
    private var generation: UInt64 = 0

    init(_ routes: any RouteFinding, _ services: LoopServices) {
        self.routes = routes
        self.services = services
    }

    func findPaths(
        to origin: Origin, _ terms: ConnectionTerms,
        completion: @escaping (Result<[ConnectionPath], UpstreamError>) -> Void
    ) {
        guard let services else {
            return completion(.failure(UpstreamError(.noRoute, "the proxy has stopped")))
        }
        // A script sees no more of an https URL, and one path stands for all of an http origin.
        if let candidates = routes.knownRoute(to: origin, path: "/") {
            return completion(paths(candidates, to: origin, terms, services))
        }
        let bound = NIOLoopBound(completion, eventLoop: services.loop)
        let own = NIOLoopBound((self, services), eventLoop: services.loop)
        Task { [routes, gate = services.gate] in
            let found: Result<[CountersignParents.Route.Candidate], ParentsError>
            do throws(ParentsError) {
                found = .success(try await routes.findRoute(to: origin, path: "/"))
            } catch {
                found = .failure(error)
            }
            gate.execute {
                switch found {
                case .success(let candidates):
                    let (paths, services) = own.value
                    bound.value(paths.paths(candidates, to: origin, terms, services))
                case .failure(let error): bound.value(.failure(UpstreamError(.noRoute, error.detail)))
                }
            }
        }
    }

    private func paths(
        _ candidates: [CountersignParents.Route.Candidate], to origin: Origin, _ terms: ConnectionTerms,
        _ services: LoopServices
    ) -> Result<[ConnectionPath], UpstreamError> {
        do throws(UpstreamError) {
            var paths: [ConnectionPath] = []
            let hasTLS = Self.hasTLS(candidates)
            for candidate in candidates {
                switch candidate.hop {
                case .direct:
                    paths.append(
                        ConnectionPath(host: origin.host, port: origin.port, mayBeLocal: terms.mayBeLocal))
                case .parent(let parent):
                    var terms = terms
                    // A field that the client means for a parent with TLS is not sent without TLS.
                    if hasTLS, parent.kind != .https { terms.clientAuthorization = nil }
                    paths.append(try path(through: parent, to: origin, terms, services))
                }
            }
            guard !paths.isEmpty else { throw UpstreamError(.noRoute, "no setting permits a way to \(origin)") }
            return .success(paths)
        } catch {
            return .failure(error)
        }
    }

    private func path(
        through parent: ParentProxy, to origin: Origin, _ terms: ConnectionTerms, _ services: LoopServices
    ) throws(UpstreamError) -> ConnectionPath {
        let host: HostName
        do throws(HostNameError) {
            host = try HostName(canonicalizing: origin.host, for: .forwarded)
        } catch {
            throw UpstreamError(.noRoute, error.detail)
        }
        return ConnectionPath(
            parent: parent.site,
            tls: parent.kind == .https ? ParentTLS(parent, services.shared.policy.current.originTLS) : nil,
            tunnel: tunnel(through: parent, to: origin, host, terms, services)
        ) { [routes] error in
            if error == nil { routes.parentAnswered(parent) } else { routes.parentFailed(parent) }
        }
    }

    /// Nil for a parent that forwards requests to the origin.
    private func tunnel(
        through parent: ParentProxy, to origin: Origin, _ host: HostName, _ terms: ConnectionTerms,
        _ services: LoopServices
    ) -> (() -> any ParentTunnel)? {
        let limit = services.configuration.connector.tunnel
        if parent.kind.isSOCKS {
            return {
                SOCKSTunnel(
                    parent: parent, to: host, port: origin.port, limit: limit,
                    answerer: SOCKSExchange(parent, services), resolver: services.connector.resolver,
                    mayBeLocal: terms.mayBeLocal, spare: services.spare)
            }
        }
        guard terms.isBlind || origin.scheme == .https || terms.answersSite && isListed(parent, services) else {
            return nil
        }
        return { [self] in
            ConnectTunnel(
                parent: parent, to: host, port: origin.port, via: services.shared.via(after: terms.via), limit: limit,
                spare: services.spare,
                answerer: ParentExchange(
                    parent, authority: HostText.joined(host.text, origin.port),
                    clientAuthorization: terms.clientAuthorization, self, services))
        }
    }

    private func isListed(_ parent: ParentProxy, _ services: LoopServices) -> Bool {
        if case .answer = services.shared.policy.current.sites.verdict(for: parent.site) { true } else { false }
    }

    /// Whether one of the hops is a parent with TLS.
    static func hasTLS(_ candidates: [CountersignParents.Route.Candidate]) -> Bool {
        candidates.contains { if case .parent(let parent) = $0.hop { parent.kind == .https } else { false } }
    }

    /// A listed parent whose challenges to plain requests are answered.
    struct Challenger {
        /// How it is listed.
        let site: Origin
        let rule: SiteRule
        let hasTLS: Bool
        /// Why it answers for a site whose own challenges would be answered; nil if they would not.
        let reasonForSite: String?

        /// Whether requests on `connection` reach it, with TLS or without as expected: its answers depend on that.
        func isReached(by connection: any OriginLease) -> Bool {
            connection.forwarder == site && (connection.forwarderTLS != nil) == hasTLS
        }
    }

    /// The one for `origin`, which the line `own` lists. None if the origin's own challenges are answered: a tunnel
    /// then keeps the two apart, unless the parent opens none.
    static func challenger(
        to origin: Origin, _ own: SiteRule?, _ policy: Policy, _ routes: any RouteFinding, _ refusals: TunnelRefusals
    ) -> Challenger? {
        guard origin.scheme == .http, case .parent(let parent)? = routes.knownRoute(to: origin, path: "/")?.first?.hop,
            !parent.kind.isSOCKS, case .answer(let rule) = policy.sites.verdict(for: parent.site)
        else { return nil }
        var reason: String?
        if own?.answersPlaintext == true {
            guard refusals.contains(parent.site, port: origin.port) else { return nil }
            reason =
                "the parent \(parent) opens no tunnel to port \(origin.port), "
                + "and of a request that it forwards, only its own challenges are answered"
        }
        return Challenger(site: parent.site, rule: rule, hasTLS: parent.kind == .https, reasonForSite: reason)
    }

    /// The context of exchanges with a parent. `hasTLS`: with TLS to the parent.
    static func context(at site: Origin, _ policy: Policy, hasTLS: Bool, _ shared: ProxyServices) -> RequestContext {
        let verdict = policy.sites.verdict(for: site)
        var context = policy.requestContext(to: site, verdict)
        context.source = .parentProxy
        context.kdcAttempts = shared.breaker.kdcAttempts
        context.isPlaintextParent = !hasTLS
        return context
    }

    // MARK: Credentials

    /// The answer that `site` has accepted under the policy that is in force.
    func acceptedAnswer(at site: Origin) -> AcceptedAnswer? {
        forgetOldPolicy()
        return accepted[site]
    }

    func remember(_ answer: AcceptedAnswer, at site: Origin) {
        forgetOldPolicy()
        if answer.preemption != .none || accepted[site] != nil { accepted[site] = answer }
    }

    func forget(_ site: Origin) { accepted[site] = nil }

    private func forgetOldPolicy() {
        guard let services else { return accepted = [:] }
        let current = services.shared.policy.current.generation
        if current != generation { accepted = [:] }
        generation = current
    }
}
