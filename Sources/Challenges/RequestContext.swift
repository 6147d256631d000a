// SPDX-License-Identifier: Apache-2.0

/// The facts about a request that decide how its challenges are answered. All of them are known before it is sent.
package struct RequestContext: Sendable {
    package var origin: Origin
    /// Who may challenge.
    package var source: ChallengeSource
    /// The schemes that are implemented.
    package var authenticators: AuthenticatorTable
    /// Is the site on the list, or why not?
    package var site: ThreeChecks.Check
    /// The schemes that the site's line permits.
    package var permitted: [AuthenticationScheme]
    /// The site's line says `plaintext=yes`.
    package var plaintextPermitted: Bool
    /// The client sent a field of its own with its answer, so nothing of ours is sent.
    package var clientAuthorizes: Bool
    /// The origin's certificate was verified, or the site is http. False if the caller went on regardless.
    package var originTrusted: Bool
    package var hasBody: Bool
    /// The answer that earlier requests got accepted for this path of this origin with this credential. Nil: none, or the
    /// site's line says `preempt=no`.
    package var accepted: AcceptedAnswer?
    /// Goes before a bare user name (`ACME\jdoe`).
    package var domain: String?
    /// The service principal name of the site's line, if it has one.
    package var configuredServicePrincipalName: String?

    package init(
        origin: Origin, source: ChallengeSource = .origin, authenticators: AuthenticatorTable,
        site: ThreeChecks.Check, permitted: [AuthenticationScheme], plaintextPermitted: Bool, clientAuthorizes: Bool,
        originTrusted: Bool, hasBody: Bool, accepted: AcceptedAnswer? = nil, domain: String? = nil,
        servicePrincipalName: String? = nil
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
        configuredServicePrincipalName = servicePrincipalName
    }

    /// `HTTP/host`, unless the site's line names another.
    package var servicePrincipalName: String { configuredServicePrincipalName ?? "HTTP/\(origin.host)" }

    /// Whether a check fails before anything is sent.
    var isRefused: Bool { !site.passed || !originTrusted || clientAuthorizes }

    /// The checks, if one of them fails before anything is sent.
    var refusal: ThreeChecks? {
        guard isRefused else { return nil }
        guard site.passed else { return ThreeChecks(site: site) }
        guard originTrusted else { return ThreeChecks(site: .no("the origin's certificate is not trusted")) }
        return ThreeChecks(site: site, challenge: .no("the client sent its own \(source.authorizationField)"))
    }

    /// The failed check of a site to which the credential would be sent in plaintext, or nil.
    var plaintextRefusal: ThreeChecks.Check? {
        origin.scheme == .http && !plaintextPermitted
            ? .no("site is http and its line does not say plaintext=yes") : nil
    }

    /// ``accepted``, if the site's line still permits it.
    var usableAnswer: AcceptedAnswer? {
        guard let accepted, plaintextRefusal == nil, permitted.contains(accepted.space.scheme) else { return nil }
        return accepted
    }
}
