// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import CountersignVault

/// One request to a provider for what a site requires. The new tokens replace the previous ones only if they are for
/// the same person and have all of the previous scopes; if the site requires more than scopes, the access token is for
/// that site alone. The sites and the certificate of the sign-in stay unchanged.
struct ScopeRequest: Sendable {
    let lack: ScopeAsker.Lack
    let requests: ScopeRequests
    let report: @Sendable (UserAgentKind, SignInEvent) -> Void

    /// How long a person has to sign in.
    private static let patience = Duration.seconds(600)
    /// Longer than a renewal takes if every request to the provider takes its full time.
    private static let renewalPatience = Duration.seconds(150)

    private var name: String { lack.token.name }

    enum Obtained {
        /// The access token of the sign-in has these scopes now.
        case scopes([String])
        /// There is a token for the site alone.
        case siteToken
    }

    func run() async throws -> Obtained {
        let record = try await requests.onQueue { try presentRecord() }
        // The profile that the person has agreed to; the document at its source may have changed since.
        let profile = try await requests.onQueue {
            let contents = try vault().contents
            return try record.signInProfile(contents, requests.keeper.home)
                .bound(to: contents.tokens[record.name]?.bound?.key)
        }
        guard !profile.usesBroker else {
            throw CountersignError(.refused, "the tokens of \"\(name)\" come from the identity broker")
        }
        guard !record.subject.isEmpty, profile.request.asksForIDToken else {
            throw CountersignError(
                .refused,
                "the profile of \"\(name)\" does not ask for the scope openid, so another account could "
                    + "take the place of yours unnoticed")
        }
        let kind = profile.userAgent ?? UserAgentKind.preferred(in: requests.environment)
        guard let agent = requests.agent(kind) else {
            throw CountersignError(.refused, "the user agent \(kind.rawValue) cannot be used by a server")
        }
        try profile.check(kind)
        let client = try requests.keeper.home.providerClient(now: requests.now)
        let granted = record.grantedScopes
        let found = try await LackedScopes(
            stepUp: lack.stepUp, metadata: lack.metadata, origin: lack.origin, target: lack.target
        ).found(besides: granted, issuer: profile.issuer, client) { requests.logger.info("\($0)") }
        var stepUp = found.stepUp
        stepUp.scopes = granted + stepUp.scopes
        var wider = try profile.adding(stepUp)
        var demand = found.stepUp.isForOneSite ? SiteDemand(found.stepUp, of: lack.origin) : nil
        // A profile that names resources has tokens for these alone (RFC 8707).
        if let resource = found.resource, !profile.request.resources.isEmpty,
            !profile.request.resources.contains(resource)
        {
            wider = wider.asking(for: resource)
            demand = SiteDemand(found.stepUp, of: lack.origin, resource: resource)
        }
        // A full disk is better noticed before a person has signed in.
        try await requests.onQueue { try vault().update { $0.touch() } }
        requests.logger.notice("\(lack.origin) \(found.stepUp.demand): asking \(profile.issuer) for it")
        let flow = SignInFlow(
            wider, client: client, agent: agent, limit: Self.patience, now: requests.now,
            report: { [report] in report(kind, $0) })
        let result = try await flow.run()
        try await check(result, stepUp.scopes, record, profile, client)
        // Shielded from a cancellation, after which the tokens would be lost.
        try await Task.detached { [demand] in try await store(result, record, kind, demand) }.value
        return demand == nil ? .scopes(found.stepUp.scopes) : .siteToken
    }

    private func vault() throws -> OpenVault {
        guard let vault = requests.keeper.vault else {
            throw CountersignError(.environment, HomeSnapshot.vaultIsLocked)
        }
        return vault
    }

    private func presentRecord() throws -> SignInRecord {
        let vault = try vault()
        try vault.reload()
        guard let record = vault.contents.signIns[name], record.ended.isEmpty else {
            throw CountersignError(.refused, "the sign-in \"\(name)\" has ended")
        }
        return record
    }

    /// Throws unless the tokens are for the same person and have at least the previous scopes. The tokens of the same
    /// person are not revoked: some providers end the whole sign-in with one of its tokens.
    private func check(
        _ result: SignInResult, _ scopes: [String], _ record: SignInRecord, _ profile: SignInProfile,
        _ client: ProviderClient
    ) async throws {
        guard let subject = result.idToken?.subject else {
            throw CountersignError(.refused, "the provider does not say who has signed in; nothing was changed")
        }
        guard subject == record.subject else {
            // A cancellation would end the request at once.
            let warning = await Task.detached { await client.revoke(result.tokens, of: profile).warning }.value
            if let warning { requests.logger.warning("the provider has not revoked the new tokens: \(warning)") }
            throw CountersignError(
                .refused, "another person has signed in than \(record.account.debugDescription); nothing was changed")
        }
        if let granted = result.tokens.scope?.split(separator: " ").map(String.init) {
            let refused = scopes.filter { !granted.contains($0) }
            guard refused.isEmpty else {
                let text = refused.joined(separator: " ")
                throw CountersignError(.refused, "the provider has not granted \(text); nothing was changed")
            }
        }
        guard record.refreshToken == nil || result.tokens.refreshToken != nil else {
            throw CountersignError(
                .refused, "the provider has sent no token to renew the new one; nothing was changed")
        }
    }

    /// Replaces the tokens, unless the person has signed in or out meanwhile. Waits for a renewal.
    private func store(
        _ result: SignInResult, _ record: SignInRecord, _ kind: UserAgentKind, _ demand: SiteDemand?
    ) async throws {
        let keeper = requests.keeper
        let lock = try await RenewalLock.acquire(
            RenewalLock.name(ofSignIn: name), of: keeper.home, patience: Self.renewalPatience, waits: {})
        guard let lock else {
            throw CountersignError(
                .refused, "another process is renewing the access token, so that the new one is not stored")
        }
        defer { withExtendedLifetime(lock) {} }
        try await requests.onQueue {
            let (vault, time) = (try vault(), requests.now())
            let token = try vault.update { contents -> Secret? in
                guard var newest = contents.signIns[name], newest.isSame(as: record), newest.ended.isEmpty else {
                    throw CountersignError(.refused, "the sign-in \"\(name)\" was changed meanwhile")
                }
                let tokens = SignInTokens(result.tokens)
                if let demand {
                    _ = try contents.store(
                        tokens, of: name, for: demand, expires: result.tokens.expiresAt, at: time)
                    return nil
                }
                newest.replaceTokens(with: tokens, of: result, at: time)
                newest.userAgent = kind.rawValue
                try contents.setSignIn(newest, accessToken: tokens.access)
                return tokens.access
            }
            if let token {
                let tag = CredentialTag(token: token, key: vault.tagKey)
                try? BreakerFile(home: keeper.home, now: requests.now).nameChanged(name, to: .tag(tag))
            }
            keeper.refresh(force: true)
        }
    }
}

extension SignInRecord {
    fileprivate var grantedScopes: [String] { scope.split(separator: " ").map(String.init) }

    /// The sign-in stays the same one: it keeps its identifier, to which its certificate belongs.
    fileprivate mutating func replaceTokens(with tokens: SignInTokens, of result: SignInResult, at time: Int64) {
        refreshToken = tokens.refresh
        identityToken = tokens.identity
        account = result.idToken?.accountName ?? account
        if let new = result.tokens.scope { scope = new }
        expires = result.tokens.expiresAt ?? 0
        (signedIn, obtained, renewed) = (time, time, 0)
        (failures, lastFailure) = (0, 0)
    }
}

extension ProtectedResourceError {
    /// The site does not accept tokens of the provider, so the request ends without a question to the person.
    var endsRequest: Bool { code == .otherIssuer || code == .noField }
}
