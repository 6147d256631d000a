// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignEnrollment
package import CountersignHome
import CountersignVault
import FoundationEssentials

/// Configuration profiles. Installing or removing one takes these atomic steps:
///
/// 1. The new files are written under temporary names, so that a full disk is noticed.
/// 2. If the profile has an enrolment, the certificate is requested from its server.
/// 3. The vault gets keys, enrolment and record in one step. The record's journal names the files to write and to
///    remove.
/// 4. The files are renamed and removed.
/// 5. The journal is removed from the record, or the record from the vault.
///
/// An operation that stops before step 3 has changed nothing. After it, ``finishProfiles()`` takes the remaining steps:
/// the next command calls it, or a running server.
extension VaultOperations {
    // MARK: Installing

    /// Returns the outcome of the enrolment; nil if the profile has none.
    func installProfile(
        _ new: NewProfile, _ secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> RenewalOutcome? {
        let vault = try opened()
        let change = try ProfileInstallation(new, secret, home: home)
        let lock = try profileLock(dialogue)
        defer { withExtendedLifetime(lock) {} }
        try vault.reload()
        try finishProfiles(in: vault)
        let files = try change.files.map { try home.file($0.name).prepared(with: $0.bytes) }
        if dialogue.isAbandoned?() == true { throw Self.interrupted }
        var outcome: RenewalOutcome?
        if let enrollment = new.enrollment, let plan = try change.plan(enrollment) {
            outcome = try enroll(plan, change, in: vault, dialogue)
        } else {
            try vault.update { contents in
                try change.check(contents)
                try change.store(in: &contents)
            }
        }
        // The profile is installed from here on.
        for file in files { try file.commit() }
        try finishProfiles(in: vault)
        return outcome
    }

    private func enroll(
        _ plan: EnrollmentRecord, _ change: ProfileInstallation, in vault: OpenVault, _ dialogue: OperationDialogue
    ) throws -> RenewalOutcome {
        let lock = try identityLock(plan.name, dialogue)
        var plan = plan
        let listed = try? home.sites().authentication(at: try ESTEndpoint(parsing: plan.server).origin)
        // A password goes only to servers for which the list of sites permits it.
        if let name = listed?.credential, vault.contents.credentials[name] != nil { plan.credential = name }
        if plan.identity == nil, let name = listed?.identity, name != plan.name { plan.identity = name }
        let profile = ProfileInProgress(
            identity: plan.identity.flatMap(change.identity), anchors: change.anchors,
            check: { try change.check($0) }, store: { try change.store(in: &$0) })
        var options = IdentityRenewal.Options()
        options.patienceSeconds = 0
        let renewal = try renewal(dialogue)
        do {
            return try Blocking.run(isAbandoned: dialogue.isAbandoned) { [plan, options] in
                try await renewal.enroll(plan, of: profile, options, lock)
            }
        } catch {
            if error.isCancellation { throw Self.interrupted }
            guard error is EnrollmentError || error is CredentialRefused || error is CertificateError else {
                throw error
            }
            let diagnostic = Diagnostic.all(in: error).first
            throw CountersignError(
                .refused,
                "\(plan.server) has issued no certificate, so the profile is not installed: "
                    + (diagnostic?.message ?? "\(error)"), hint: diagnostic?.hint)
        }
    }

    // MARK: Removing

    func removeProfile(_ identifier: String, _ dialogue: OperationDialogue) throws -> Named<RemovedProfile> {
        guard let vault, vault.contents.profiles[identifier] != nil else {
            return .unknown(known: Set((contents?.profiles ?? [:]).keys))
        }
        let lock = try profileLock(dialogue)
        defer { withExtendedLifetime(lock) {} }
        try vault.reload()
        try finishProfiles(in: vault)
        guard let removed = try remove(identifier, in: vault) else {
            return .unknown(known: Set(vault.contents.profiles.keys))
        }
        return .done(removed)
    }

    /// Removes the profiles that a sign-in has installed.
    func removeProfiles(of signIn: String, _ dialogue: OperationDialogue) throws -> [RemovedProfile] {
        let vault = try opened()
        guard vault.contents.profiles.values.contains(where: { $0.owner?.signIn == signIn }) else { return [] }
        let lock = try profileLock(dialogue)
        defer { withExtendedLifetime(lock) {} }
        try vault.reload()
        try finishProfiles(in: vault)
        let owned = vault.contents.profiles.values.filter { $0.owner?.signIn == signIn }
        return try owned.map(\.identifier).sorted().compactMap { try remove($0, in: vault) }
    }

    /// Nil if the profile no longer exists. The caller holds the lock.
    private func remove(_ identifier: String, in vault: OpenVault) throws -> RemovedProfile? {
        let removal = try vault.update { contents -> ProfileRemoval? in
            guard var record = contents.profiles[identifier] else { return nil }
            let removal = ProfileRemoval(of: record, replacedBy: nil, in: contents, home: home)
            try removal.apply(to: &contents)
            record.journal = ProfileRecord.Journal(removed: removal.files, endsRecord: true)
            try contents.setProfile(record)
            return removal
        }
        try finishProfiles(in: vault)
        return removal?.summary
    }

    // MARK: Completing

    /// Completes interrupted operations, and removes the profiles of sign-ins that failed. Does nothing while another
    /// process installs or removes a profile.
    func finishProfiles() throws {
        guard let vault, hasUnfinishedProfile(in: vault.contents),
            let lock = try RenewalLock.acquireIfFree(Self.profileLockName, of: home)
        else { return }
        defer { withExtendedLifetime(lock) {} }
        try vault.reload()
        try finishProfiles(in: vault)
        for record in vault.contents.profiles.values where record.owner?.isPending == true {
            guard let owner = record.owner,
                let signInLock = try RenewalLock.acquireIfFree(Self.enrollingLockName(owner.signIn), of: home)
            else { continue }
            defer { withExtendedLifetime(signInLock) {} }
            _ = try remove(record.identifier, in: vault)
        }
        // No command that enrols for a profile is running.
        try vault.update { contents in
            for pending in contents.pendingEnrollments.values where pending.isOfUnfinishedProfile {
                contents.removePendingEnrollment(named: pending.name)
            }
        }
    }

    private func hasUnfinishedProfile(in contents: VaultContents) -> Bool {
        contents.profiles.values.contains { $0.journal != nil || $0.owner?.isPending == true }
            || contents.pendingEnrollments.values.contains(where: \.isOfUnfinishedProfile)
    }

    /// The caller holds the lock.
    private func finishProfiles(in vault: OpenVault) throws {
        for record in vault.contents.profiles.values {
            guard let journal = record.journal else { continue }
            for file in journal.written { try home.file(file.name).replace(with: file.bytes) }
            for name in journal.removed { try home.file(name).remove() }
            try vault.update { contents in
                guard var newest = contents.profiles[record.identifier], newest.journal == journal else { return }
                if journal.endsRecord {
                    contents.removeProfile(record.identifier)
                } else {
                    newest.journal = nil
                    try contents.setProfile(newest)
                }
            }
        }
    }

    // MARK: Locks

    /// No identity and no sign-in has such a name.
    private static let profileLockName = "+profiles"

    private static func enrollingLockName(_ signIn: String) -> String { "+enrolling-\(signIn)" }

    /// Waits until no other process installs or removes a profile.
    private func profileLock(_ dialogue: OperationDialogue) throws -> RenewalLock {
        guard let lock = try acquire(Self.profileLockName, dialogue, Self.renewalPatience) else {
            throw CountersignError(
                .refused, "another process is installing or removing a profile", hint: "try again when that is done")
        }
        return lock
    }

    /// Keeps the profiles that a sign-in installs before it is stored. Without it, they are removed. Nil if another
    /// process has it.
    package static func enrollingLock(of signIn: String, in home: Home) throws -> RenewalLock? {
        try RenewalLock.acquireIfFree(enrollingLockName(signIn), of: home)
    }
}

extension PendingEnrollment {
    /// The certificate is requested for a profile that is not installed.
    fileprivate var isOfUnfinishedProfile: Bool {
        plan?.owner?.signIn.hasPrefix(ProfileInstallation.ownerPrefix) ?? false
    }
}
