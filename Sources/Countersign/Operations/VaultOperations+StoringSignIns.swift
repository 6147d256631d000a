// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignEnrollment
import CountersignHome
import CountersignSignIn
import CountersignVault
import Synchronization

extension VaultOperations {
    /// Waits without end for a renewal of the former sign-in, because the tokens would be lost otherwise.
    ///
    /// If the profile names an EST service, that issues the certificate before anything is stored: the sign-in, its
    /// tokens and the certificate are stored in one step, or none of them is.
    ///
    /// Writes the vault first: without the tokens, the sites would be useless. The record says which lines the list may
    /// still have until it is written, so that ``finishSignIn(_:)`` or the next sign-in can complete it.
    func storeSignIn(
        _ new: NewSignIn, _ tokens: SignInTokens, _ dialogue: OperationDialogue
    ) throws {
        try SignInName.check(new.name)
        let vault = try opened()
        let lock = try renewalLock(new.name, dialogue, patience: Self.withoutEnd)
        defer { withExtendedLifetime(lock) {} }
        if dialogue.isAbandoned?() == true { throw Self.interrupted }
        let stored = Mutex<SignInRecord?>(nil)
        let store: @Sendable (inout VaultContents) throws -> Void = { contents in
            let record = try add(new, tokens, to: &contents, dialogue)
            stored.withLock { $0 = record }
        }
        let service = try SignInProfile(Array(new.profile.utf8)).certificates
        if let service {
            let identityLock = try identityLock(new.name, dialogue)
            defer { withExtendedLifetime(identityLock) {} }
            if try keepsCertificate(new, of: service, in: vault) {
                try vault.update { try store(&$0) }
            } else {
                try obtainCertificate(new, tokens.access, at: service, dialogue, identityLock, store)
                try removeLeftFile(of: new.name, in: vault)
            }
        } else {
            let identityLock = try ownsIdentity(new.name, in: vault) ? identityLock(new.name, dialogue) : nil
            defer { withExtendedLifetime(identityLock) {} }
            let isRemoved = try vault.update { contents in
                let isRemoved = contents.signIns[new.name].map { contents.removeCertificate(of: $0) } ?? false
                if identityLock != nil, contents.hasAbandonedRequest(named: new.name) {
                    contents.removePendingEnrollment(named: new.name)
                }
                try store(&contents)
                return isRemoved
            }
            if isRemoved { try removeLeftFile(of: new.name, in: vault) }
        }
        guard let record = stored.withLock({ $0 }) else { throw CountersignError(.refused, "nothing was stored") }
        try writeSites(of: record, in: vault)
        let tag = CredentialTag(token: tokens.access, key: vault.tagKey)
        try BreakerFile(home: home, now: now).nameChanged(new.name, to: .tag(tag))
    }

    /// Whether the sign-in keeps the certificate of the previous one: it asks for that, the same person has signed in,
    /// the service is the same, and the certificate is valid and not due for renewal.
    private func keepsCertificate(_ new: NewSignIn, of service: CertificateService, in vault: OpenVault) throws -> Bool
    {
        guard new.keepsCertificate == true else { return false }
        try vault.reload()
        let contents = vault.contents
        guard let former = contents.signIns[new.name], new.isSamePerson(as: former),
            former.certificates.map({ $0.issuesTheSame(as: service) }) == true, contents.ownsCertificate(former),
            !contents.ownsRequest(former),
            let leaf = contents.enrollments[new.name]?.chain.first.flatMap({ try? Certificate(der: $0) })
        else { return false }
        let due = RenewalSchedule(notBefore: leaf.notBefore, notAfter: leaf.notAfter, jitter: 0).due
        return (leaf.notBefore..<due).contains(now())
    }

    /// Asks the EST service of the profile for the certificate, and stores it and the sign-in. If the service decides
    /// later, the sign-in is stored, and the certificate follows.
    private func obtainCertificate(
        _ new: NewSignIn, _ token: Secret, at service: CertificateService, _ dialogue: OperationDialogue,
        _ lock: RenewalLock, _ store: @escaping @Sendable (inout VaultContents) throws -> Void
    ) throws {
        let renewal = try renewal(dialogue)
        var options = IdentityRenewal.Options()
        options.patienceSeconds = 0
        let signIn = SignInInProgress(
            new: new, token: TokenCredential(name: new.name, token: token, source: .program),
            check: { try checkIdentity(of: new.name, in: $0) }, store: store)
        let plan = EnrollmentRecord(new, at: service)
        do {
            _ = try Blocking.run(isAbandoned: dialogue.isAbandoned) { [options] in
                try await renewal.enroll(plan, of: signIn, options, lock)
            }
        } catch {
            if error.isCancellation { throw Self.interrupted }
            guard error is EnrollmentError || error is CredentialRefused || error is CertificateError else {
                throw error
            }
            throw CertificateNotIssued(by: plan.server, because: error)
        }
    }

    /// Adds the sign-in and its tokens to the vault.
    private func add(
        _ new: NewSignIn, _ tokens: SignInTokens, to contents: inout VaultContents, _ dialogue: OperationDialogue
    ) throws -> SignInRecord {
        let former = contents.signIns[new.name]
        if let former, former.issuer != new.issuer, former.issuer != new.formerIssuer {
            throw CountersignError(
                .nameInUse,
                "another sign-in \(new.name.debugDescription), at \(former.issuer), was stored meanwhile",
                hint: "choose another name with --name")
        }
        let before = former?.allSites ?? []
        let added = try SignInSites(home: home, name: new.name).added(new.sites, besides: before)
        // Waiting for the files may have taken a while, and the command revokes the tokens when it is interrupted.
        if dialogue.isAbandoned?() == true { throw Self.interrupted }
        var record = SignInRecord(
            name: new.name, profile: new.profile, source: new.source, issuer: new.issuer, subject: new.subject,
            account: new.account, scope: new.scope, sites: added,
            refreshToken: tokens.refresh, identityToken: tokens.identity, signedIn: new.signedIn,
            expires: new.expires)
        record.identifier = new.identifier
        record.userAgent = new.userAgent ?? ""
        record.clientSecret = tokens.client
        record.formerSites = Array(Set(before).sorted().prefix(VaultLimits.formerSignInSites))
        guard contents.wipes[new.name] == nil else { throw Self.isBeingWiped(new.name) }
        try contents.setSignIn(record, accessToken: tokens.access)
        // The provider has issued a token, so the device complies.
        if let homeAccount = new.homeAccount {
            try contents.setCompliance(
                ComplianceRecord(name: new.name, homeAccount: homeAccount, checked: new.signedIn))
        } else {
            contents.removeCompliance(of: new.name)
        }
        // The profiles that it has installed have waited for it.
        for var profile in contents.profiles.values where profile.owner?.signIn == new.name {
            profile.owner?.isPending = false
            try contents.setProfile(profile)
        }
        if let former {
            // The next removal knows the new profile only.
            if let scope = former.session, !scope.isSame(as: record.session),
                !contents.shares(scope, besides: new.name)
            {
                contents.removeSessions(group: scope.group, host: scope.host.text)
            }
            if new.isSamePerson(as: former) {
                try contents.giveCertificate(of: former, to: new)
            } else {
                // No person's requests are answered with another person's certificate.
                _ = contents.removeCertificate(of: former)
            }
        }
        return record
    }

    /// Writes the sites of a sign-in for which that was interrupted. Does nothing if the sign-in is being changed, or
    /// is complete.
    func finishSignIn(_ name: String) throws {
        guard let vault, let lock = try RenewalLock.acquireIfFree(RenewalLock.name(ofSignIn: name), of: home) else {
            return
        }
        defer { withExtendedLifetime(lock) {} }
        try vault.reload()
        guard let record = vault.contents.signIns[name], record.formerSites != nil else { return }
        if let identityLock = try RenewalLock.acquireIfFree(name, of: home) {
            defer { withExtendedLifetime(identityLock) {} }
            try removeLeftFile(of: name, in: vault)
        }
        try writeSites(of: record, in: vault)
    }

    private func writeSites(of record: SignInRecord, in vault: OpenVault) throws {
        try SignInSites(home: home, name: record.name).set(record.sites, replacing: record.formerSites ?? [])
        try vault.update { contents in
            guard var newest = contents.signIns[record.name], newest.isSame(as: record) else { return }
            newest.formerSites = nil
            try contents.updateSignIn(newest)
        }
    }
}
