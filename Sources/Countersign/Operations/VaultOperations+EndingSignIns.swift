// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import CountersignVault

extension VaultOperations {
    /// While they are held, no other process renews a token of the sign-in, requests a certificate for it, wipes it or
    /// replaces it.
    struct RemovalLocks {
        fileprivate let signIn: RenewalLock
        fileprivate let identity: RenewalLock?
    }

    func removalLocks(
        of name: String, in vault: OpenVault, _ dialogue: OperationDialogue
    ) throws -> RemovalLocks {
        let lock = try renewalLock(name, dialogue, patience: Self.renewalPatience)
        return RemovalLocks(
            signIn: lock, identity: try ownsIdentity(name, in: vault) ? identityLock(name, dialogue) : nil)
    }

    /// Nil if another process has one of them.
    func removalLocksIfFree(of name: String, in vault: OpenVault) throws -> RemovalLocks? {
        guard let lock = try RenewalLock.acquireIfFree(RenewalLock.name(ofSignIn: name), of: home) else { return nil }
        guard try ownsIdentity(name, in: vault) else { return RemovalLocks(signIn: lock, identity: nil) }
        guard let identity = try RenewalLock.acquireIfFree(name, of: home) else { return nil }
        return RemovalLocks(signIn: lock, identity: identity)
    }

    /// Revokes the tokens at the provider, and then removes them and the sites, whether the provider has done it or
    /// not. The record is removed last: until then, the operation can be repeated, which the record shows.
    /// `identifier`: only the sign-in that has this one is removed.
    func removeSignIn(
        _ name: String, identifier: String? = nil, _ locks: RemovalLocks, _ dialogue: OperationDialogue
    ) throws -> Named<SignedOut> {
        guard let vault else { return .unknown(known: []) }
        defer { withExtendedLifetime(locks) {} }
        // A renewal may have replaced the tokens.
        let marked = try vault.update { contents -> SignInRecord? in
            guard var record = contents.signIns[name], record.identifier == identifier ?? record.identifier else {
                return nil
            }
            record.ended = SignInRecord.isSigningOut
            try contents.updateSignIn(record)
            return record
        }
        guard let record = marked else { return .unknown(known: signInNames) }
        let end = try revoke(record, vault.contents.tokens[name], dialogue)
        let scope = record.session
        // The secrets first: a fault in a file of sites may have to be corrected before the rest can be done.
        let isRemoved = try vault.update { contents in
            var bare = record
            (bare.refreshToken, bare.identityToken, bare.clientSecret) = (nil, nil, nil)
            bare.siteTokens = []
            try contents.updateSignIn(bare)
            if let scope, !contents.shares(scope, besides: name) {
                contents.removeSessions(group: scope.group, host: scope.host.text)
            }
            return contents.removeCertificate(of: record)
        }
        let profiles = try removeProfiles(of: name, dialogue)
        let sites = record.allSites
        try SignInSites(home: home, name: name).set([], replacing: sites)
        try BreakerFile(home: home, now: now).nameChanged(name, to: nil)
        // The file is left if this, or storing the sign-in, was interrupted before.
        if isRemoved || record.certificates != nil || record.formerSites != nil {
            try removeLeftFile(of: name, in: vault)
        }
        try vault.update { $0.removeSignIn(named: name) }
        if scope != nil {
            for other in vault.contents.signIns.values {
                try SignInSites(home: home, name: other.name).restoreSession(of: other.sites, without: sites)
            }
        }
        return .done(
            SignedOut(
                isRevoked: end.warning == nil, warning: end.warning, page: end.page, userAgent: end.userAgent,
                sites: record.sites, profiles: profiles))
    }

    private struct End: Sendable {
        /// Why the tokens were not revoked; nil if they were.
        var warning: String?
        /// Where the person can sign out.
        var page: String?
        var userAgent: String?
    }

    private func revoke(
        _ record: SignInRecord, _ token: TokenCredential?, _ dialogue: OperationDialogue
    ) throws -> End {
        let (home, now, contents) = (home, now, vault?.contents)
        let command = vault?.contents.wipes[record.name] == nil ? "unenroll" : "wipe"
        do {
            return try Blocking.run(isAbandoned: dialogue.isAbandoned) {
                let result = await Self.revoke(record, token, contents, home, now)
                try Task.checkCancellation()
                return result
            }
        } catch is CancellationError {
            throw CountersignError(
                .refused, "signing out was interrupted; the tokens may be revoked, but are not removed",
                hint: "complete it with `countersign \(command) \(record.name)`")
        }
    }

    private static func revoke(
        _ record: SignInRecord, _ token: TokenCredential?, _ contents: VaultContents?, _ home: Home,
        _ now: @escaping @Sendable () -> Int64
    ) async -> End {
        guard let token else { return End() }
        do {
            let profile = try record.signInProfile(contents, home)
            // The broker keeps the account and the refresh token, and has no way to revoke an access token.
            if profile.usesBroker { return End() }
            let client = try home.providerClient(now: now)
            let tokens = TokenSet(
                accessToken: token.token, expiresAt: nil, obtainedAt: record.signedIn,
                refreshToken: record.refreshToken, scope: nil, idToken: nil, clientInfo: nil)
            let (warning, metadata) = await client.revoke(tokens, of: profile)
            let hint = record.account.isEmpty ? nil : record.account
            // Nobody has signed in for a grant without a person.
            let place = profile.grant == nil ? metadata : nil
            let page = place.flatMap { EndSession.url(logoutHint: hint, client: profile.request.client, at: $0) }
            return End(
                warning: warning, page: page?.description, userAgent: record.userAgent.isEmpty ? nil : record.userAgent)
        } catch {
            return End(warning: Diagnostic.all(in: error).map(\.message).joined(separator: "; "))
        }
    }
}
