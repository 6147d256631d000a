// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignChallenges
import CountersignCookies
import CountersignCryptography
import CountersignSitePolicy
import CountersignTLS

/// The access token of a sign-in that is for one site alone.
package struct SiteToken: Equatable, Sendable {
    /// Has the name of the sign-in.
    package let token: TokenCredential
    /// In seconds since 1970.
    package let expires: Int64

    package init(token: TokenCredential, expires: Int64) {
        self.token = token
        self.expires = expires
    }
}

/// All configuration that decides an exchange, at one point in time. Immutable: a reload creates another policy, and an
/// exchange keeps the policy with which it started.
package final class Policy: Sendable {
    /// The credentials and identities that can answer challenges.
    package enum EnrolledMaterial: Sendable {
        /// No two credentials have the same name.
        case open(
            credentials: [String: PasswordCredential], tokens: [String: TokenCredential] = [:], identities: [Identity])
        /// The vault is closed, for the given reason.
        case closed(reason: Refusal)
    }

    package let sites: SiteList
    package let enrolled: EnrolledMaterial
    /// The Kerberos principals that are enrolled, by name; empty if the vault is closed. No credential has the same
    /// name.
    package let principals: [String: PrincipalCredential]
    /// The keys of AWS that are enrolled in one record, by name; empty if the vault is closed. No credential has the
    /// same name.
    package let awsKeys: [String: AWSCredential]
    /// When the access tokens of sign-ins expire, by their names, in seconds since 1970.
    package let expiryTimes: [String: Int64]
    /// The access tokens of sign-ins that are for one site alone: the site has required more of them than others do.
    package let siteTokens: [Origin: [String: SiteToken]]
    /// Why the credentials of these names do not answer although they are enrolled: the device does not comply with the
    /// policy of their organisation. Neither ``enrolled`` nor ``principals`` has them.
    package let withheld: [String: Refusal]
    /// Why there is no secret for the credentials of these names, which programs write: a program has failed, or has
    /// not ended yet. Neither ``enrolled`` nor ``principals`` has them.
    package let unwritten: [String: Refusal]
    /// The same as ``withheld`` of identities.
    package let withheldIdentities: [String: Refusal]
    /// The shared sessions that are withheld with them.
    package let withheldSessions: Set<SharedSession.Key>
    /// The accounts at the identity broker of the sign-ins whose tokens come from it, by the sign-ins' names.
    package let brokerAccounts: [String: BrokerCookies.Account]
    /// For connections to origins; contains the trust anchors.
    package let originTLS: TLSClientContext
    /// Issues the leaf certificates that intercepted clients receive. Nil if no site is intercepted or the vault is
    /// closed.
    package let interceptionAuthority: InterceptionAuthority?
    /// The user's decisions to continue although a certificate cannot be verified, including expired ones.
    package let trustExceptions: [Origin: [TrustException]]
    /// Incremented by every reload.
    package let generation: UInt64
    /// Whether any credential is stored for one origin alone. If not, requests need not compute the name of such a
    /// credential.
    package let hasCredentialsOfOrigins: Bool

    package init(
        sites: SiteList, enrolled: EnrolledMaterial, principals: [String: PrincipalCredential] = [:],
        awsKeys: [String: AWSCredential] = [:], expiryTimes: [String: Int64] = [:],
        siteTokens: [Origin: [String: SiteToken]] = [:],
        withheld: [String: Refusal] = [:], withheldIdentities: [String: Refusal] = [:],
        withheldSessions: Set<SharedSession.Key> = [], unwritten: [String: Refusal] = [:],
        brokerAccounts: [String: BrokerCookies.Account] = [:],
        originTLS: TLSClientContext, interceptionAuthority: InterceptionAuthority?,
        trustExceptions: [Origin: [TrustException]] = [:], generation: UInt64
    ) {
        self.sites = sites
        self.enrolled = enrolled
        self.principals = principals
        self.awsKeys = awsKeys
        self.expiryTimes = expiryTimes
        self.siteTokens = siteTokens
        self.withheld = withheld
        self.withheldIdentities = withheldIdentities
        self.withheldSessions = withheldSessions
        self.unwritten = unwritten
        self.brokerAccounts = brokerAccounts
        self.originTLS = originTLS
        self.interceptionAuthority = interceptionAuthority
        self.trustExceptions = trustExceptions
        self.generation = generation
        hasCredentialsOfOrigins =
            if case .open(let credentials, let tokens, _) = enrolled {
                credentials.keys.contains { OriginCredentialName.isOne($0) }
                    || tokens.keys.contains { OriginCredentialName.isOne($0) }
            } else { false }
    }

    /// The same policy for other `sites`, whose certificates `authority` issues.
    package func intercepting(_ sites: SiteList, with authority: InterceptionAuthority) -> Policy {
        Policy(
            sites: sites, enrolled: enrolled, principals: principals, awsKeys: awsKeys, expiryTimes: expiryTimes,
            siteTokens: siteTokens, withheld: withheld, withheldIdentities: withheldIdentities,
            withheldSessions: withheldSessions, unwritten: unwritten,
            brokerAccounts: brokerAccounts, originTLS: originTLS, interceptionAuthority: authority,
            trustExceptions: trustExceptions, generation: generation)
    }

    /// Whether an answer with `credential` may be kept: it does not come from the vault, or the vault is open and still
    /// has it.
    package func mayKeep(_ credential: CredentialReference) -> Bool {
        guard case .vault = credential.source else { return true }
        return self.credential(named: credential.name)?.reference == credential || siteToken(credential) != nil
    }

    /// The password, token, principal or keys of that name; also nil if the vault is closed.
    package func credential(named name: String) -> EnrolledCredential? {
        guard case .open(let credentials, let tokens, _) = enrolled else { return nil }
        return credentials[name].map { .password($0) } ?? tokens[name].map { .token($0) }
            ?? principals[name].map { .principal($0) } ?? awsKeys[name].map { .aws($0) }
    }

    /// The same for requests to `origin`, which may have an access token of its own.
    package func credential(named name: String, at origin: Origin) -> EnrolledCredential? {
        guard case .open = enrolled else { return nil }
        // Most policies have no such token.
        if siteTokens.isEmpty { return credential(named: name) }
        return siteTokens[origin]?[name].map { .token($0.token) } ?? credential(named: name)
    }

    private func siteToken(_ credential: CredentialReference) -> SiteToken? {
        guard !siteTokens.isEmpty, case .open = enrolled else { return nil }
        return siteTokens.values.lazy.compactMap { $0[credential.name] }.first { $0.token.reference == credential }
    }

    /// Whether there are client identities.
    package var hasIdentities: Bool {
        if case .open(_, _, let identities) = enrolled { !identities.isEmpty } else { false }
    }

    /// Whether a credential is the access token of a sign-in.
    package func isAccessToken(_ credential: CredentialReference) -> Bool {
        guard !expiryTimes.isEmpty, case .vault = credential.source else { return false }
        return expiryTimes[credential.name] != nil
    }

    /// Whether the credential of that name is the access token of a sign-in.
    package func isAccessToken(named name: String) -> Bool {
        credential(named: name)?.reference.map(isAccessToken) ?? false
    }

    /// Whether a credential has expired, so that it has to be renewed before it is used. `now` is in seconds since
    /// 1970, and called only if there are sign-ins.
    package func hasExpired(_ credential: CredentialReference, now: () -> Int64) -> Bool {
        guard isAccessToken(credential) else { return false }
        guard let time = siteToken(credential)?.expires ?? expiryTimes[credential.name] else { return false }
        return time <= now()
    }

    /// The credentials that can answer challenges.
    package var credentialReferences: Set<CredentialReference> {
        guard case .open(let credentials, let tokens, _) = enrolled else { return [] }
        return Set(credentials.values.map(\.reference)).union(tokens.values.map(\.reference))
            .union(principals.values.map(\.reference))
            .union(siteTokens.values.flatMap { $0.values.map(\.token.reference) })
    }

    // MARK: Trust exceptions

    /// The exceptions for an origin that are in force at `now`, in seconds since 1970.
    package func trustExceptions(for origin: Origin, now: Int64) -> [TrustException] {
        guard let decisions = trustExceptions[origin] else { return [] }
        return decisions.filter { $0.counts(at: now) }
    }

    /// The exception for an origin with this leaf certificate, if one is in force at `now`, in seconds since 1970.
    package func trustException(for origin: Origin, leaf: [UInt8], now: Int64) -> TrustException? {
        trustExceptions(for: origin, now: now).first { $0.leaf == leaf }
    }

    // MARK: The three checks

    /// The context of requests to `origin`, if the origin is trusted and the client does not authenticate itself.
    package func requestContext(to origin: Origin, _ verdict: SiteVerdict) -> RequestContext {
        let rule: SiteRule? = if case .answer(let rule) = verdict { rule } else { nil }
        var context = RequestContext(
            origin: origin, authenticators: .supported, site: siteCheck(verdict), permitted: rule?.answer ?? [],
            plaintextPermitted: rule?.answersPlaintext ?? false, clientAuthorizes: false, originTrusted: true,
            hasBody: false, domain: rule?.domain, charset: rule?.charset ?? .utf8,
            servicePrincipalName: rule?.servicePrincipalName, delegatesByPolicy: rule?.delegatesByPolicy ?? false)
        context.namesSchemes = rule?.namesAnswer ?? false
        return context
    }

    /// The first check: is the site on the list?
    package func siteCheck(_ verdict: SiteVerdict) -> ThreeChecks.Check {
        switch verdict {
        case .answer(let rule): .yes("listed at \(rule.location)")
        case .tunnel(let reason), .refuse(let reason): .no(reason)
        }
    }

    /// The third check for a challenge of `scheme`, or for any that `rule` permits. Returns the first credential that
    /// the scheme can use: the one stored for `origin` alone, then the one that `rule` names.
    package func credentialDecision(
        for rule: SiteRule, at origin: Origin, scheme: AuthenticationScheme? = nil
    ) -> CredentialDecision {
        let own = hasCredentialsOfOrigins ? [OriginCredentialName(origin)] : []
        return decision(for: rule, at: origin, scheme, own) { _ in false }.unlessDry(rule)
    }

    /// The third check for a challenge of `space`. Returns the first credential that the scheme can use: the one stored
    /// for the space alone, the one stored for its origin alone, each unless `isRejected` is true of it, then the one
    /// that `rule` names.
    package func credentialDecision(
        for rule: SiteRule, in space: AuthenticationSpace, isRejected: (CredentialReference) -> Bool
    ) -> CredentialDecision {
        let own =
            hasCredentialsOfOrigins
            ? [OriginCredentialName(space.origin, realm: space.realm), OriginCredentialName(space.origin)] : []
        return decision(for: rule, at: space.origin, space.scheme, own, isRejected: isRejected).unlessDry(rule)
    }

    private func decision(
        for rule: SiteRule, at origin: Origin, _ scheme: AuthenticationScheme?, _ own: [OriginCredentialName],
        isRejected: (CredentialReference) -> Bool
    ) -> CredentialDecision {
        if case .closed(let reason) = enrolled { return .performDefaultHandling(reason: reason) }
        let schemes = scheme.map { [$0] } ?? rule.answer
        func isUsable(_ credential: EnrolledCredential) -> Bool { schemes.contains { $0.uses(credential) } }
        let stored = own.compactMap { self.credential(named: $0.text) }.filter(isUsable)
        if let own = stored.first(where: { $0.reference.map(isRejected) == false }) { return .useCredential(own) }
        let named = credential(named: rule.credential, at: origin)
        if let named, isUsable(named) { return .useCredential(named) }
        // The breaker refuses it. Without it, a weaker scheme would be answered.
        if let rejected = stored.first { return .useCredential(rejected) }
        if let reason = withheld[rule.credential] { return .performDefaultHandling(reason: reason) }
        if let reason = unwritten[rule.credential] { return .rejectProtectionSpace(reason: reason) }
        let state = named.map { "is \($0.isNot)" }
        return .rejectProtectionSpace(
            reason: Refusal(
                .noCredential,
                state.map { "credential \"\(rule.credential)\" \($0)" }
                    ?? "no credential \"\(rule.credential)\" is enrolled"))
    }

    private func noPassword(_ name: String) -> String {
        principals[name] == nil
            ? "no credential \"\(name)\" is enrolled" : "credential \"\(name)\" is only for Kerberos"
    }

    /// The third check for a token that `rule` adds to each request, or for the keys with which it is signed: those in
    /// one record, or a user name and a password. A token that is bound to a key proves nothing without it (RFC 9449).
    package func injectionDecision(for rule: SiteRule, at origin: Origin) -> CredentialDecision {
        if case .aws? = rule.injection?.place {
            guard case .open = enrolled, let keys = awsKeys[rule.credential] else {
                return credentialDecision(for: rule, at: origin, scheme: .basic)
            }
            return CredentialDecision.useCredential(.aws(keys)).unlessDry(rule)
        }
        let decision = credentialDecision(for: rule, at: origin, scheme: .bearer)
        guard case .useCredential(.token(let token)) = decision, token.bound != nil else { return decision }
        return .performDefaultHandling(
            reason: Refusal(
                .noCredential, "credential \"\(token.name)\" is bound to a key, so that it cannot be injected"))
    }

    /// The third check for Kerberos: the principal that `rule` names, or else the user's own ticket.
    package func ticketDecision(for rule: SiteRule) -> CredentialDecision {
        if case .closed(let reason) = enrolled { return .performDefaultHandling(reason: reason) }
        return .useCredential(principals[rule.credential].map { .principal($0) } ?? .ticket).unlessDry(rule)
    }

    /// The account with which the identity broker signs a person in at a site with this rule. A line that names a
    /// credential never gets another account than that one's.
    package func brokerAccount(for rule: SiteRule) -> BrokerCookies.Account {
        if case .closed(let reason) = enrolled { return .none(reason: reason.text) }
        if rule.isDryRun { return .none(reason: Refusal.dryRun("the identity broker's account").text) }
        if let account = brokerAccounts[rule.credential] { return account }
        guard rule.namesCredential else { return .only }
        return .none(reason: "credential \"\(rule.credential)\" is not a sign-in of the identity broker")
    }

    /// Whether a header of `account` may still be used.
    package func mayUse(_ account: BrokerCookies.Account) -> Bool {
        guard case .open = enrolled else { return false }
        return switch account {
        case .only: true
        case .signIn(let name, _, _): brokerAccounts[name] == account
        case .none: false
        }
    }

    /// The third check for a certificate request: the identity to present, or the reason for its absence.
    package func identity(
        for request: CertificateRequest?, rule: SiteRule, now: Int64
    ) -> (identity: Identity?, check: ThreeChecks.Check) {
        let identities: [Identity]
        switch enrolled {
        case .closed(let reason): return (nil, .no(reason))
        case .open(_, _, let all): identities = all
        }
        let choice = Identity.choose(
            among: identities, acceptableIssuers: request?.acceptableIssuers ?? [],
            signatureAlgorithms: request?.signatureAlgorithms ?? [], at: now, preferring: rule.identity)
        switch choice {
        case .identity(let identity, _) where rule.isDryRun:
            return (nil, .no(.dryRun("identity \"\(identity.name)\"")))
        case .identity(let identity, fitting: 1): return (identity, .yes("identity \"\(identity.name)\""))
        case .identity(let identity, let count):
            return (identity, .yes("identity \"\(identity.name)\", 1 of \(count); set identity="))
        case .none(let reason):
            let fault = { Refusal(Self.fault(of: identities, preferring: rule.identity, at: now), reason) }
            return (nil, .no(withheldReason(for: rule) ?? fault()))
        }
    }

    /// Why none of `identities` is presented. One that has expired can be renewed.
    private static func fault(of identities: [Identity], preferring name: String?, at now: Int64) -> Refusal.Cause {
        let candidates = identities.filter { name == nil || $0.name == name }
        guard !candidates.isEmpty else { return .noIdentity(named: name) }
        let expired = candidates.first { identity in
            if case .expired? = identity.obstacle(acceptableIssuers: [], at: now) { true } else { false }
        }
        return expired.map { .expiredIdentity($0.name) } ?? .unsuitableIdentities
    }

    /// Why the identity for a site with this rule is withheld; nil if that is not so.
    func withheldReason(for rule: SiteRule) -> Refusal? {
        guard !withheld.isEmpty else { return nil }
        let name = rule.identity ?? rule.credential
        return withheldIdentities[name] ?? withheld[name]
    }

    /// All three checks for a certificate request of a listed origin.
    package func certificateChecks(
        for request: CertificateRequest, rule: SiteRule, now: Int64
    ) -> (identity: Identity?, checks: ThreeChecks) {
        var checks = ThreeChecks(site: .yes("listed at \(rule.location)"))
        guard rule.answer.contains(.certificate) else {
            checks.challenge = .no(
                Refusal(.notPermitted([.certificate]), "client certificates are not among the site's answer="))
            return (nil, checks)
        }
        checks.challenge = .yes("client certificate")
        let (identity, check) = identity(for: request, rule: rule, now: now)
        checks.credential = check
        return (identity, checks)
    }
}

extension CredentialDecision {
    /// The same decision; in a dry run, a sentence about it in place of the credential.
    func unlessDry(_ rule: SiteRule) -> CredentialDecision {
        guard rule.isDryRun, case .useCredential(let credential) = self else { return self }
        guard let name = credential.reference?.name, credential.reference != .ticket else {
            return .performDefaultHandling(
                reason: .dryRun(credential.reference == .ticket ? "the Kerberos ticket" : "nothing"))
        }
        return .performDefaultHandling(reason: .dryRun("credential \"\(name)\""))
    }
}
