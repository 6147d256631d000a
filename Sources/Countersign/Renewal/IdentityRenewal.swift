// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignEnrollment
package import CountersignHome
package import CountersignVault

/// Obtains certificates over EST (RFC 7030) for the identities of a home and stores them. A lock permits one renewal
/// per identity at a time, across all processes.
///
/// A renewal writes the following, in this order, each atomically:
///
/// 1. vault: the new key, as pending, before any server is contacted; for a new enrolment also its plan
/// 2. vault: the chain issued for that key, still pending
/// 3. vault: the key and chain become the identity's; the ones they replace are stored beside them; nothing is pending
/// 4. `Certs/identities`: a copy of the chain
///
/// If a process is stopped before step 3, the identity is unchanged, and the next renewal continues with the pending
/// key or chain. If it is stopped after step 3, the new identity is in use, and the next renewal or ``repairFile(of:)``
/// writes the file.
package struct IdentityRenewal: Sendable {
    let context: RenewalContext

    package typealias Progress = RenewalProgress
    package typealias Outcome = RenewalOutcome

    /// `report` is called, on any thread, with the progress of a renewal.
    package init(
        home: Home, vault: OpenVault, renewals: SignInRenewals? = nil, now: @escaping @Sendable () -> Int64,
        report: @escaping @Sendable (Progress) -> Void = { _ in }
    ) {
        context = RenewalContext(home: home, vault: vault, renewals: renewals, now: now, report: report)
    }

    package var home: Home { context.home }
    var vault: OpenVault { context.vault }

    package struct Options: Equatable, Sendable, Codable {
        /// Requests the new certificate for the identity's existing key.
        package var reusesKey = false
        /// How long to wait in total for a server that decides later, in seconds.
        package var patienceSeconds = ESTClient.longestRetryAfter
        /// If another process is renewing the identity, waits for its result; otherwise that is an error.
        package var waitsForOtherProcess = true

        package init() {}
    }

    // MARK: Renewing

    /// Obtains a new certificate for an enrolled identity, whether it is due or not. If another process is doing that
    /// already, waits for its result and returns it. Throws ``EnrollmentError``, ``VaultError`` and
    /// ``CountersignError``; the identity is then unchanged.
    package func refresh(_ name: String, _ options: Options = Options()) async throws -> Outcome {
        _ = try enrollment(of: name)
        let seen = vault.contents.leafSHA256(of: name)
        return try await refresh(name, options, from: seen, try await lock(name, options))
    }

    /// Like ``refresh(_:_:)``, but does not wait for the server's decision, and returns nil if another process holds
    /// the lock for longer than `patience`. `leafSHA256` is the leaf to replace, if it differs from the vault's.
    package func refreshIfUnlocked(
        _ name: String, from leafSHA256: [UInt8]? = nil, patience: Duration = .zero
    ) async throws -> Outcome? {
        _ = try enrollment(of: name)
        let seen = leafSHA256 ?? vault.contents.leafSHA256(of: name)
        guard let lock = try await RenewalLock.acquire(name, of: home, patience: patience, waits: {}) else {
            return nil
        }
        var options = Options()
        options.patienceSeconds = 0
        return try await refresh(name, options, from: seen, lock)
    }

    /// `leafSHA256` was read before the lock was held: if the leaf is another one now, someone else has already
    /// replaced it.
    private func refresh(
        _ name: String, _ options: Options, from leafSHA256: [UInt8]?, _ lock: RenewalLock
    ) async throws -> Outcome {
        try vault.reload()
        if case .failed(let detail, let hint) = lock.previousOutcome {
            lock.record(.failed(detail, hint: hint))
            throw CountersignError(.refused, detail, hint: hint)
        }
        let present = vault.contents.leafSHA256(of: name)
        if lock.previousOutcome == .done || present != nil && present != leafSHA256 {
            let stored = StoredIdentity(named: name, in: vault.contents, home: home)
            if let identity = stored.identity {
                lock.record(.done)
                return .renewed(identity.leaf)
            }
        }
        return try await perform(name, options, isFirst: false, lock)
    }

    private func enrollment(of name: String) throws -> EnrollmentRecord {
        guard let record = vault.contents.plan(of: name) else {
            guard vault.contents.hasKey(of: name) else {
                throw CountersignError(
                    .unknownName, "there is no identity \(name.debugDescription)",
                    hint: "enrol one with `countersign certificate enroll \(name) --est URL`")
            }
            throw CountersignError(
                .unknownName, "identity \(name.debugDescription) has no server; \(RenewalState.importAgain(name))",
                hint: "or enrol it with `countersign certificate enroll \(name) --replace --est URL`")
        }
        return record
    }

    func lock(_ name: String, _ options: Options) async throws -> RenewalLock {
        let patience = options.waitsForOtherProcess ? Self.longestWait : .zero
        let lock = try await RenewalLock.acquire(name, of: home, patience: patience) {
            context.report(.waitingForOtherProcess)
        }
        guard let lock else {
            throw CountersignError(.refused, "another process is renewing identity \(name.debugDescription)")
        }
        return lock
    }

    /// How long to wait for another process: longer than a server can make that process wait.
    private static let longestWait = Duration.seconds(2 * ESTClient.longestRetryAfter)

    func perform(
        _ name: String, _ options: Options, isFirst: Bool, confirm: AnchorConfirmation? = nil,
        signIn: SignInInProgress? = nil, profile: ProfileInProgress? = nil, _ lock: RenewalLock
    ) async throws -> Outcome {
        home.removeAbandonedFiles()
        do {
            let attempt = RenewalAttempt(
                context: context, name: name, reusesKey: options.reusesKey, isFirst: isFirst, confirm: confirm,
                signIn: signIn, profile: profile)
            let outcome = try await attempt.run(patienceSeconds: options.patienceSeconds)
            if case .renewed = outcome { lock.record(.done) }
            return outcome
        } catch {
            let diagnostic = Diagnostic.all(in: error).first
            if !error.isCancellation {
                lock.record(.failed(diagnostic?.message ?? "the renewal failed", hint: diagnostic?.hint))
            }
            throw error
        }
    }

    // MARK: Previous certificates and files

    /// Writes the chain's file again if it differs from the vault's copy, and returns whether it was written.
    @discardableResult
    package func repairFile(of name: String) throws -> Bool { try context.repairFile(of: name) }

    /// Discards the certificate that the given leaf replaced, because a server has accepted the new one.
    package func discardPrevious(of name: String, leafSHA256: [UInt8]) throws {
        try vault.update { contents in
            guard var record = contents.enrollments[name], record.previous != nil,
                contents.leafSHA256(of: name) == leafSHA256
            else { return }
            record.previous = nil
            try contents.setEnrollment(record)
        }
    }

    /// Restores the certificate that the given leaf replaced, and records `failures`, which delays the next renewal.
    /// Returns false if there is no previous certificate, or a renewal is in progress.
    func restorePrevious(_ name: String, from leafSHA256: [UInt8], failures: UInt32) throws -> Bool {
        guard let lock = try RenewalLock.acquireIfFree(name, of: home) else { return false }
        defer { withExtendedLifetime(lock) {} }
        let isRestored = try vault.update { contents in
            guard var record = contents.enrollments[name], let previous = record.previous, let leaf = previous.leaf,
                contents.leafSHA256(of: name) == leafSHA256
            else { return false }
            record.chain = previous.chain
            record.previous = nil
            record.failures = failures
            record.lastFailure = max(0, context.now())
            if let token = contents.tokenKeys[name], previous.privateKey == PendingEnrollment.keyInToken {
                try contents.setTokenKey(token.certified(by: leaf.sha256Fingerprint))
            } else if previous.privateKey != PendingEnrollment.keyInToken {
                try contents.setIdentityKey(
                    IdentityKey(name: name, privateKey: previous.privateKey, leafSHA256: leaf.sha256Fingerprint))
            } else {
                return false
            }
            try contents.setEnrollment(record)
            return true
        }
        if isRestored { try repairFile(of: name) }
        return isRestored
    }
}
