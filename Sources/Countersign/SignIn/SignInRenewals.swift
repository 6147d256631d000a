// SPDX-License-Identifier: Apache-2.0

package import CountersignAnswering
import CountersignChallenges
import CountersignCryptography
import CountersignDeviceManagement
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import CountersignVault
import Dispatch
import FoundationEssentials
package import Logging
import Synchronization

/// Renews the access tokens of a home's sign-ins: some time before they expire, and when a request needs one that has
/// expired or that an origin calls invalid.
///
/// If several requests need the same token, one renews it and the others wait, in this process and in others: a
/// provider that rotates refresh tokens takes a second use of one for theft (RFC 9700 §4.14.2).
package final class SignInRenewals: Sendable {
    let home: Home
    /// The environment of the process.
    let environment: [String: String]
    /// The currently open vault; nil while it is locked.
    let openVault: @Sendable () -> OpenVault?
    /// Makes a change to the vault take effect.
    let changed: @Sendable () -> Void
    /// Called when an organisation wants programs to start again.
    private let restart: @Sendable () -> Void
    let logger: Logger
    /// Seconds since 1970.
    let now: @Sendable () -> Int64
    /// By which part of its margin this process delays a renewal, so that the processes of a home do not ask the
    /// provider all at once.
    private let delay: Double
    let state = Mutex(State())

    /// How long a request waits. The renewal continues after that.
    private static let requestPatience = Duration.seconds(20)
    /// How long a renewal waits for that of another process.
    private static let lockPatience = Duration.seconds(60)
    /// A token that was renewed is not renewed again for so many seconds because an origin calls it invalid: another
    /// one would be no better.
    private static let invalidInterval: Int64 = 300

    struct State: Sendable {
        /// When wipes were completed last, or could not be, in seconds since 1970.
        var lastWipe: Int64 = 0
        /// The wipes in progress.
        var wiping: Task<Void, Never>?
        /// When a token for one site alone was last asked for without a person, in seconds since 1970.
        var stepUps: [NamedDemand: Int64] = [:]
        /// Renewals in progress, by name, and of tokens for one site alone, by ``key(_:_:)``.
        var running: [String: Task<TokenRenewer.Outcome, Never>] = [:]
        /// No further renewal begins.
        var isStopped = false
        /// New tokens that could not be stored yet, by name.
        var unstored: [String: UnstoredTokens] = [:]
        /// Also those that cannot be recorded in the vault.
        var failures = SignInFailures()
        /// Failures to complete the list of sites.
        var listFailures = SignInFailures()
        /// The providers' metadata, by issuer.
        var metadata: [String: ProviderMetadata] = [:]
        var keys: [String: KeySet] = [:]
        /// Why the provider sent no token the last time, by name.
        var lastFailures: [String: any Error] = [:]
    }

    /// `delay` is from 0 to 1; at 1, the renewal begins when half of the margin has passed.
    package convenience init(
        keeper: PolicyKeeper, logger: Logger, delay: Double = .random(in: 0..<1),
        now: @escaping @Sendable () -> Int64
    ) {
        self.init(
            home: keeper.home, environment: keeper.environment, openVault: { keeper.vault },
            changed: { keeper.refresh(force: true) }, restart: keeper.organisationWantsRestart, logger: logger,
            delay: delay, now: now)
    }

    /// For one token, without a proxy. Logs nothing.
    convenience init(home: Home, vault: OpenVault, now: @escaping @Sendable () -> Int64) {
        self.init(
            home: home, environment: ProcessInfo.processInfo.environment, openVault: { vault }, changed: {},
            restart: {},
            logger: Logger(label: "countersign") { _ in SwiftLogNoOpLogHandler() }, delay: 0, now: now)
    }

    /// Runs `body` with `shared`, the renewals of a server or of the library, which keep tokens that cannot be stored
    /// and try again. Without them, with renewals for this alone, which end with it.
    static func using<Value>(
        _ shared: SignInRenewals?, home: Home, vault: OpenVault, now: @escaping @Sendable () -> Int64,
        _ body: (SignInRenewals) async throws -> Value
    ) async throws -> Value {
        if let shared { return try await body(shared) }
        let own = SignInRenewals(home: home, vault: vault, now: now)
        do {
            let value = try await body(own)
            await own.stop()
            return value
        } catch {
            await own.stop()
            throw error
        }
    }

    private init(
        home: Home, environment: [String: String], openVault: @escaping @Sendable () -> OpenVault?,
        changed: @escaping @Sendable () -> Void, restart: @escaping @Sendable () -> Void, logger: Logger,
        delay: Double, now: @escaping @Sendable () -> Int64
    ) {
        self.restart = restart
        self.home = home
        self.environment = environment
        self.openVault = openVault
        self.changed = changed
        self.logger = logger
        self.delay = delay
        self.now = now
    }

    package var renewer: TokenRenewer {
        TokenRenewer { [self] credential, reason in
            guard let task = begin(credential, reason) else { return .unavailable(reason: "the proxy is stopping") }
            return await task.value(within: Self.requestPatience)
                ?? .unavailable(
                    reason: "there is no new access token of \"\(credential.name)\" after "
                        + "\(Self.requestPatience.components.seconds) seconds; its renewal goes on")
        }
    }

    /// Begins to renew the tokens that are about to expire. Reads no file.
    package func renewAhead() {
        guard let vault = openVault() else { return }
        let (contents, time) = (vault.contents, now())
        for record in contents.signIns.values {
            // Requests do not ask for a token that is withheld; ``ComplianceKeeper`` does.
            let isWithheld = contents.compliance[record.name].map { !$0.isCompliant } ?? false
            guard let due = record.renewalTime(delayedBy: delay), due <= time, time < record.expires, !isWithheld,
                record.ended.isEmpty, !isPaused(record, at: time),
                !state.withLock({ $0.running[record.name] != nil || $0.unstored[record.name] != nil }),
                record.isRenewable,
                let token = contents.tokens[record.name]
            else { continue }
            _ = begin(token.tagged(with: vault.tagKey).reference, .expired)
        }
    }

    /// Ends the renewals that wait for the lock or the provider's metadata. One that has sent its refresh token goes
    /// on: the provider may have replaced the token.
    package func cancel() {
        state.withLock { state in
            for task in state.running.values { task.cancel() }
            state.wiping?.cancel()
        }
    }

    /// Cancels, and waits until the renewals in progress have stored their tokens: at most as long as the provider may
    /// take for a request. Tokens that cannot be stored are lost then.
    package func stop() async {
        let (running, wiping) = state.withLock { state in
            state.isStopped = true
            return (Array(state.running.values), state.wiping)
        }
        for task in running { task.cancel() }
        wiping?.cancel()
        for task in running { _ = await task.value }
        await wiping?.value
        await storeForTheLastTime()
    }

    private func begin(
        _ credential: CredentialReference, _ reason: TokenRenewer.Reason
    ) -> Task<TokenRenewer.Outcome, Never>? {
        let key = key(credential, reason)
        return state.withLock { state in
            if let running = state.running[key] { return running }
            if state.isStopped { return nil }
            let task = Task.detached { [self] in
                let outcome = await attempt(credential, reason)
                self.state.withLock { $0.running[key] = nil }
                return outcome
            }
            state.running[key] = task
            return task
        }
    }

    /// A token for one site is renewed apart from that of the sign-in, and of other sites, whose requests must not get
    /// it.
    private func key(_ credential: CredentialReference, _ reason: TokenRenewer.Reason) -> String {
        let name = credential.name
        if case .lacks(let stepUp, let origin) = reason { return "\(name) \(origin) \(stepUp.claims ?? "")" }
        guard let vault = openVault(), let record = vault.contents.signIns[name],
            let own = record.siteToken(with: credential, vault.tagKey)
        else { return name }
        return "\(name) \(own.host):\(own.port)"
    }

    private func attempt(_ used: CredentialReference, _ reason: TokenRenewer.Reason) async -> TokenRenewer.Outcome {
        let name = used.name
        // This process holds the lock.
        if let unstored = state.withLock({ $0.unstored[name] }) {
            return outcome(of: unstored.record, reason, unstored.reason)
        }
        do {
            let lock = try await RenewalLock.acquire(
                RenewalLock.name(ofSignIn: name), of: home, patience: Self.lockPatience, waits: {})
            guard let lock else {
                let detail = RenewalLock.unstoredReason(RenewalLock.name(ofSignIn: name), of: home)
                return .unavailable(
                    reason: detail.map { "another process has the new access token of \"\(name)\": \($0)" }
                        ?? "another process is renewing the access token of \"\(name)\"")
            }
            defer { withExtendedLifetime(lock) {} }
            guard let vault = openVault() else { return .unavailable(reason: HomeSnapshot.vaultIsLocked) }
            try vault.reload()
            guard let known = vault.contents.signIns[name], let knownToken = vault.contents.tokens[name] else {
                return .unavailable(reason: "the sign-in \"\(name)\" was removed")
            }
            // Tokens of a sign-in that is being removed are no longer sent.
            if known.ended == SignInRecord.isSigningOut { return .unavailable(reason: known.endedText) }
            if let outcome = await siteToken(insteadOf: used, reason, known, knownToken, in: vault, lock) {
                return outcome
            }
            // The attempt to renew a token for one site may have replaced the refresh token.
            if let unstored = state.withLock({ $0.unstored[name] }) {
                return self.outcome(of: unstored.record, reason, unstored.reason)
            }
            guard let record = vault.contents.signIns[name], let token = vault.contents.tokens[name] else {
                return .unavailable(reason: "the sign-in \"\(name)\" was removed")
            }
            let present = token.tagged(with: vault.tagKey)
            // Another process, or another request, was faster.
            if present.reference != used, record.expires == 0 || record.expires > now() {
                await applyChange()
                return .renewed(present)
            }
            return await renew(record, present, in: vault, reason, lock)
        } catch is CancellationError {
            return .unavailable(reason: "the proxy is stopping")
        } catch {
            // Nothing can be recorded in a vault that cannot be read.
            if let record = openVault()?.contents.signIns[name] { pause(after: record) }
            return failed(name, error)
        }
    }

    /// The caller holds the lock, and the record is the newest.
    private func renew(
        _ record: SignInRecord, _ token: TokenCredential, in vault: OpenVault, _ reason: TokenRenewer.Reason,
        _ lock: RenewalLock
    ) async -> TokenRenewer.Outcome {
        let name = record.name
        guard record.ended.isEmpty, record.isRenewable else {
            if case .expired = reason, record.expires > now() { return .unchanged }
            return .unavailable(reason: record.endedText)
        }
        if case .invalid = reason, record.renewed != 0, abs(now() - record.renewed) < Self.invalidInterval {
            return .unavailable(reason: "the access token of \"\(name)\" was renewed, and is not valid at this site")
        }
        if isPaused(record, at: now()) { return outcome(of: record, reason, "the last attempt to renew it has failed") }
        let renewal = SignInRenewal(record: record, token: token, firstVault: vault, renewals: self)
        lock.reserve()
        var (received, failure) = await renewal.ask()
        var refusal: ComplianceOutcome?
        if let error = failure as? OAuthError, error.code == .protectionPolicyRequired, received == nil {
            // A person is never asked from here.
            refusal = await renewal.remediateSilently()
            if Task.isCancelled {
                // The proxy is stopping. The remediation was not cancelled, and there is no further request to the
                // provider.
                (failure, refusal) = (CancellationError(), nil)
            } else if let compliant = refusal, compliant.status == .compliant {
                (received, failure) = await renewal.ask()
                refusal = nil
                if compliant.restarts { restart() }
                if let error = failure as? OAuthError, error.code == .protectionPolicyRequired {
                    refusal = NotCompliant.stillRefused(compliant, account: record.account).outcome
                }
            }
        }
        state.withLock { [failure] in $0.lastFailures[name] = failure }
        if let received {
            do {
                let stored = try await onQueue { try renewal.store(received) }
                if let stored {
                    state.withLock { $0.failures.forget(name) }
                    await applyChange()
                    logger.notice("renewed the access token of \"\(name)\"")
                    return .renewed(stored)
                }
            } catch let error as SignInRenewal.Superseded {
                return failed(name, error)
            } catch let error as VaultError where error.code == .invalidRecord {
                let detail = await discard(received, of: renewal, because: error)
                await applyChange()
                return .unavailable(reason: record.endedText(because: detail))
            } catch {
                keepUnstored(UnstoredTokens(renewal, received, lock, reason: Self.text(error)))
                return outcome(of: record, reason, "the new one cannot be stored: \(Self.text(error))")
            }
        }
        switch failure {
        case let error as OAuthError where error.code == .invalidGrant:
            reportEnd(of: name, error.detail)
            try? await onQueue { try renewal.end(because: error.detail) }
            await applyChange()
            return .unavailable(reason: record.endedText(because: error.detail))
        case is CancellationError:
            return outcome(of: record, reason, "the proxy is stopping")
        case let error:
            pause(after: record)
            if let refusal {
                try? await onQueue { [received] in try renewal.noteFailure(received, refusal) }
                await applyChange()
                let reason = openVault()?.contents.compliance[name]?.reason ?? refusal.title
                logger.warning("the access token of \"\(name)\" cannot be renewed: \(reason)")
                return .unavailable(reason: reason)
            }
            try? await onQueue { [received] in try renewal.noteFailure(received) }
            let detail = error.map(Self.text) ?? "the provider sent no access token"
            logger.warning("the access token of \"\(name)\" cannot be renewed: \(detail)")
            return outcome(of: record, reason, detail)
        }
    }

    /// Asks for a new token at once, for example after a remediation, and returns why that failed. Also nil if no new
    /// token is needed.
    func renewNow(_ name: String) async -> (any Error)? {
        do {
            // This process holds the lock.
            if let unstored = state.withLock({ $0.unstored[name] }) {
                throw CountersignError(
                    .refused, "the new access token of \"\(name)\" cannot be stored: \(unstored.reason)")
            }
            let lock = try await RenewalLock.acquire(
                RenewalLock.name(ofSignIn: name), of: home, patience: Self.lockPatience, waits: {})
            guard let lock, let vault = openVault() else {
                throw CountersignError(.refused, "another process is renewing the access token of \"\(name)\"")
            }
            defer { withExtendedLifetime(lock) {} }
            try vault.reload()
            guard let record = vault.contents.signIns[name], let token = vault.contents.tokens[name],
                record.ended.isEmpty, record.isRenewable
            else { return nil }
            let renewal = SignInRenewal(
                record: record, token: token.tagged(with: vault.tagKey), firstVault: vault, renewals: self)
            lock.reserve()
            let (received, failure) = await renewal.ask()
            if let received { try await store(received, of: renewal, lock) }
            if let error = failure as? OAuthError, error.code == .invalidGrant {
                try await onQueue { try renewal.end(because: error.detail) }
            }
            state.withLock { $0.failures.forget(name) }
            return failure
        } catch {
            return error
        }
    }

    /// Stores the tokens now, or later if that is not possible now: the provider may have replaced the former ones.
    private func store(
        _ received: SignInRenewal.Received, of renewal: SignInRenewal, _ lock: RenewalLock
    ) async throws {
        do {
            _ = try await onQueue { try renewal.store(received) }
        } catch let error as SignInRenewal.Superseded {
            throw error
        } catch let error as VaultError where error.code == .invalidRecord {
            _ = await discard(received, of: renewal, because: error)
            throw error
        } catch {
            keepUnstored(UnstoredTokens(renewal, received, lock, reason: Self.text(error)))
            throw error
        }
    }

    /// Why the provider sent no token of that name the last time that this process asked; nil if it sent one.
    func lastFailure(of name: String) -> (any Error)? { state.withLock { $0.lastFailures[name] } }

    func isPaused(_ record: SignInRecord, at time: Int64) -> Bool {
        SignInFailures.isPaused(after: record.failures, last: record.lastFailure, at: time)
            || state.withLock { $0.failures.isPaused(record, at: time) }
    }

    func pause(after record: SignInRecord) {
        _ = state.withLock { $0.failures.note(record, at: now()) }
    }
}
