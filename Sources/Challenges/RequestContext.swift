// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The facts about a request that decide how its challenges are answered. All are known before it is sent.
package struct RequestContext: Sendable {
    package var origin: Origin
    /// The sender of the challenges.
    package var source: ChallengeSource
    /// The implemented schemes.
    package var authenticators: AuthenticatorTable
    /// Whether the site is on the list, with the reason.
    package var site: ThreeChecks.Check
    /// The schemes that the site's line permits.
    package var permitted: [AuthenticationScheme]
    /// Whether the site's line contains `plaintext=yes`.
    package var plaintextPermitted: Bool
    /// Whether the site's line names its schemes.
    package var namesSchemes = true
    /// Whether the challenges are those of a parent proxy without TLS.
    package var isPlaintextParent = false
    /// Whether the client sent an authorization field of its own. If so, nothing of ours is sent.
    package var clientAuthorizes: Bool
    /// Why nothing is sent because of the cause of the request, such as a page of another origin; nil without an
    /// objection.
    package var foreignCause: Refusal?
    /// Whether the origin's certificate was verified, or the site is http. False if the caller continued although
    /// verification failed.
    package var originTrusted: Bool
    package var hasBody: Bool
    /// The answer that was accepted for earlier requests to this path of this origin with this credential. Nil without
    /// one, or if the site's line contains `preempt=no`.
    package var accepted: AcceptedAnswer?
    /// The domain for a user name without one (`ACME\jdoe`).
    package var domain: String?
    /// How user names and passwords beyond ASCII are sent, unless the challenge says it.
    package var charset: CredentialCharset
    /// The service principal name of the site's line, if it has one.
    package var configuredServicePrincipalName: String?

    /// Whether the user's ticket may be forwarded to the origin if the KDC permits it (`delegate=policy`).
    package var delegatesByPolicy: Bool
    /// Permits attempts at a KDC. Without it, no ticket is obtained with an enrolled password.
    package var kdcAttempts: KDCAttempts?

    package init(
        origin: Origin, source: ChallengeSource = .origin, authenticators: AuthenticatorTable,
        site: ThreeChecks.Check, permitted: [AuthenticationScheme], plaintextPermitted: Bool, clientAuthorizes: Bool,
        originTrusted: Bool, hasBody: Bool, accepted: AcceptedAnswer? = nil, domain: String? = nil,
        charset: CredentialCharset = .utf8, servicePrincipalName: String? = nil, delegatesByPolicy: Bool = false
    ) {
        self.origin = origin
        self.source = source
        self.authenticators = authenticators
        self.site = site
        self.permitted = permitted
        self.plaintextPermitted = plaintextPermitted
        self.clientAuthorizes = clientAuthorizes
        self.originTrusted = originTrusted
        self.hasBody = hasBody
        self.accepted = accepted
        self.domain = domain
        self.charset = charset
        configuredServicePrincipalName = servicePrincipalName
        self.delegatesByPolicy = delegatesByPolicy
    }

    /// `HTTP/host`, unless the site's line specifies another.
    package var servicePrincipalName: String { configuredServicePrincipalName ?? "HTTP/\(origin.host)" }

    /// Whether a check fails before anything is sent.
    var isRefused: Bool { !site.passed || !originTrusted || clientAuthorizes || foreignCause != nil }

    /// The result of the checks, if one of them fails before anything is sent.
    var refusal: ThreeChecks? {
        guard isRefused else { return nil }
        guard site.passed else { return ThreeChecks(site: site) }
        guard originTrusted else { return ThreeChecks(site: .no(.untrusted)) }
        if let foreignCause, !clientAuthorizes { return ThreeChecks(site: site, challenge: .no(foreignCause)) }
        return ThreeChecks(
            site: site,
            challenge: .no(Refusal(.ownAuthorization, "the client sent its own \(source.authorizationField)")))
    }

    /// The failed check, if the credential would be sent in plaintext without permission; otherwise nil.
    var plaintextRefusal: ThreeChecks.Check? {
        origin.scheme == .http && !plaintextPermitted ? .no(.plaintext) : nil
    }

    /// The failed check, if the scheme requires TLS and the connection has none; otherwise nil.
    package func transportRefusal(of authenticator: any Authenticator) -> ThreeChecks.Check? {
        let name = authenticator.name
        if isPlaintextParent, !plaintextPermitted, !authenticator.usesTicket {
            return .no(
                Refusal(.plaintext, "\(name) is sent to a parent without TLS only if its line says plaintext=yes"))
        }
        guard origin.scheme == .http else { return nil }
        return authenticator.requiresTLS ? .no(Refusal(.requiresTLS, "\(name) is answered over https only")) : nil
    }

    /// Those of `offers`, strongest first, that may be answered. Over http, anyone on the network path can make the
    /// stronger ones fail, or damage their challenges. So a password is sent in cleartext in place of one only if the
    /// site's line names its scheme.
    func withoutFallback(_ offers: [Offer], in challenges: [Challenge]) -> [Offer] {
        guard origin.scheme == .http, !namesSchemes else { return offers }
        let others = offers.filter { !$0.authenticator.sendsPassword }
        let isOther = { (challenge: Challenge) in
            authenticators.authenticators.contains {
                !$0.sendsPassword && permitted.contains($0.scheme) && challenge.isOf($0.schemeName)
                    && transportRefusal(of: $0) == nil
            }
        }
        return others.isEmpty && !challenges.contains { $0.isCut && isOther($0) } ? offers : others
    }

    /// Whether a response with this status may be a challenge although its status is not that of the source.
    func mayChallenge(withStatus status: Int) -> Bool {
        source == .origin
            && authenticators.authenticators.contains {
                $0.alsoChallenges(withStatus: status) && permitted.contains($0.scheme)
            }
    }

    /// Whether a response for which ``mayChallenge(withStatus:)`` is true and that has these challenge fields is one.
    func isChallenge(_ fields: [ChallengeField], _ status: Int) -> Bool {
        guard let challenges = try? ChallengeParser.parse(fields: fields) else { return false }
        return authenticators.authenticators.contains { authenticator in
            authenticator.alsoChallenges(withStatus: status) && permitted.contains(authenticator.scheme)
                && challenges.contains { $0.isOf(authenticator.schemeName) }
        }
    }

    /// ``accepted``, if the site's line still permits it, and it is not for another parent on the route.
    var usableAnswer: AcceptedAnswer? {
        guard let accepted, accepted.space.origin == origin, plaintextRefusal == nil,
            permitted.contains(accepted.space.scheme), transportRefusal(of: accepted.offer.authenticator) == nil
        else { return nil }
        return accepted
    }
}
