// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignOAuth
import CountersignProxy
import CountersignSignIn
import CountersignVault
import Dispatch
import Glibc
import Logging
import Synchronization

/// Renews the access tokens of a home's sign-ins, when a request needs one.
///
/// Of the requests that need the same token, one renews it and the others wait, in this process and in others: a
/// provider that rotates refresh tokens takes a second use of one for theft (RFC 9700 §4.14.2).
final class SignInRenewals: Sendable {
    private let keeper: PolicyKeeper
    private let logger: Logger
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    /// How long another process may take for its renewal.
    private static let patience = Duration.seconds(60)
    /// The longest pause after failures, in seconds.
    private static let longestPause: Int64 = 60

    /// A token that was renewed is not renewed again for so many seconds because an origin calls it invalid: another
    /// one would be no better.
    private static let invalidInterval: Int64 = 300

    private struct State: Sendable {
        /// Renewals in progress, by name.
        var running: [String: Task<TokenRenewer.Outcome, Never>] = [:]
        /// No renewal begins any more.
        var isStopped = false
        /// New tokens that could not be stored yet, by name. Without them, the sign-in would be lost.
        var unstored: [String: Unstored] = [:]
        /// When tokens were renewed last, by name, in seconds since 1970.
        var renewed: [String: Int64] = [:]
        /// What the providers say about themselves, by issuer.
        var metadata: [String: ProviderMetadata] = [:]
        var keys: [String: KeySet] = [:]
    }

    private struct Unstored: Sendable {
        /// The refresh token that they replace.
        let before: Secret?
        let tokens: TokenSet
        /// The access token is new, too.
        let isWhole: Bool
    }

    init(keeper: PolicyKeeper, logger: Logger, now: @escaping @Sendable () -> Int64) {
        self.keeper = keeper
        self.logger = logger
        self.now = now
    }

    var renewer: TokenRenewer {
        TokenRenewer { [self] credential, reason in await renew(credential, reason) }
    }

    /// Ends the renewals that wait for the lock or the provider's metadata. One that has sent its refresh token goes
    /// on: the provider may have replaced the token.
    func cancel() {
        state.withLock { state in
            for task in state.running.values { task.cancel() }
        }
    }

    /// Cancels, and waits until the renewals in progress have stored their tokens: at most as long as the provider may
    /// take for a request.
    func stop() async {
        let running = state.withLock { state in
            state.isStopped = true
            return Array(state.running.values)
        }
        for task in running { task.cancel() }
        for task in running { _ = await task.value }
    }

    private func renew(_ credential: CredentialReference, _ reason: TokenRenewer.Reason) async -> TokenRenewer.Outcome {
        let name = credential.name
        let task: Task<TokenRenewer.Outcome, Never>? = state.withLock { state in
            if let running = state.running[name] { return running }
            if state.isStopped { return nil }
            let task = Task.detached { [self] in
                let outcome = await attempt(credential, reason)
                self.state.withLock { $0.running[name] = nil }
                return outcome
            }
            state.running[name] = task
            return task
        }
        guard let task else { return .unavailable(reason: "the proxy is stopping") }
        return await task.value
    }

    private func attempt(_ used: CredentialReference, _ reason: TokenRenewer.Reason) async -> TokenRenewer.Outcome {
        let name = used.name
        do {
            let lock = try await RenewalLock.acquire(
                RenewalLock.name(ofSignIn: name), of: keeper.home, patience: Self.patience, waits: {})
            guard let lock else {
                return .unavailable(reason: "another process is renewing the access token of \"\(name)\"")
            }
            defer { withExtendedLifetime(lock) {} }
            guard let vault = keeper.vault else { return .unavailable(reason: HomeSnapshot.vaultIsLocked) }
            try vault.reload()
            guard let record = vault.contents.signIns[name], let token = vault.contents.tokens[name] else {
                return .unavailable(reason: "the sign-in \"\(name)\" was removed")
            }
            let present = token.tagged(with: vault.tagKey)
            // Another process, or another request, was faster.
            if present.reference != used, record.expires == 0 || record.expires > now() {
                await applyChange()
                return .renewed(present)
            }
            return await renew(record, present, in: vault, reason)
        } catch {
            return failed(name, nil, error)
        }
    }

    /// The caller holds the lock, and the record is the newest.
    private func renew(
        _ record: SignInRecord, _ token: TokenCredential, in vault: OpenVault, _ reason: TokenRenewer.Reason
    ) async -> TokenRenewer.Outcome {
        let name = record.name
        guard record.ended.isEmpty, record.refreshToken != nil else {
            if reason == .due, record.expires > now() { return .unchanged }
            return .unavailable(reason: record.endedText)
        }
        let last = state.withLock { $0.renewed[name] }
        if reason == .invalid, let last, abs(now() - last) < Self.invalidInterval {
            return .unavailable(reason: "the access token of \"\(name)\" was renewed, and is not valid at this site")
        }
        if record.failures > 0 {
            let pause = min(Self.longestPause, Int64(1) << min(record.failures, 6))
            if abs(now() - record.lastFailure) < pause {
                return outcome(of: record, reason, "the last attempt to renew it has failed")
            }
        }
        do {
            let tokens = try await refreshed(record, token, in: vault)
            let stored = try vault.update { contents in
                var newest = try self.newest(of: record, in: contents)
                newest.take(tokens)
                try contents.setSignIn(newest, accessToken: tokens.accessToken)
                return contents.tokens[name]
            }
            let time = now()
            state.withLock { state in
                state.unstored[name] = nil
                state.renewed[name] = time
            }
            guard let stored else { return .unavailable(reason: "the access token of \"\(name)\" was not stored") }
            let new = stored.tagged(with: vault.tagKey)
            if let tag = new.tag {
                try? BreakerFile(home: keeper.home, now: now).nameChanged(name, to: .tag(tag))
            }
            logger.notice("renewed the access token of \"\(name)\"")
            await applyChange()
            return .renewed(new)
        } catch let error as OAuthError where error.code == .invalidGrant {
            end(record, because: error, in: vault)
            await applyChange()
            return .unavailable(reason: record.endedText(because: error.detail))
        } catch is CancellationError {
            return outcome(of: record, reason, "the proxy is stopping")
        } catch {
            noteFailure(of: record, in: vault)
            let detail = Diagnostic.all(in: error).map(\.message).joined(separator: "; ")
            logger.warning("the access token of \"\(name)\" cannot be renewed: \(detail)")
            return outcome(of: record, reason, detail)
        }
    }

    // MARK: The provider

    /// New tokens from the provider, or those that were received before and could not be stored.
    private func refreshed(
        _ record: SignInRecord, _ token: TokenCredential, in vault: OpenVault
    ) async throws -> TokenSet {
        let unstored = state.withLock { $0.unstored[record.name] }
        var refreshToken = record.refreshToken
        if let unstored, unstored.before == record.refreshToken {
            if unstored.isWhole, unstored.tokens.expiresAt.map({ $0 > now() }) ?? true { return unstored.tokens }
            refreshToken = unstored.tokens.refreshToken
        }
        // A rotated token that cannot be stored is lost if this process ends.
        try vault.update { $0.touch() }
        let profile = try SignInProfile(Array(record.profile.utf8))
        let client = try keeper.home.providerClient(now: now)
        let (metadata, keys) = state.withLock { ($0.metadata[record.issuer], $0.keys[record.issuer]) }
        var machine = TokenRefresh(
            TokenSet(
                accessToken: token.token, expiresAt: record.expires == 0 ? nil : record.expires,
                obtainedAt: record.signedIn, refreshToken: refreshToken, scope: record.scope,
                idToken: record.identityToken, clientInfo: nil),
            issuer: profile.issuer, profile.request, subject: record.subject.isEmpty ? nil : record.subject,
            metadata: metadata, keys: keys, transport: profile.transport)
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
                action = machine.received(outcome, now: now())
                outcome.wipe()
            case .store(let tokens):
                try store(refreshTokenOf: tokens, record, in: vault)
                action = machine.stored()
            case .finish(let tokens, _):
                let (metadata, keys) = (machine.metadata, machine.keys)
                state.withLock { state in
                    state.metadata[record.issuer] = metadata
                    state.keys[record.issuer] = keys
                }
                try store(refreshTokenOf: tokens, record, in: vault)
                guard TokenCredential.isToken(tokens.accessToken),
                    tokens.accessToken.count <= VaultLimits.passwordBytes
                else { throw CountersignError(.refused, "the provider sent an access token that cannot be stored") }
                keepUnstored(tokens, of: record, isWhole: true)
                return tokens
            case .fail(let error, discardsTokens: _):
                // What the provider has said about itself may have changed.
                state.withLock { $0.metadata[record.issuer] = nil }
                throw error
            }
        }
    }

    /// Stores a new refresh token alone, so that it is not lost with tokens that the vault refuses.
    private func store(refreshTokenOf tokens: TokenSet, _ record: SignInRecord, in vault: OpenVault) throws {
        guard tokens.refreshToken != record.refreshToken else { return }
        keepUnstored(tokens, of: record, isWhole: false)
        try vault.update { contents in
            var newest = try self.newest(of: record, in: contents)
            newest.refreshToken = tokens.refreshToken
            try contents.updateSignIn(newest)
        }
    }

    /// What the vault has of the sign-in that `record` was read from. Throws if the person has signed in again or out
    /// meanwhile.
    private func newest(of record: SignInRecord, in contents: VaultContents) throws -> SignInRecord {
        let unstored = state.withLock { $0.unstored[record.name] }
        guard let newest = contents.signIns[record.name], newest.signedIn == record.signedIn,
            newest.issuer == record.issuer,
            newest.refreshToken == record.refreshToken
                || unstored?.before == record.refreshToken && newest.refreshToken == unstored?.tokens.refreshToken
        else { throw CountersignError(.unknownName, "the sign-in \"\(record.name)\" was changed meanwhile") }
        return newest
    }

    private func keepUnstored(_ tokens: TokenSet, of record: SignInRecord, isWhole: Bool) {
        state.withLock {
            $0.unstored[record.name] = Unstored(before: record.refreshToken, tokens: tokens, isWhole: isWhole)
        }
    }

    // MARK: Outcomes

    /// While the token is valid, it is used although it could not be renewed.
    private func outcome(
        of record: SignInRecord, _ reason: TokenRenewer.Reason, _ detail: String
    ) -> TokenRenewer.Outcome {
        if reason == .due, record.expires > now() { return .unchanged }
        let state = reason == .due ? "has expired" : "is not valid any more"
        return .unavailable(
            reason: "the access token of \"\(record.name)\" \(state) and cannot be renewed: \(detail)")
    }

    private func failed(_ name: String, _ record: SignInRecord?, _ error: any Error) -> TokenRenewer.Outcome {
        let detail = Diagnostic.all(in: error).map(\.message).joined(separator: "; ")
        logger.warning("the access token of \"\(name)\" cannot be renewed: \(detail)")
        return .unavailable(reason: "the access token of \"\(name)\" cannot be renewed: \(detail)")
    }

    /// Only the provider's `invalid_grant` discards a refresh token.
    private func end(_ record: SignInRecord, because error: OAuthError, in vault: OpenVault) {
        logger.warning(
            "the sign-in \"\(record.name)\" has ended: \(error.detail)",
            metadata: ["hint": "sign in again with `countersign enroll`"])
        let name = record.name
        try? vault.update { contents in
            guard var newest = contents.signIns[name], newest.refreshToken == record.refreshToken else { return }
            newest.refreshToken = nil
            newest.ended = String(error.detail.prefix(1000))
            try contents.updateSignIn(newest)
        }
    }

    private func noteFailure(of record: SignInRecord, in vault: OpenVault) {
        let time = now()
        try? vault.update { contents in
            var newest = try self.newest(of: record, in: contents)
            newest.failures = newest.failures &+ 1
            newest.lastFailure = time
            try contents.updateSignIn(newest)
        }
    }

    /// Makes a change to the vault take effect in the policy.
    private func applyChange() async {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "countersign.sign-in").async { [keeper] in
                keeper.refresh(force: true)
                continuation.resume()
            }
        }
    }
}

extension SignInRecord {
    /// A token is renewed so many seconds before it expires: a quarter of its lifetime, and at most a minute.
    private var renewalMargin: Int64 { min(60, max(0, expires - obtained) / 4) }

    /// When the access token has to be renewed, in seconds since 1970; nil if it does not expire.
    var renewalTime: Int64? { expires == 0 ? nil : expires - renewalMargin }

    /// Takes the tokens of a renewal.
    fileprivate mutating func take(_ tokens: TokenSet) {
        let stored = SignInTokens(tokens)
        refreshToken = stored.refresh
        identityToken = stored.identity ?? identityToken
        expires = tokens.expiresAt ?? 0
        obtained = tokens.obtainedAt
        if let new = tokens.scope, VaultLimits.isSignInLine(new) { scope = new }
        ended = ""
        failures = 0
        lastFailure = 0
    }

    fileprivate var endedText: String {
        ended.isEmpty
            ? "the access token of \"\(name)\" has expired, and the provider sent none to renew it; "
                + "sign in again with `countersign enroll`" : endedText(because: ended)
    }

    fileprivate func endedText(because reason: String) -> String {
        "the sign-in \"\(name)\" has ended: \(reason); sign in again with `countersign enroll`"
    }
}
