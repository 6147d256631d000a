// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignEnrollment
import CountersignHome
package import CountersignVault

extension IdentityRenewal {
    /// Obtains a first certificate as described by `plan`, which becomes the identity's enrolment. With `replaces`, an
    /// existing identity of that name stays in use until the new one has been verified. If the enrolment fails,
    /// everything is unchanged, except that a request which the server has received and not refused stays pending, for
    /// ``refresh(_:_:)`` to continue. `confirm` is called once, on any thread, and chooses the plan's anchors.
    ///
    /// `token` is the key of a plan whose key specification is ``EnrollmentRecord/tokenKey``.
    package func enroll(
        _ plan: EnrollmentRecord, replaces: Bool, token: TokenKey? = nil, _ options: Options = Options(),
        confirm: AnchorConfirmation? = nil
    ) async throws -> Outcome {
        let lock = try await lock(plan.name, options)
        return try await enroll(plan, token: token, signIn: nil, options, confirm: confirm, lock) { contents in
            try check(plan.name, replaces: replaces, isInToken: token != nil, in: contents)
        }
    }

    /// Obtains the certificate of a sign-in, and stores both in one step. If that fails, nothing stays pending either:
    /// the sign-in does not exist. The caller holds the identity's lock, which receives the renewal's result.
    func enroll(
        _ plan: EnrollmentRecord, of signIn: SignInInProgress, _ options: Options, _ lock: RenewalLock
    ) async throws -> Outcome {
        try await enroll(
            plan, token: nil, signIn: signIn, options, confirm: nil, lock, checking: signIn.check)
    }

    /// Obtains the certificate that a configuration profile enrols, and stores both in one step. If that fails, nothing
    /// stays pending either. The caller holds the identity's lock.
    func enroll(
        _ plan: EnrollmentRecord, of profile: ProfileInProgress, _ options: Options, _ lock: RenewalLock
    ) async throws -> Outcome {
        try await enroll(
            plan, token: nil, signIn: nil, profile: profile, options, confirm: nil, lock, checking: profile.check)
    }

    private func enroll(
        _ plan: EnrollmentRecord, token: TokenKey?, signIn: SignInInProgress?, profile: ProfileInProgress? = nil,
        _ options: Options, confirm: AnchorConfirmation?, _ lock: RenewalLock,
        checking check: (VaultContents) throws -> Void
    ) async throws -> Outcome {
        let name = plan.name
        // Also while the sign-in is stored, or the request is removed.
        defer { withExtendedLifetime(lock) {} }
        let before = try begin(plan, token: token, signIn, checking: check)
        let isStoredAlong = signIn != nil || profile != nil
        do {
            let outcome = try await perform(
                name, options, isFirst: true, confirm: confirm, signIn: signIn, profile: profile, lock)
            // The server decides later; the certificate follows the sign-in, or the profile.
            if case .pending = outcome, let store = signIn?.store ?? profile?.store {
                try vault.update { try store(&$0) }
            }
            return outcome
        } catch {
            // If this fails as well, the vault keeps a key that no server has seen, which is harmless.
            _ = try? vault.update { contents in
                guard contents.leafSHA256(of: name) == before.leafSHA256,
                    isStoredAlong || contents.pendingEnrollments[name]?.isUnderway != true
                else { return }
                contents.removePendingEnrollment(named: name)
                if let pending = before.pending, isStoredAlong || pending.plan?.makesSameRequest(as: plan) != true {
                    try contents.setPendingEnrollment(pending)
                    if contents.hasAbandonedRequest(named: name) { contents.removePendingEnrollment(named: name) }
                }
            }
            throw error
        }
    }

    /// Throws `nameInUse` if an identity of that name exists that the enrolment may not replace. `isInToken` says that
    /// the new certificate is for a key in a token.
    package func checkName(_ name: String, replaces: Bool, isInToken: Bool) throws {
        try check(name, replaces: replaces, isInToken: isInToken, in: vault.contents)
    }

    private func check(_ name: String, replaces: Bool, isInToken: Bool, in contents: VaultContents) throws {
        let isTaken =
            try contents.hasKey(of: name)
            || home.identityChain(named: name).readIfThere(upTo: Home.fileLimitBytes) != nil
        guard replaces || !isTaken else {
            throw CountersignError(
                .nameInUse, "there is an identity \(name.debugDescription) already",
                hint: "renew it with `countersign certificate refresh \(name)`, or replace it with --replace")
        }
        guard isInToken || contents.tokenKeys[name] == nil else {
            throw CountersignError(
                .nameInUse,
                "the key of identity \(name.debugDescription) is in a token and could not be restored",
                hint: "enrol that key with --key pkcs11:…, choose another name, or run "
                    + "`countersign certificate remove \(name)` first")
        }
    }

    /// Stores the plan in the vault as pending, and returns the records that it replaced.
    private func begin(
        _ plan: EnrollmentRecord, token: TokenKey?, _ signIn: SignInInProgress?,
        checking check: (VaultContents) throws -> Void
    ) throws -> (pending: PendingEnrollment?, leafSHA256: [UInt8]?) {
        let name = plan.name
        return try vault.update { contents in
            try check(contents)
            let before = (contents.pendingEnrollments[name], contents.leafSHA256(of: name))
            var plan = plan
            plan.refusedCredential = contents.refusal(of: plan)
            // A pending request to another server, for other names, or of another person does not match the plan.
            var pending =
                if let pending = before.0, let former = pending.plan, former.makesSameRequest(as: plan),
                    contents.canContinue(former, with: signIn), pending.token?.uri == token?.uri
                {
                    pending
                } else {
                    try PendingEnrollment(for: plan, token: token, created: context.now())
                }
            if let token { pending.set(token: token) }
            // Until the user has confirmed others.
            if plan.anchors.isEmpty { plan.anchors = pending.plan?.anchors ?? [] }
            pending.plan = plan
            try contents.setPendingEnrollment(pending)
            return before
        }
    }
}

/// A sign-in whose certificate is requested before it is stored.
struct SignInInProgress: Sendable {
    let new: NewSignIn
    /// The new access token, which the vault does not have yet.
    let token: TokenCredential
    /// Throws if the vault has another identity of that name.
    let check: @Sendable (VaultContents) throws -> Void
    /// Stores the sign-in, in the same step as the certificate.
    let store: @Sendable (inout VaultContents) throws -> Void
}

/// A configuration profile whose certificate is requested before it is stored.
struct ProfileInProgress: Sendable {
    /// Authenticates the request; the vault does not have it yet.
    let identity: Identity?
    /// The anchors of the profile.
    let anchors: [Certificate]
    /// Throws if the profile cannot be stored.
    let check: @Sendable (VaultContents) throws -> Void
    /// Stores the profile, in the same step as the certificate.
    let store: @Sendable (inout VaultContents) throws -> Void
}

extension EnrollmentRecord {
    /// Whether both records describe the same request to the same server.
    fileprivate func makesSameRequest(as other: EnrollmentRecord) -> Bool {
        server == other.server && subject == other.subject && alternativeNames == other.alternativeNames
            && keySpecification == other.keySpecification
    }
}

extension VaultContents {
    /// Whether a pending request belongs to the same owner as a new one: to no sign-in, or to the person who signs in
    /// again.
    fileprivate func canContinue(_ former: EnrollmentRecord, with signIn: SignInInProgress?) -> Bool {
        guard let signIn else { return former.owner == nil }
        return self.signIn(of: former).map { signIn.new.isSamePerson(as: $0) } ?? false
    }

    /// The generation of the plan's credential that the plan's server is known to have refused; 0 without one.
    fileprivate func refusal(of plan: EnrollmentRecord) -> UInt64 {
        let known = [enrollments[plan.name], pendingEnrollments[plan.name]?.plan].compactMap(\.self)
        return known.filter { $0.server == plan.server && $0.credential == plan.credential }
            .map(\.refusedCredential).max() ?? 0
    }
}
