// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignEnrollment
import CountersignOAuth
package import CountersignSignIn
import CountersignVault

extension VaultOperations {
    func signIns() -> [ListedSignIn] {
        (vault?.contents.signIns ?? [:]).values.map { ListedSignIn($0) }.sorted { $0.name < $1.name }
    }

    /// Throws unless a sign-in of that name can be stored. Writes the vault, because a full disk is better noticed
    /// before a person has signed in. Returns the sign-in that would be replaced.
    func checkSignIn(_ name: String, _ sites: [String]) throws -> VaultResult {
        try SignInName.check(name)
        try SignInSites(home: home, name: name).check(sites)
        let former = try opened().update { contents in
            if contents.signIns[name] == nil, contents.credentialNames.contains(name) {
                throw CountersignError(
                    .nameInUse, "credential \(name.debugDescription) exists and is no sign-in",
                    hint: "choose another name with --name, or remove it with `countersign credential remove \(name)`")
            }
            contents.touch()
            return contents.signIns[name]
        }
        return .signIns(former.map { [ListedSignIn($0)] } ?? [])
    }

    /// The vault comes first: without the tokens, the sites would be of no use.
    func storeSignIn(_ new: NewSignIn, _ tokens: SignInTokens) throws -> VaultResult {
        try SignInName.check(new.name)
        let record = SignInRecord(
            name: new.name, profile: new.profile, source: new.source, issuer: new.issuer, subject: new.subject,
            account: new.account, scope: new.scope, sites: new.sites, refreshToken: tokens.refresh,
            identityToken: tokens.identity, signedIn: new.signedIn, expires: new.expires)
        let vault = try opened()
        let lock = try renewalLock(new.name, isAbandoned: nil)
        defer { withExtendedLifetime(lock) {} }
        let former = try vault.update { contents in
            let former = contents.signIns[new.name]
            try contents.setSignIn(record, accessToken: tokens.access)
            return former
        }
        try SignInSites(home: home, name: new.name).set(new.sites, replacing: former?.sites ?? [])
        let tag = CredentialTag(token: tokens.access, key: vault.tagKey)
        try BreakerFile(home: home, now: now).nameChanged(new.name, to: .tag(tag))
        return .done
    }

    /// Revokes the tokens at the provider, and removes them and the sites whether that succeeds or not.
    func removeSignIn(_ name: String, _ dialogue: OperationDialogue) throws -> VaultResult {
        guard let vault, vault.contents.signIns[name] != nil else { return unknownSignIn }
        let lock = try renewalLock(name, isAbandoned: dialogue.isAbandoned)
        defer { withExtendedLifetime(lock) {} }
        // A renewal may have replaced the tokens.
        let record = try vault.update { contents in
            let record = contents.signIns[name]
            if var ended = record {
                ended.ended = "the person has signed out"
                try contents.updateSignIn(ended)
            }
            return record
        }
        guard let record else { return unknownSignIn }
        let tokens = vault.contents.tokens[name]
        let (warning, page) = try Blocking.run(isAbandoned: dialogue.isAbandoned) { [home, now] in
            await Self.revoke(record, tokens, home, now)
        }
        try SignInSites(home: home, name: name).set([], replacing: record.sites)
        try vault.update { _ = $0.removeSignIn(named: name) }
        try BreakerFile(home: home, now: now).nameChanged(name, to: nil)
        return .signedOut(
            SignedOut(isRevoked: warning == nil, warning: warning, page: page, sites: record.sites))
    }

    private var unknownSignIn: VaultResult {
        .removed(count: 0, known: Set((vault?.contents.signIns ?? [:]).keys))
    }

    /// Waits until no token of the sign-in is being renewed, and keeps others from it.
    private func renewalLock(_ name: String, isAbandoned: (() -> Bool)?) throws -> RenewalLock {
        let lock = try Blocking.run(isAbandoned: isAbandoned) { [home] in
            try await RenewalLock.acquire(
                RenewalLock.name(ofSignIn: name), of: home, patience: Self.renewalPatience, waits: {})
        }
        guard let lock else {
            throw CountersignError(
                .refused, "another process is renewing the access token of \(name.debugDescription)",
                hint: "try again")
        }
        return lock
    }

    /// Longer than a renewal takes if every request to the provider takes its full time.
    private static let renewalPatience = Duration.seconds(150)

    /// Returns why the tokens were not revoked, if so, and where the person can sign out.
    private static func revoke(
        _ record: SignInRecord, _ token: TokenCredential?, _ home: Home, _ now: @escaping @Sendable () -> Int64
    ) async -> (warning: String?, page: String?) {
        do {
            let profile = try SignInProfile(Array(record.profile.utf8))
            let client = try home.providerClient(now: now)
            let metadata = try await client.metadata(of: profile)
            let page = EndSession.url(idToken: nil, client: profile.request.client, at: metadata)?.description
            guard metadata.revocationEndpoint != nil else { return ("it has no revocation endpoint", page) }
            guard let token else { return (nil, page) }
            let tokens = TokenSet(
                accessToken: token.token, expiresAt: nil, obtainedAt: record.signedIn,
                refreshToken: record.refreshToken, scope: nil, idToken: nil, clientInfo: nil)
            for request in TokenRevocation.requests(tokens, client: profile.request.client, at: metadata) {
                do throws(OAuthError) {
                    try TokenRevocation.check(await client.send(request))
                } catch {
                    // Some providers revoke refresh tokens only; access tokens expire soon.
                    if error.providerCode?.error != "unsupported_token_type" { return (error.detail, page) }
                }
            }
            return (nil, page)
        } catch {
            return (Diagnostic.all(in: error).map(\.message).joined(separator: "; "), nil)
        }
    }
}

extension ProviderClient {
    /// What the profile's provider says about itself. Throws ``OAuthError``.
    fileprivate func metadata(of profile: SignInProfile) async throws -> ProviderMetadata {
        for location in profile.issuer.metadataLocations {
            guard case .response(let response) = await send(ProviderRequest(.metadata, location)),
                response.status == 200
            else { continue }
            return try ProviderMetadata(parsing: response.body, issuer: profile.issuer, profile.transport)
        }
        throw SignInError(.unreachable, "\(profile.issuer) cannot be reached")
    }
}

extension Home {
    /// A client for providers, which trusts the system's anchors and those in `Certs/anchors`, and never the home's own
    /// interception CA.
    package func providerClient(now: @escaping @Sendable () -> Int64) throws -> ProviderClient {
        let anchors = try anchorFiles()
        return ProviderClient(
            anchors: .implicit(additional: anchors.certificates, revocationLists: anchors.revocationLists),
            refusing: try InterceptionStore(home: self).root().map { [$0] } ?? [], now: now)
    }
}
