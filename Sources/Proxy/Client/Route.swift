// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignSitePolicy
import CountersignUpstream

/// What the policy in force says of one origin, for the clients of one user: found out once, and used by every request after it.
/// Only its event loop may use it.
final class Route {
    /// An exchange that has been started, and what is to be done first.
    final class PreparedExchange {
        let exchange: ExchangeMachine
        let action: ExchangeMachine.Action

        init(_ context: RequestContext, hasBody: Bool) {
            var context = context
            context.hasBody = hasBody
            var exchange = ExchangeMachine(context)
            action = exchange.started()
            self.exchange = exchange
        }
    }

    /// How the exchanges of requests begin that are told the same beforehand: found out once.
    private final class PreparedExchanges {
        private let context: RequestContext
        private lazy var withoutBody = PreparedExchange(context, hasBody: false)
        private lazy var withBody = PreparedExchange(context, hasBody: true)

        init(_ context: RequestContext) {
            self.context = context
        }

        func preparedExchange(hasBody: Bool) -> PreparedExchange { hasBody ? withBody : withoutBody }
    }

    /// What earlier requests taught of the origin for the credential of one slot, and how exchanges begin by it.
    private final class LearnedRoute {
        let slot: UpstreamPool.Slot
        let known: ProtectionSpaceCache.Known
        /// Of the space that the last of these exchanges was in: most are in the same.
        var last: (space: ProtectionSpaceCache.Space, preparedExchanges: PreparedExchanges)?

        init(_ slot: UpstreamPool.Slot, _ known: ProtectionSpaceCache.Known) {
            self.slot = slot
            self.known = known
        }
    }

    let origin: Origin
    let policy: Policy
    /// ``CurrentPolicy/version`` of the policy.
    let policyVersion: Int
    /// The user id of the clients, where the kernel told it.
    let principal: UInt32?
    let verdict: SiteVerdict
    /// The line that lets challenges of this origin be answered.
    let rule: SiteRule?
    let isListed: Bool
    /// The value of Host.
    let authority: String
    /// What an exchange is told beforehand, where the origin's certificate verifies and the client does not authorize itself.
    let context: RequestContext
    /// Of exchanges that have no more to be told.
    private lazy var preparedExchanges = PreparedExchanges(context)
    /// How the last absolute-form target that led here spelled what stands before its path; most others do so too.
    var targetSpelling: [UInt8] = []
    /// How the last Host in a tunnel was spelled.
    var hostSpelling: [UInt8] = []
    /// The proxy itself is at the other end of it.
    let leadsBack: Bool
    /// It is in the table still: what it was found out from has not changed.
    fileprivate(set) var isInTable = true

    private let shared: ProxyServices
    private let pool: UpstreamPool
    /// Of an origin whose certificate verifies.
    private lazy var answering = pool.slot(for: key(under: .verified, mayBeAnswered: true))
    private lazy var unanswered = pool.slot(for: key(under: .verified, mayBeAnswered: false))
    private var learnedRoute: LearnedRoute?

    fileprivate init(
        to origin: Origin, for principal: UInt32?, _ policy: Policy, version: Int, _ services: LoopServices
    ) {
        self.origin = origin
        self.policy = policy
        policyVersion = version
        self.principal = principal
        shared = services.shared
        pool = services.pool
        authority = origin.authority
        leadsBack = services.ownPorts.contains(origin.port) && HostText.isThisMachine(origin.host)
        verdict = policy.sites.verdict(for: origin)
        rule = if case .answer(let rule) = verdict { rule } else { nil }
        isListed = rule != nil
        context = RequestContext(
            origin: origin, site: policy.siteCheck(verdict), permitted: rule?.answer ?? [],
            plaintextPermitted: rule?.answersPlaintext ?? false, clientAuthorizes: false, originTrusted: true,
            hasBody: false, domain: rule?.domain)
    }

    /// The exchange of a request that may be answered, as it is when the request is about to go out. `space` is the one that
    /// ``learnedSpace(for:in:)`` has just found.
    func preparedExchange(hasBody: Bool, in space: ProtectionSpaceCache.Space? = nil) -> PreparedExchange {
        guard let space, let learnedRoute else { return preparedExchanges.preparedExchange(hasBody: hasBody) }
        if let last = learnedRoute.last, last.space === space { return last.preparedExchanges.preparedExchange(hasBody: hasBody) }
        var context = context
        context.learned = space.learned
        let preparedExchanges = PreparedExchanges(context)
        learnedRoute.last = (space, preparedExchanges)
        return preparedExchanges.preparedExchange(hasBody: hasBody)
    }

    /// What the site's line has for a password challenge, or what was supplied in its place.
    var passwordDecision: CredentialDecision {
        guard let rule else { return .performDefaultHandling(reason: "not on the list") }
        let disposition = policy.passwordDecision(for: rule, at: origin)
        guard case .useCredential(.password(let credential)) = disposition, let supplied = shared.suppliedCredentials
        else { return disposition }
        return .useCredential(.password(supplied.standIn(for: credential, at: origin)))
    }

    /// Where the idle connections are whose origin's certificate was taken on `trust`. `mayBeAnswered`: a challenge there may be
    /// answered, where the site is listed.
    func slot(under trust: TrustOutcome, mayBeAnswered: Bool) -> UpstreamPool.Slot {
        guard trust == .verified else { return pool.slot(for: key(under: trust, mayBeAnswered: mayBeAnswered)) }
        guard mayBeAnswered, isListed else { return unanswered }
        // What a delegate supplies can change while a policy is in force.
        guard shared.suppliedCredentials == nil else { return pool.slot(for: key(under: trust, mayBeAnswered: true)) }
        return answering
    }

    /// The protection space that `path` was found to lie in, by earlier requests with the same credential.
    func learnedSpace(for path: ArraySlice<UInt8>, in slot: UpstreamPool.Slot) -> ProtectionSpaceCache.Space? {
        guard let tag = slot.key.credential else { return nil }
        if let learnedRoute, learnedRoute.slot === slot, shared.learned.isStill(learnedRoute.known) {
            return learnedRoute.known.space(for: path)
        }
        let known = shared.learned.known(of: ProtectionSpaceCache.Key(slot.key, tag))
        learnedRoute = LearnedRoute(slot, known)
        return known.space(for: path)
    }

    private func key(under trust: TrustOutcome, mayBeAnswered: Bool) -> UpstreamKey {
        var tag: UpstreamKey.CredentialTag?
        if mayBeAnswered, trust.answers, case .useCredential(.password(let credential)) = passwordDecision {
            tag = .init(name: credential.name, generation: credential.generation)
        }
        return UpstreamKey(
            origin: origin, trust: trust.key, credential: tag, principal: principal, settings: policy.generation)
    }

    /// The slot for the same, but with another credential.
    func slot(like key: UpstreamKey, with credential: UpstreamKey.CredentialTag) -> UpstreamPool.Slot {
        pool.slot(
            for: UpstreamKey(
                origin: key.origin, trust: key.trust, credential: credential, principal: key.principal,
                settings: key.settings))
    }
}

/// The routes of one event loop.
struct RouteTable {
    private struct Key: Hashable {
        let origin: Origin
        let principal: UInt32?
    }

    private static let capacity = 4096
    private var routes: [Key: Route] = [:]
    private var version = 0

    /// The route under the policy that is in force now.
    mutating func route(to origin: Origin, for principal: UInt32?, _ services: LoopServices) -> Route {
        let policy = services.shared.policy
        let current = policy.version
        if current != version || routes.count >= Self.capacity { removeAll() }
        version = current
        let key = Key(origin: origin, principal: principal)
        if let route = routes[key] { return route }
        let route = Route(to: origin, for: principal, policy.current, version: current, services)
        routes[key] = route
        return route
    }

    /// Nothing that was found out holds any more.
    mutating func removeAll() {
        for route in routes.values { route.isInTable = false }
        routes = [:]
    }
}

extension ProtectionSpaceCache.Key {
    /// `tag` is the credential of `key`.
    init(_ key: UpstreamKey, _ tag: UpstreamKey.CredentialTag) {
        self.init(
            origin: key.origin, trust: key.trust, credential: tag.name, generation: tag.generation,
            principal: key.principal)
    }
}
