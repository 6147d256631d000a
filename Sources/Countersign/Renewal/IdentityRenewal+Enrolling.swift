// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignEnrollment
import CountersignVault

extension IdentityRenewal {
    /// A first certificate, by `plan`, which becomes the identity's enrolment with it. `replaces`: an identity of that name may
    /// be there, and stays what it is until the new one has been proved. When it fails, everything is as it was; what the
    /// server has already stays pending, unless it was turned down, for ``refresh(_:_:)`` to go on with.
    package func enroll(_ plan: EnrollmentRecord, replaces: Bool, _ options: Options = Options()) async throws
        -> Outcome
    {
        let name = plan.name
        let lock = try await lock(name, options)
        let before = try begin(plan, replaces: replaces)
        do {
            return try await perform(name, options, isFirst: true, lock)
        } catch {
            // Where that fails, too, what stays is no more than a key that nobody knows.
            _ = try? vault.update { contents in
                guard contents.identityKeys[name]?.leafSHA256 == before.leafSHA256,
                    contents.pendingEnrollments[name]?.isUnderway != true
                else { return }
                contents.removePendingEnrollment(named: name)
                if let pending = before.pending, pending.plan?.isAskedAs(plan) != true {
                    try contents.setPendingEnrollment(pending)
                }
            }
            throw error
        }
    }

    /// Puts the plan into the vault, as pending; gives what was there.
    private func begin(
        _ plan: EnrollmentRecord, replaces: Bool
    ) throws -> (pending: PendingEnrollment?, leafSHA256: [UInt8]?) {
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
            guard contents.tokenKeys[name] == nil else {
                throw CountersignError(
                    .nameInUse, "the key of identity \(name.debugDescription) lies in a token, and nothing keeps it",
                    hint: "take another name, or `countersign certificate remove \(name)` first")
            }
            let before = (contents.pendingEnrollments[name], contents.identityKeys[name]?.leafSHA256)
            var plan = plan
            plan.refusedCredential = contents.refusal(of: plan)
            // What was asked for at another server, or for another name, is not what is asked for now.
            var pending =
                if let pending = before.0, pending.plan?.isAskedAs(plan) == true {
                    pending
                } else {
                    try PendingEnrollment(for: plan, created: now())
                }
            pending.plan = plan
            try contents.setPendingEnrollment(pending)
            return before
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

extension PendingEnrollment {
    /// With a new key of the plan's kind, P-256 where the server may still ask for another.
    init(for plan: EnrollmentRecord, created: Int64) throws {
        let key = try PrivateKey.generate(KeySpecification(plan.keySpecification) ?? .ecP256)
        self.init(name: plan.name, privateKey: try key.pkcs8, created: max(0, created))
        self.plan = plan
    }
}

extension VaultContents {
    /// The generation of the plan's credential that the plan's server is known to have refused; 0: none.
    fileprivate func refusal(of plan: EnrollmentRecord) -> UInt64 {
        let known = [enrollments[plan.name], pendingEnrollments[plan.name]?.plan].compactMap(\.self)
        return known.filter { $0.server == plan.server && $0.credential == plan.credential }
            .map(\.refusedCredential).max() ?? 0
    }
}
