// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignDeviceManagement
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import CountersignVault

/// One renewal of a sign-in's tokens. The caller holds the sign-in's ``RenewalLock``.
struct SignInRenewal: Sendable {
    /// The sign-in before.
    let record: SignInRecord
    let token: TokenCredential
    /// The vault that was open when the renewal began.
    let firstVault: OpenVault
    let renewals: SignInRenewals
    /// For a token that is for one site alone; nil for the sign-in's own.
    var demand: SiteDemand?

    /// The currently open vault: after a change of the passphrase, only that one can be written. New tokens are stored
    /// even while the vault is locked.
    private var vault: OpenVault { renewals.openVault() ?? firstVault }

    /// Tokens from the provider.
    struct Received: Sendable {
        let tokens: TokenSet
        /// The access token is new and can be stored. Otherwise only the refresh token is of use.
        let isWhole: Bool
    }

    /// The person has signed in again or out since the renewal began, so that its tokens have no place.
    struct Superseded: DiagnosableError {
        let name: String
        var detail: String { "the sign-in \"\(name)\" was changed meanwhile" }
        var hint: String? { nil }
    }

    // MARK: The provider

    /// Asks the provider for new tokens. Returns those that it has sent, which may be useful in spite of a failure. The
    /// refresh token is stored at once if that is possible.
    func ask() async -> (received: Received?, failure: (any Error)?) {
        var received: Received?
        do {
            try await ask(&received)
            return (received, nil)
        } catch {
            return (received, error)
        }
    }

    private func ask(_ received: inout Received?) async throws {
        // A rotated token that cannot be stored is lost if this process ends.
        try await renewals.onQueue { try vault.update { $0.touch() } }
        let own = try await keyedProfile()
        let profile = try demand.map { try $0.wider(own) } ?? own
        if profile.usesBroker {
            received = try await askBroker(profile)
            return
        }
        if profile.grant != nil {
            received = try await askGrant(profile)
            return
        }
        let client = try renewals.home.providerClient(now: renewals.now)
        var machine = machine(profile)
        var action = machine.start()
        var hasSentToken = false
        while true {
            switch action {
            case .send(let request):
                if !hasSentToken { try Task.checkCancellation() }
                let outcome: ProviderOutcome
                if request.body == nil {
                    outcome = await client.send(request)
                } else {
                    hasSentToken = true
                    // A task of its own, which a cancellation does not reach.
                    outcome = await Task.detached { await client.send(request) }.value
                }
                action = machine.received(outcome, now: renewals.now())
                outcome.wipe()
            case .store(let tokens):
                let rotated = Received(tokens: tokens, isWhole: false)
                received = rotated
                // If it fails, the caller tries again with the access token.
                _ = try? await renewals.onQueue { try store(rotated) }
                action = machine.stored()
            case .finish(let tokens, _):
                if profile.metadata == nil { remember(machine.metadata, machine.keys) }
                let isWhole =
                    TokenCredential.isStorable(tokens.accessToken)
                    && tokens.accessToken.count <= VaultLimits.passwordBytes
                if isWhole || tokens.refreshToken != record.refreshToken {
                    received = Received(tokens: tokens, isWhole: isWhole)
                }
                guard isWhole else {
                    throw CountersignError(.refused, "the provider sent an access token that cannot be stored")
                }
                return
            case .fail(let error, discardsTokens: _):
                // The request for the metadata was ended by this process, and not by the provider.
                if !hasSentToken { try Task.checkCancellation() }
                if let tokens = machine.tokensToRevoke {
                    _ = await Task.detached { await client.revoke(tokens, of: profile) }.value
                }
                // The provider's metadata may have changed.
                remember(nil, nil)
                throw error
            }
        }
    }

    /// With what its client proves who it is with. A key may be in a token, which blocks.
    private func keyedProfile() async throws -> SignInProfile {
        try await renewals.onQueue {
            try record.signInProfile(vault.contents, renewals.home).bound(to: token.bound?.key)
        }
    }

    private func askBroker(_ profile: SignInProfile) async throws -> Received {
        let broker = BrokerSignIn(profile, environment: renewals.environment, now: renewals.now)
        let tokens = try await broker.renew(record.name, subject: record.subject, replacing: token.token)
        guard tokens.accessToken.count <= VaultLimits.passwordBytes else {
            throw CountersignError(.refused, "the identity broker sent an access token that cannot be stored")
        }
        return Received(tokens: tokens, isWhole: true)
    }

    private func askGrant(_ profile: SignInProfile) async throws -> Received {
        let client = try renewals.home.providerClient(now: renewals.now)
        let tokens = try await GrantFlow(profile, client: client, now: renewals.now).run()
        guard TokenCredential.isStorable(tokens.accessToken), tokens.accessToken.count <= VaultLimits.passwordBytes
        else {
            throw CountersignError(.refused, "the provider sent an access token that cannot be stored")
        }
        return Received(tokens: tokens, isWhole: true)
    }

    private func machine(_ profile: SignInProfile) -> TokenRefresh {
        // What the provider of another profile with this issuer publishes does not count.
        let isNamed = profile.metadata != nil
        let (metadata, keys) = renewals.state.withLock { state in
            isNamed ? (profile.metadata, nil) : (state.metadata[record.issuer], state.keys[record.issuer])
        }
        let tokens = TokenSet(
            accessToken: token.stored, expiresAt: record.expires == 0 ? nil : record.expires,
            obtainedAt: record.signedIn, refreshToken: record.refreshToken, scope: record.scope,
            idToken: record.identityToken, clientInfo: nil)
        return TokenRefresh(
            tokens, issuer: profile.issuer, profile.request, subject: record.subject.isEmpty ? nil : record.subject,
            metadata: metadata, keys: keys, transport: profile.transport)
    }

    private func remember(_ metadata: ProviderMetadata?, _ keys: KeySet?) {
        renewals.state.withLock { state in
            state.metadata[record.issuer] = metadata
            if let keys { state.keys[record.issuer] = keys }
        }
    }

    /// Returns why the provider has not revoked the tokens; nil if it has.
    func revoke(_ received: Received) async -> String? {
        do {
            let profile = try await keyedProfile()
            // The broker keeps its tokens.
            if profile.usesBroker { return nil }
            let client = try renewals.home.providerClient(now: renewals.now)
            // A task of its own, which a cancellation does not reach.
            return await Task.detached { await client.revoke(received.tokens, of: profile).warning }.value
        } catch {
            return SignInRenewals.text(error)
        }
    }

    // MARK: The vault

    /// Stores the tokens, and returns the access token if it is new. Throws ``Superseded`` if they belong to a former
    /// sign-in.
    func store(_ received: Received) throws -> TokenCredential? {
        let vault = vault
        let stored = try vault.update { contents -> TokenCredential? in
            var newest = try newest(received, in: contents)
            guard received.isWhole else {
                newest.refreshToken = received.tokens.refreshToken
                try contents.updateSignIn(newest)
                return nil
            }
            if let demand {
                return try contents.store(
                    SignInTokens(received.tokens), of: record.name, for: demand, expires: received.tokens.expiresAt,
                    at: renewals.now())
            }
            newest.take(received.tokens)
            try contents.setSignIn(newest, accessToken: received.tokens.accessToken)
            try contents.noteCompliance(of: record.name, at: renewals.now())
            return contents.tokens[record.name]
        }
        guard let new = stored?.tagged(with: vault.tagKey) else { return nil }
        if let tag = new.tag, demand == nil {
            try? BreakerFile(home: renewals.home, now: renewals.now).nameChanged(record.name, to: .tag(tag))
        }
        return new
    }

    /// With `outcome`, the device does not comply, and challenges of the sign-in are no longer answered.
    func noteFailure(_ received: Received?, _ outcome: ComplianceOutcome? = nil) throws {
        let time = renewals.now()
        try vault.update { contents in
            var newest = try newest(received, in: contents)
            newest.failures = newest.failures &+ 1
            newest.lastFailure = time
            try contents.updateSignIn(newest)
            if let outcome { try contents.note(outcome, of: record.name, at: time) }
        }
    }

    /// Asks the compliance service, and opens no browser. Nil if the profile names none.
    func remediateSilently() async -> ComplianceOutcome? {
        guard let profile = try? SignInProfile(Array(record.profile.utf8)),
            let client = try? renewals.home.providerClient(now: renewals.now),
            let flow = ComplianceFlow(
                profile, client: client, languages: PreferredLanguages.field(in: renewals.environment),
                limit: ComplianceFlow.silentLimit, now: renewals.now)
        else { return nil }
        let isValid = record.expires == 0 || record.expires > renewals.now()
        return await flow.remediate(
            record.complianceAccount(in: vault.contents), token: isValid && token.bound == nil ? token.token : nil,
            show: nil)
    }

    /// Ends the sign-in, and discards its refresh token: the provider calls it invalid, or the vault can never store
    /// the one that replaces it.
    func end(because reason: String, _ received: Received? = nil) throws {
        try vault.update { contents in
            var newest = try newest(received, in: contents)
            newest.refreshToken = nil
            newest.ended = String(reason.prefix(1000))
            try contents.updateSignIn(newest)
        }
    }

    /// The vault's present record of the sign-in.
    private func newest(_ received: Received?, in contents: VaultContents) throws(Superseded) -> SignInRecord {
        guard let newest = contents.signIns[record.name], newest.isSame(as: record), newest.ended.isEmpty,
            newest.refreshToken == record.refreshToken || newest.refreshToken == received?.tokens.refreshToken
        else { throw Superseded(name: record.name) }
        return newest
    }
}

extension SignInRecord {
    /// Takes the tokens of a renewal.
    fileprivate mutating func take(_ tokens: TokenSet) {
        let stored = SignInTokens(tokens)
        refreshToken = stored.refresh
        identityToken = stored.identity ?? identityToken
        expires = tokens.expiresAt ?? 0
        obtained = tokens.obtainedAt
        renewed = tokens.obtainedAt
        if let new = tokens.scope, VaultLimits.isSignInLine(new) { scope = new }
        failures = 0
        lastFailure = 0
    }
}
