// SPDX-License-Identifier: Apache-2.0

import Certificates
import Cryptography
import Enrollment
import Vault

/// Gets certificates over EST (RFC 7030) for the identities of a home and keeps them: one refresh of a name at a time, in all
/// processes together.
///
/// What is written, in this order, and each of it whole or not at all:
///
/// 1. vault: the new key, as pending, before anybody is asked for a certificate
/// 2. vault: the chain that was issued for it, still pending
/// 3. vault: key and chain become the identity's, what they replace is kept beside them, nothing is pending any more
/// 4. `Certs/identities`: the chain, of which 3 has a copy
///
/// Whoever is stopped before 3 leaves the identity as it was, and the next refresh goes on with the pending key or chain. Whoever
/// is stopped after 3 leaves the new identity, and the next refresh, or ``mendFile(of:)``, writes the file.
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
        case waitingForAnother
        case asking(server: String)
        /// The server will decide later, and is asked again then.
        case waiting(server: String, until: Int64)
        /// The server did not ask for a certificate, so that the new one could not be tried before it is used.
        case notProved(server: String)
    }

    package struct Options: Equatable, Sendable {
        /// The new certificate is for the key that the identity has.
        package var reusesKey = false
        /// How long in all to wait for a server that will decide later, in seconds.
        package var patienceSeconds = ESTClient.longestRetryAfter

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
        let lock = try await RenewalLock.acquire(name, of: home) { report(.waitingForAnother) }
        try vault.reload()
        switch lock.earlier {
        case .done:
            lock.leave(.done)
            let stored = StoredIdentity(named: name, in: vault.contents, home: home)
            guard let identity = stored.identity else {
                throw CountersignError(.configuration, stored.fault ?? "identity \"\(name)\" is not whole")
            }
            return .renewed(identity.leaf)
        case .failed(let detail, let hint):
            lock.leave(.failed(detail, hint: hint))
            throw CountersignError(.refused, detail, hint: hint)
        case nil:
            return try await perform(name, options, isFirst: false, lock)
        }
    }

    /// ``refresh(_:_:)`` without waiting for anything but the server's answers; nil when somebody else is at it.
    package func refreshIfFree(_ name: String) async throws -> Outcome? {
        _ = try enrollment(of: name)
        guard let lock = try RenewalLock.ifFree(name, of: home) else { return nil }
        try vault.reload()
        var options = Options()
        options.patienceSeconds = 0
        return try await perform(name, options, isFirst: false, lock)
    }

    /// A first certificate, by `plan`, which becomes the identity's record. `replaces`: an identity of that name may be there,
    /// and stays what it is until the new one has been proved. When it fails, everything is as it was; a pending
    /// enrolment stays, for ``refresh(_:_:)`` to go on with.
    package func enroll(_ plan: EnrollmentRecord, replaces: Bool, _ options: Options = Options()) async throws
        -> Outcome
    {
        let name = plan.name
        let lock = try await RenewalLock.acquire(name, of: home) { report(.waitingForAnother) }
        let before = try begin(plan, replaces: replaces)
        do {
            return try await perform(name, options, isFirst: true, lock)
        } catch {
            // What was asked for before is asked for again, unless the server has turned that down.
            let isOver = !error.isCancellation && (error as? EnrollmentError)?.isTransient != true
            try vault.update { contents in
                contents.removePendingEnrollment(named: name)
                contents.removeEnrollment(named: name)
                let pending = isOver ? nil : before.pending
                if let pending { try contents.setPendingEnrollment(pending) }
                if let record = before.record, pending != nil || contents.hasKey(of: name) {
                    try contents.setEnrollment(record)
                }
            }
            throw error
        }
    }

    /// Writes the file of the chain again where it is not what it should be; whether it was written.
    @discardableResult
    package func mendFile(of name: String) throws -> Bool {
        let stored = StoredIdentity(named: name, in: vault.contents, home: home)
        guard let identity = stored.identity, stored.fileFault != nil else { return false }
        try home.identityChain(named: name).replace(with: Array(identity.chain.map(\.pem).joined().utf8))
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
    /// attempt is not made at once. Does nothing where nothing is kept.
    func goBack(_ name: String, from leafSHA256: [UInt8], failures: UInt32) throws {
        try vault.update { contents in
            guard var record = contents.enrollments[name], let previous = record.previous, let leaf = previous.leaf,
                contents.identityKeys[name]?.leafSHA256 == leafSHA256
            else { return }
            record.chain = previous.chain
            record.previous = nil
            record.failures = failures
            record.lastFailure = max(0, now())
            try contents.setIdentityKey(
                IdentityKey(name: name, privateKey: previous.privateKey, leafSHA256: leaf.sha256Fingerprint))
            try contents.setEnrollment(record)
        }
        try mendFile(of: name)
    }

    // MARK: Steps

    private func enrollment(of name: String) throws -> EnrollmentRecord {
        guard let record = vault.contents.enrollments[name] else {
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

    /// Puts the plan into the vault; gives what it took the place of.
    private func begin(
        _ plan: EnrollmentRecord, replaces: Bool
    ) throws -> (record: EnrollmentRecord?, pending: PendingEnrollment?) {
        let name = plan.name
        return try vault.update { contents in
            let isTaken =
                try contents.hasKey(of: name)
                || home.identityChain(named: name).readIfThere(upTo: Home.fileLimitBytes) != nil
            guard replaces || !isTaken else {
                throw CountersignError(
                    .nameInUse, "there is an identity \(name.debugDescription) already",
                    hint: "`countersign certificate refresh \(name)` renews it, --replace takes its place")
            }
            let before = (record: contents.enrollments[name], pending: contents.pendingEnrollments[name])
            var record = plan
            record.chain = before.record?.chain ?? []
            record.previous = before.record?.previous
            try contents.setEnrollment(record)
            // What was asked for at another server, or for another name, is not what is asked for now.
            if before.record?.isAskedAs(plan) != true || before.pending?.isFirst != true {
                contents.removePendingEnrollment(named: name)
            }
            return before
        }
    }

    private func perform(
        _ name: String, _ options: Options, isFirst: Bool, _ lock: RenewalLock
    ) async throws -> Outcome {
        do {
            let attempt = RenewalAttempt(
                renewal: self, name: name, reusesKey: options.reusesKey, isFirst: isFirst)
            let outcome = try await attempt.run(patienceSeconds: options.patienceSeconds)
            if case .renewed = outcome { lock.leave(.done) }
            return outcome
        } catch {
            let complaint = Complaint.all(in: error).first
            lock.leave(.failed(complaint?.message ?? "the refresh failed", hint: complaint?.hint))
            throw error
        }
    }
}

extension EnrollmentRecord {
    /// The same is asked of the same server.
    fileprivate func isAskedAs(_ other: EnrollmentRecord) -> Bool {
        server == other.server && subject == other.subject && alternativeNames == other.alternativeNames
            && keySpecification == other.keySpecification
    }
}
