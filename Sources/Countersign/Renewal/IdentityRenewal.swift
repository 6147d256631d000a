// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignEnrollment
import CountersignVault

/// Gets certificates over EST (RFC 7030) for the identities of a home and keeps them: one refresh of a name at a time, in all
/// processes together.
///
/// What is written, in this order, and each of it whole or not at all:
///
/// 1. vault: the new key, as pending, before anybody is asked for a certificate; with the plan of a new enrolment
/// 2. vault: the chain that was issued for it, still pending
/// 3. vault: key and chain become the identity's, what they replace is kept beside them, nothing is pending any more
/// 4. `Certs/identities`: the chain, of which 3 has a copy
///
/// Whoever is stopped before 3 leaves the identity as it was, and the next refresh goes on with the pending key or chain. Whoever
/// is stopped after 3 leaves the new identity, and the next refresh, or ``repairFile(of:)``, writes the file.
package struct IdentityRenewal: Sendable {
    package let home: Home
    let vault: OpenVault
    /// Seconds since 1970.
    let now: @Sendable () -> Int64
    let report: @Sendable (Progress) -> Void

    /// `report` is told, on any thread, what a refresh waits for.
    package init(
        home: Home, vault: OpenVault, now: @escaping @Sendable () -> Int64,
        report: @escaping @Sendable (Progress) -> Void = { _ in }
    ) {
        self.home = home
        self.vault = vault
        self.now = now
        self.report = report
    }

    package enum Progress: Equatable, Sendable {
        /// Another process refreshes this identity: its result is taken.
        case waitingForOtherProcess
        case asking(server: String)
        /// The server will decide later, and is asked again then.
        case waiting(server: String, until: Int64)
        /// The server did not ask for a certificate, so that the new one could not be tried before it is used.
        case notVerified(server: String)
        /// The new certificate is in use; the file of its chain is to be written by a later run.
        case fileNotWritten(reason: String)
    }

    package struct Options: Equatable, Sendable {
        /// The new certificate is for the key that the identity has.
        package var reusesKey = false
        /// How long in all to wait for a server that will decide later, in seconds.
        package var patienceSeconds = ESTClient.longestRetryAfter
        /// Where another process is at it, its result is waited for; else that is an error.
        package var waitsForOtherProcess = true

        package init() {}
    }

    package enum Outcome: Equatable, Sendable {
        /// The identity's new leaf.
        case renewed(Certificate)
        /// The server has not decided yet; it may be asked again at that time.
        case pending(until: Int64)
    }

    // MARK: Verbs

    /// A new certificate for an enrolled identity, due or not. Where one is being got already, its result is waited for and
    /// taken. Throws ``EnrollmentError``, ``VaultError`` and ``CountersignError``; the identity is then as it was.
    package func refresh(_ name: String, _ options: Options = Options()) async throws -> Outcome {
        _ = try enrollment(of: name)
        let seen = vault.contents.identityKeys[name]?.leafSHA256
        return try await refresh(name, options, from: seen, try await lock(name, options))
    }

    /// ``refresh(_:_:)`` without waiting for the server's decision; nil when somebody else is at it for longer than
    /// `patience`. `leafSHA256` is the leaf that is to be replaced, when that is not the one which the vault is known to have.
    package func refreshIfUnlocked(
        _ name: String, from leafSHA256: [UInt8]? = nil, patience: Duration = .zero
    ) async throws -> Outcome? {
        _ = try enrollment(of: name)
        let seen = leafSHA256 ?? vault.contents.identityKeys[name]?.leafSHA256
        guard let lock = try await RenewalLock.acquire(name, of: home, patience: patience, waits: {}) else {
            return nil
        }
        var options = Options()
        options.patienceSeconds = 0
        return try await refresh(name, options, from: seen, lock)
    }

    /// The leaf of before was seen without the lock: where there is another one now, somebody else has been quicker.
    private func refresh(
        _ name: String, _ options: Options, from leafSHA256: [UInt8]?, _ lock: RenewalLock
    ) async throws -> Outcome {
        try vault.reload()
        if case .failed(let detail, let hint) = lock.earlier {
            lock.leave(.failed(detail, hint: hint))
            throw CountersignError(.refused, detail, hint: hint)
        }
        let present = vault.contents.identityKeys[name]?.leafSHA256
        if lock.earlier == .done || present != nil && present != leafSHA256 {
            let stored = StoredIdentity(named: name, in: vault.contents, home: home)
            if let identity = stored.identity {
                lock.leave(.done)
                return .renewed(identity.leaf)
            }
        }
        return try await perform(name, options, isFirst: false, lock)
    }

    /// Writes the file of the chain again where it is not what it should be; whether it was written.
    @discardableResult
    package func repairFile(of name: String) throws -> Bool {
        let stored = StoredIdentity(named: name, in: vault.contents, home: home, readsTokens: false)
        guard let chain = stored.chain, stored.fileFault != nil else { return false }
        try home.identityChain(named: name).replace(with: Array(chain.map(\.pem).joined().utf8))
        return true
    }

    /// A server has taken the identity whose leaf has that SHA-256: what it replaced is no longer kept.
    package func accepted(_ name: String, leafSHA256: [UInt8]) throws {
        try vault.update { contents in
            guard var record = contents.enrollments[name], record.previous != nil,
                contents.identityKeys[name]?.leafSHA256 == leafSHA256
            else { return }
            record.previous = nil
            try contents.setEnrollment(record)
        }
    }

    /// Puts back what the identity whose leaf has that SHA-256 took the place of, and enters `failures` for it, so that the next
    /// attempt is not made at once. False where nothing is kept, or a refresh is going on.
    func goBack(_ name: String, from leafSHA256: [UInt8], failures: UInt32) throws -> Bool {
        guard let lock = try RenewalLock.acquireIfFree(name, of: home) else { return false }
        defer { withExtendedLifetime(lock) {} }
        let isBack = try vault.update { contents in
            guard var record = contents.enrollments[name], let previous = record.previous, let leaf = previous.leaf,
                contents.identityKeys[name]?.leafSHA256 == leafSHA256
            else { return false }
            record.chain = previous.chain
            record.previous = nil
            record.failures = failures
            record.lastFailure = max(0, now())
            try contents.setIdentityKey(
                IdentityKey(name: name, privateKey: previous.privateKey, leafSHA256: leaf.sha256Fingerprint))
            try contents.setEnrollment(record)
            return true
        }
        if isBack { try repairFile(of: name) }
        return isBack
    }

    // MARK: Steps

    func lock(_ name: String, _ options: Options) async throws -> RenewalLock {
        let patience = options.waitsForOtherProcess ? Self.longestWait : .zero
        let lock = try await RenewalLock.acquire(name, of: home, patience: patience) { report(.waitingForOtherProcess) }
        guard let lock else {
            throw CountersignError(.refused, "another process refreshes identity \(name.debugDescription)")
        }
        return lock
    }

    /// For another process: longer than a server can make that one wait.
    private static let longestWait = Duration.seconds(2 * ESTClient.longestRetryAfter)

    private func enrollment(of name: String) throws -> EnrollmentRecord {
        guard let record = vault.contents.plan(of: name) else {
            guard vault.contents.hasKey(of: name) else {
                throw CountersignError(
                    .unknownName, "there is no identity \(name.debugDescription)",
                    hint: "`countersign certificate enroll \(name) --est https://…` enrols one")
            }
            throw CountersignError(
                .unknownName, "identity \(name.debugDescription) was imported, not enrolled: there is no server to ask",
                hint: "`countersign certificate enroll \(name) --replace --est https://…` enrols it, "
                    + "`countersign certificate import --replace` takes a new file")
        }
        return record
    }

    func perform(
        _ name: String, _ options: Options, isFirst: Bool, _ lock: RenewalLock
    ) async throws -> Outcome {
        do {
            let attempt = RenewalAttempt(
                renewal: self, name: name, reusesKey: options.reusesKey, isFirst: isFirst)
            let outcome = try await attempt.run(patienceSeconds: options.patienceSeconds)
            if case .renewed = outcome { lock.leave(.done) }
            return outcome
        } catch {
            let diagnostic = Diagnostic.all(in: error).first
            if !error.isCancellation {
                lock.leave(.failed(diagnostic?.message ?? "the refresh failed", hint: diagnostic?.hint))
            }
            throw error
        }
    }
}
