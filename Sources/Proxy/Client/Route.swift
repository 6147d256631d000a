// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignCookies
import CountersignEvents
import CountersignSitePolicy
import CountersignUpstream

/// Everything that the current policy determines about one origin for the clients of one user. It is computed once and
/// used by all later requests. Only its event loop may use it.
///
/// If the site's lines are for some requests only, this is true of connections to the origin alone. Each of its
/// requests takes another route, which depends on the ``decision`` about it.
final class Route {
    /// An exchange in its initial state, and its first action.
    final class PreparedExchange {
        let exchange: ExchangeMachine
        let action: ExchangeMachine.Action
        /// ``RequestContext/accepted``
        let accepted: AcceptedAnswer?

        init(_ context: RequestContext, hasBody: Bool) {
            accepted = context.accepted
            var context = context
            context.hasBody = hasBody
            var exchange = ExchangeMachine(context)
            action = exchange.started()
            self.exchange = exchange
        }
    }

    /// The prepared exchanges for one request context, each made when it is first needed.
    fileprivate final class PreparedExchanges {
        private let context: RequestContext
        private lazy var withoutBody = PreparedExchange(context, hasBody: false)
        private lazy var withBody = PreparedExchange(context, hasBody: true)

        init(_ context: RequestContext) {
            self.context = context
        }

        func exchange(hasBody: Bool) -> PreparedExchange { hasBody ? withBody : withoutBody }
    }

    /// A protection space that earlier requests found, and the exchanges prepared for it.
    final class LearnedSpace {
        let space: ProtectionSpaceCache.Space
        /// Whether the credential was proven a short time ago; nil if that does not matter.
        let pulse: CredentialPulse?
        fileprivate let preparedExchanges: PreparedExchanges

        fileprivate init(_ space: ProtectionSpaceCache.Space, _ context: RequestContext, _ breaker: BreakerBoard) {
            self.space = space
            pulse =
                space.usesTicket
                ? nil
                : breaker.pulse(of: Breaker.Key(space: space.accepted.space, credential: space.accepted.credential))
            var context = context
            context.accepted = space.accepted
            preparedExchanges = PreparedExchanges(context)
        }
    }

    /// The protection spaces that earlier requests found with the credential of one slot.
    private final class LearnedRoute {
        let slot: UpstreamPool.Slot
        let snapshot: ProtectionSpaceCache.Snapshot
        private let spaces: [LearnedSpace]

        init(
            _ slot: UpstreamPool.Slot, _ snapshot: ProtectionSpaceCache.Snapshot, _ context: RequestContext,
            _ breaker: BreakerBoard
        ) {
            self.slot = slot
            self.snapshot = snapshot
            spaces = snapshot.spaces.map { LearnedSpace($0, context, breaker) }
        }

        /// The newest space that contains `path`.
        func space(for path: ArraySlice<UInt8>) -> LearnedSpace? { snapshot.index(for: path).map { spaces[$0] } }
    }

    let origin: Origin
    let policy: Policy
    /// ``CurrentPolicy/version`` of the policy.
    let policyVersion: Int
    let client: RouteClient
    private var principal: UInt32? { client.principal }
    let verdict: SiteVerdict
    /// The lines of the site, if a request takes a route of its own; otherwise nil.
    let requestRules: RequestRules?
    /// The decision about the requests that take this route; nil if there are no ``requestRules`` to decide by.
    let decision: RequestRules.Decision?
    /// The line of the origin that applies to connections, and the answers to their requests; nil if it is not listed.
    let siteRule: SiteRule?
    /// The parent proxy whose challenges are answered instead of the origin's, over plain http; nil for none.
    let challenger: ParentPaths.Challenger?
    /// The line of the allowed-sites list that permits answering challenges: this origin's, or the ``challenger``'s.
    let rule: SiteRule?
    /// The line of the origin that is for the requests which take this route; nil if none is.
    var siteLine: SiteRule? {
        guard requestRules == nil, case .answer(let rule) = verdict else { return nil }
        return rule
    }
    /// Of it, so that each request need not copy the line.
    private(set) lazy var maximumBodyBytes = siteLine?.maximumBodyBytes ?? Int.max
    /// Whether the origin, or the ``challenger``, is listed.
    let isListed: Bool
    /// Whether challenges of the requests that take this route may be answered.
    let mayAnswer: Bool
    /// ``ConnectionTerms/answersSite``
    let answersSite: Bool
    /// The session that the line shares; nil for none.
    let sharedSession: SharedSessionUse?
    /// The identity broker's header, which the line adds to navigation requests; nil for none.
    let brokerUse: BrokerUse?
    /// The token that the line adds to requests; nil for none.
    let injection: InjectionUse?
    /// Whether requests say that this device can answer PKeyAuth, in a field that servers which use it look for.
    let announcesDevice: Bool
    /// The treatment of the revocation status of the origin's certificate.
    var revocation: RevocationCheck { (challenger == nil ? siteRule : rule)?.revocation ?? .soft }
    /// Whether clients and the origin may select HTTP/2. Not if the line shares a session, whose cookies must not stay
    /// in memory: the table of HPACK keeps the fields of earlier messages.
    private(set) lazy var speaksHTTP2: Bool =
        shared.configuration.speaksHTTP2 && origin.scheme == .https && sharedSession == nil
        && siteRule?.speaksHTTP2 == true && (rule != nil || siteRule?.session == nil)
    /// The client's fields that the origin does not get: those by which servers let a request be another one than the
    /// line permits.
    var omittedFields: [String] {
        guard decision != nil || rule?.approval == .write, rule != nil else { return [] }
        return [
            "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-Method", "X-Original-URL",
            "X-Original-URI", "X-Rewrite-URL",
        ]
    }
    /// Why requests are not even forwarded, if the site's lines say so.
    var refusal: Refusal? {
        guard case .refuse(let reason) = verdict else { return nil }
        return reason
    }
    /// The text for a client whose request is refused for `reason`, which the observer hears of.
    func refused(for reason: Refusal) -> String {
        shared.observer?.tell(.refused(origin, reason))
        return reason.text
            + (isUnlisted && reason.cause == .notListed ? ": `countersign sites add SITE` lists one" : "")
    }
    /// The value of Host.
    let authority: String
    /// The origin and its ``rule`` as requests are reported with them.
    private(set) lazy var reportedSite = RequestSite(origin.description, rule: rule?.location)
    /// The context of exchanges with an origin whose certificate verifies, for clients that send no credentials of
    /// their own.
    let context: RequestContext
    /// The exchanges without a known protection space.
    private lazy var preparedExchanges = PreparedExchanges(context)
    /// The scheme and authority of the last absolute-form target that led here, exactly as written. Most requests
    /// repeat it.
    var targetSpelling: [UInt8] = []
    /// The spelling of the last Host in a tunnel.
    var hostSpelling: [UInt8] = []
    /// ``ConnectionTerms/mayBeLocal``
    let mayBeLocal: Bool
    /// ``ProxyConfiguration/refusesUnlistedSites`` is why connections to the origin are refused.
    private let isUnlisted: Bool
    /// The origin has ignored or rejected an expectation (RFC 9110 §10.1.1), so that waiting for it is useless.
    var ignoresExpectations = false
    /// False once the route is out of date.
    var isInTable = true

    private let shared: ProxyServices
    private let pool: UpstreamPool
    // The slots under a verified certificate.
    private lazy var answering = pool.slot(for: key(under: .verified, mayBeAnswered: true))
    private lazy var unanswered = pool.slot(for: key(under: .verified, mayBeAnswered: false))
    /// The key of the connections that are authenticated to the ``challenger``, for this user and with the credential
    /// of its line. They carry requests to every origin. Nil for none: a user must be known, and only the proxy may
    /// supply the credential.
    private lazy var parentKey: UpstreamKey? = {
        guard let challenger, principal != nil, shared.delegateCredentials == nil,
            let credential = answering.key.credential
        else { return nil }
        return UpstreamKey(
            origin: challenger.site, trust: .verified, credential: credential, principal: principal,
            settings: policy.generation)
    }()
    /// Their slot, which the routes to all origins share, so that none keeps one of its own.
    var parentSlot: UpstreamPool.Slot? { parentKey.map { pool.slot(for: $0) } }
    private lazy var ticketSlot = slot(like: answering.key, with: ticketReference)
    private var learnedRoute: LearnedRoute?
    private var learnedTicketRoute: LearnedRoute?

    init(
        to origin: Origin, for client: RouteClient, _ decision: RequestRules.Decision?, _ policy: Policy, version: Int,
        _ shared: ProxyServices, _ pool: UpstreamPool, _ refusals: TunnelRefusals
    ) {
        self.origin = origin
        self.policy = policy
        policyVersion = version
        self.client = client
        self.shared = shared
        self.pool = pool
        authority = origin.authority
        var verdict: SiteVerdict =
            shared.configuration.answersSites
            ? policy.sites.verdict(for: origin, client: client.siteClient)
            : .tunnel(reason: "only parents are answered")
        let unlisted = shared.configuration.refusesUnlistedSites ? verdict.unlisted : nil
        if let unlisted { verdict = .refuse(reason: unlisted) }
        isUnlisted = unlisted != nil
        siteRule = if case .answer(let rule) = verdict { rule } else { nil }
        let lines = siteRule == nil ? nil : policy.sites.requestRules(for: origin, client: client.siteClient)
        if let lines, let decision { verdict = lines.verdict(of: decision) }
        (requestRules, self.decision) = decision == nil ? (lines, nil) : (nil, decision)
        self.verdict = verdict
        let own: SiteRule? = if case .answer(let rule) = verdict { rule } else { nil }
        let parent = shared.routes.flatMap { ParentPaths.challenger(to: origin, own, policy, $0, refusals) }
        challenger = parent
        mayBeLocal = siteRule != nil || shared.configuration.permitsLocalNames
        rule = parent?.rule ?? own
        isListed = (rule ?? siteRule) != nil
        mayAnswer = rule != nil && requestRules == nil
        answersSite = origin.scheme == .http && parent == nil && own?.answersPlaintext == true
        sharedSession = (rule?.isDryRun == true ? nil : rule?.session).flatMap { session in
            let key = SharedSession.Key(group: session.group, host: origin.host)
            guard !policy.withheldSessions.contains(key) else { return nil }
            return SharedSessionUse(key: key, names: session.cookies, store: shared.sessions)
        }
        announcesDevice =
            rule.map { rule in
                rule.answer.contains(.pkeyauth) && origin.scheme == .https
                    && policy.hasDevice(for: rule, now: shared.wallClock())
            } ?? false
        brokerUse = rule.flatMap { rule in
            rule.usesBroker && policy.withheld[rule.credential] == nil
                ? BrokerUse(
                    site: "\(origin.scheme.rawValue)://\(origin.authority)", account: policy.brokerAccount(for: rule),
                    cookies: shared.brokerCookies) : nil
        }
        injection = own.flatMap { InjectionUse(of: $0, at: origin, policy) }
        if let parent {
            context = ParentPaths.context(at: parent.site, policy, hasTLS: parent.hasTLS, shared)
        } else {
            var context = policy.requestContext(to: origin, verdict)
            context.kdcAttempts = shared.breaker.kdcAttempts
            self.context = context
        }
    }

    /// The prepared exchange of a request whose challenges may be answered. `space` is the result of
    /// ``learnedSpace(for:in:)``.
    func preparedExchange(hasBody: Bool, in space: LearnedSpace? = nil) -> PreparedExchange {
        (space?.preparedExchanges ?? preparedExchanges).exchange(hasBody: hasBody)
    }

    /// The credential for the first challenge: that of the site's line, or the one supplied to replace it.
    var credentialDecision: CredentialDecision {
        guard let rule else { return .performDefaultHandling(reason: .unlisted) }
        let disposition = policy.credentialDecision(for: rule, at: challenger?.site ?? origin)
        guard case .useCredential(.password(let credential)) = disposition, let supplied = shared.delegateCredentials
        else { return disposition }
        return .useCredential(.password(supplied.standIn(for: credential, at: origin)))
    }

    /// The credential for a Kerberos challenge.
    var ticketDecision: CredentialDecision {
        rule.map { policy.ticketDecision(for: $0) } ?? .performDefaultHandling(reason: .unlisted)
    }

    private var ticketReference: CredentialReference {
        guard case .useCredential(let credential) = ticketDecision else { return .ticket }
        return credential.reference ?? .ticket
    }

    /// Whether there is a credential for a challenge of the origin, and the site's line permits answering one.
    private(set) lazy var answersChallenges: Bool = {
        guard let rule, origin.scheme == .https || rule.answersPlaintext || challenger != nil else { return false }
        if rule.answer.contains(.negotiate), case .useCredential = ticketDecision { return true }
        if origin.scheme == .https, policy.answersDevice(for: rule) { return true }
        guard !Set(rule.answer).isDisjoint(with: AuthenticatorTable.supported.schemes),
            case .useCredential = credentialDecision
        else { return false }
        return true
    }()

    /// Whether the content of a CONNECT to this host and port is inspected, because there is an http line for them: it
    /// may carry requests to that site.
    private(set) lazy var mayCarryRequests: Bool = {
        guard policy.sites.hasPlainSites, shared.configuration.answersSites else { return false }
        if case .refuse = verdict, !isUnlisted { return false }
        if case .tunnel = policy.sites.verdict(for: origin.withoutTLS, client: client.siteClient) { return false }
        return true
    }()

    /// Whether the http site of this host and port refuses some requests, so that what a CONNECT to it carries must be
    /// seen.
    private(set) lazy var mustSeeRequests: Bool = {
        guard mayCarryRequests else { return false }
        let site = origin.withoutTLS
        if case .refuse = policy.sites.verdict(for: site, client: client.siteClient) { return true }
        return policy.sites.requestRules(for: site, client: client.siteClient)?.refusesOthers == true
    }()

    /// Whether the origin may get anything of the person's, so that it matters which page causes a request.
    private(set) lazy var hasCredential: Bool = {
        guard let rule, challenger == nil else { return false }
        return answersChallenges || sharedSession != nil || brokerUse != nil || injection != nil
            || policy.hasCredentialsOfOrigins
            || rule.answer.contains(.certificate) && policy.hasIdentities
    }()

    /// The credential for a challenge of `space`: one that is stored for the space alone and was not rejected
    /// there, or that of the site's line; or the one supplied to replace it.
    func credentialDecision(in space: AuthenticationSpace) -> CredentialDecision {
        guard let rule else { return .performDefaultHandling(reason: .unlisted) }
        let decision = policy.credentialDecision(for: rule, in: space) { [shared] credential in
            shared.breaker.isRejected(Breaker.Key(space: space, credential: credential))
        }
        guard case .useCredential(.password(let credential)) = decision, let supplied = shared.delegateCredentials
        else { return decision }
        return .useCredential(.password(supplied.standIn(for: credential, in: space)))
    }

    /// The slot of connections opened under the outcome `trust`. `mayBeAnswered`: the proxy may answer challenges on
    /// them if the site is listed.
    func slot(under trust: TrustOutcome, mayBeAnswered: Bool) -> UpstreamPool.Slot {
        guard trust == .verified else {
            return pool.slot(for: key(under: trust, mayBeAnswered: mayBeAnswered && mayAnswer))
        }
        guard mayBeAnswered, mayAnswer else { return unanswered }
        // A replacement credential can arrive while the same policy is in force.
        guard shared.delegateCredentials == nil else { return pool.slot(for: key(under: trust, mayBeAnswered: true)) }
        return answering
    }

    /// The protection space that contains `path` according to earlier requests with the same credential.
    func learnedSpace(for path: ArraySlice<UInt8>, in slot: UpstreamPool.Slot) -> LearnedSpace? {
        learnedSpace(for: path, in: slot, &learnedRoute)
    }

    /// The protection space that contains `path` according to earlier requests with a Kerberos ticket, under the same
    /// trust as `slot`.
    func learnedTicketSpace(for path: ArraySlice<UInt8>, like slot: UpstreamPool.Slot) -> LearnedSpace? {
        guard shared.acceptedAnswers.hasTickets, rule != nil else { return nil }
        return learnedSpace(for: path, in: ticketSlot(like: slot), &learnedTicketRoute)
    }

    /// The slot of connections that a ticket has authenticated, under the same trust as `slot`.
    func ticketSlot(like slot: UpstreamPool.Slot) -> UpstreamPool.Slot {
        slot === answering ? ticketSlot : self.slot(like: slot.key, with: ticketReference)
    }

    private func learnedSpace(
        for path: ArraySlice<UInt8>, in slot: UpstreamPool.Slot, _ learnedRoute: inout LearnedRoute?
    ) -> LearnedSpace? {
        guard let tag = slot.key.credential else { return nil }
        if let learnedRoute, learnedRoute.slot === slot, shared.acceptedAnswers.isCurrent(learnedRoute.snapshot) {
            return learnedRoute.space(for: path)
        }
        let snapshot = shared.acceptedAnswers.snapshot(of: ProtectionSpaceCache.Key(slot.key, tag))
        let learned = LearnedRoute(slot, snapshot, context, shared.breaker)
        learnedRoute = learned
        return learned.space(for: path)
    }

    private func key(under trust: TrustOutcome, mayBeAnswered: Bool) -> UpstreamKey {
        var tag: CredentialReference?
        if mayBeAnswered, trust.answers, case .useCredential(let credential) = credentialDecision {
            tag = credential.reference
        }
        return UpstreamKey(
            origin: origin, trust: trust.key, credential: tag, principal: principal, settings: policy.generation,
            line: line)
    }

    /// ``UpstreamKey/line``
    private var line: Int { siteLine?.ordinal ?? 0 }

    /// The slot of `key` with another credential.
    func slot(like key: UpstreamKey, with credential: CredentialReference) -> UpstreamPool.Slot {
        pool.slot(
            for: UpstreamKey(
                origin: key.origin, trust: key.trust, credential: credential, principal: key.principal,
                settings: key.settings, line: key.line))
    }
}

extension ProtectionSpaceCache.Key {
    /// `tag` is the credential in `key`.
    init(_ key: UpstreamKey, _ tag: CredentialReference) {
        self.init(
            origin: key.origin, trust: key.trust, credential: tag, principal: key.principal, line: key.line)
    }
}
