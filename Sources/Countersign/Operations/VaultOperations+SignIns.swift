// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignEnrollment
import CountersignOAuth
package import CountersignSignIn
import CountersignVault
import Synchronization

extension VaultOperations {
    func signIns() -> [ListedSignIn] {
        (vault?.contents.signIns ?? [:]).values.sorted { $0.name < $1.name }.map { listed($0) }
    }

    private func listed(_ record: SignInRecord) -> ListedSignIn {
        ListedSignIn(
            record, certificate: (vault?.contents).flatMap { ListedCertificate(of: record, in: $0) },
            compliance: compliance(of: record),
            unstored: RenewalLock.unstoredReason(RenewalLock.name(ofSignIn: record.name), of: home))
    }

    /// Throws unless a sign-in of that name can be stored. Writes the vault, because a full disk is better noticed
    /// before a person has signed in. Returns the sign-in that would be replaced.
    func checkSignIn(_ name: String, _ sites: [String], obtainsCertificate: Bool) throws -> VaultResult {
        try SignInName.check(name)
        let vault = try opened()
        let before = vault.contents.signIns[name]?.allSites ?? []
        try SignInSites(home: home, name: name).check(sites, replacing: before)
        let former = try vault.update { contents in
            if contents.signIns[name] == nil, contents.credentialNames.contains(name) {
                throw CountersignError(
                    .nameInUse, "credential \(name.debugDescription) exists and is no sign-in",
                    hint: "choose another name with --name, or remove it with `countersign credential remove \(name)`")
            }
            guard contents.wipes[name] == nil else { throw Self.isBeingWiped(name) }
            if obtainsCertificate { try checkIdentity(of: name, in: contents) }
            contents.touch()
            return contents.signIns[name]
        }
        return .signIns(former.map { [listed($0)] } ?? [])
    }

    private static func isBeingWiped(_ name: String) -> CountersignError {
        CountersignError(
            .nameInUse, "\(name.debugDescription) is being wiped",
            hint: "complete that with `countersign wipe \(name)`, or choose another name with --name")
    }

    /// Throws `nameInUse` if the certificate of the sign-in `name` would replace an identity that is not its own.
    private func checkIdentity(of name: String, in contents: VaultContents) throws {
        let former = contents.signIns[name]
        let hint = "choose another name with --name, or remove it with `countersign certificate remove \(name)`"
        if let plan = contents.pendingPlan(of: name), former.map({ plan.belongs(to: $0) }) != true {
            throw CountersignError(
                .nameInUse,
                "a certificate of identity \(name.debugDescription) is requested that is not that of a sign-in",
                hint: hint)
        }
        let isThere = contents.hasKey(of: name) || contents.enrollments[name] != nil
        let isTaken =
            isThere
            ? former.map { contents.ownsCertificate($0) } != true
                // A sign-in that was not stored completely may have left a file.
            : try former?.formerSites == nil
                && home.identityChain(named: name).readIfThere(upTo: Home.fileLimitBytes) != nil
        guard isTaken else { return }
        throw CountersignError(
            .nameInUse, "the identity \(name.debugDescription) exists and is not that of a sign-in", hint: hint)
    }

    /// Waits without end for a renewal of the former sign-in, because the tokens would be lost otherwise.
    ///
    /// If the profile names an EST service, that issues the certificate before anything is stored: the sign-in, its
    /// tokens and the certificate are stored in one step, or none of them is.
    ///
    /// The vault comes first: without the tokens, the sites would be of no use. The record says which lines the list
    /// may still have until it is written, so that ``finishSignIn(_:)`` or the next sign-in can complete it.
    func storeSignIn(
        _ new: NewSignIn, _ tokens: SignInTokens, _ dialogue: OperationDialogue
    ) throws -> VaultResult {
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
        return .done
    }

    /// Whether the sign-in goes on with the certificate of the one before: it asks for that, the same person has signed
    /// in, the service is the same, and the certificate is valid and not due for renewal.
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

    /// Whether the identity of that name is the sign-in's, or a certificate is requested for it or for a sign-in that
    /// was not stored.
    private func ownsIdentity(_ name: String, in vault: OpenVault) throws -> Bool {
        try vault.reload()
        let contents = vault.contents
        if contents.hasAbandonedRequest(named: name) { return true }
        return contents.signIns[name].map { contents.ownsCertificate($0) || contents.ownsRequest($0) } ?? false
    }

    /// Removes the chain's file if the vault has no identity of that name.
    func removeLeftFile(of name: String, in vault: OpenVault) throws {
        let contents = vault.contents
        guard !contents.hasKey(of: name), contents.enrollments[name] == nil else { return }
        _ = try home.identityChain(named: name).remove()
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
        // The profiles that it has brought have waited for it.
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
                // Nobody's requests are answered with another person's certificate.
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

    func removeSignIn(_ name: String, _ dialogue: OperationDialogue) throws -> VaultResult {
        guard let vault, vault.contents.signIns[name] != nil else { return unknownSignIn }
        let locks = try removalLocks(of: name, in: vault, dialogue)
        return try removeSignIn(name, locks, dialogue)
    }

    /// Nobody renews a token of the sign-in, requests a certificate for it, wipes it or replaces it meanwhile.
    struct RemovalLocks {
        fileprivate let signIn: RenewalLock
        fileprivate let identity: RenewalLock?
    }

    func removalLocks(
        of name: String, in vault: OpenVault, _ dialogue: OperationDialogue
    ) throws -> RemovalLocks {
        let lock = try renewalLock(name, dialogue, patience: Self.renewalPatience)
        return RemovalLocks(
            signIn: lock, identity: try ownsIdentity(name, in: vault) ? identityLock(name, dialogue) : nil)
    }

    /// Nil if somebody has one of them.
    func removalLocksIfFree(of name: String, in vault: OpenVault) throws -> RemovalLocks? {
        guard let lock = try RenewalLock.acquireIfFree(RenewalLock.name(ofSignIn: name), of: home) else { return nil }
        guard try ownsIdentity(name, in: vault) else { return RemovalLocks(signIn: lock, identity: nil) }
        guard let identity = try RenewalLock.acquireIfFree(name, of: home) else { return nil }
        return RemovalLocks(signIn: lock, identity: identity)
    }

    /// Revokes the tokens at the provider, and then removes them and the sites, whether the provider has done it or
    /// not. The record is removed last: until then, the operation can be repeated, and the record says so.
    /// `identifier`: only the sign-in that has this one is removed.
    func removeSignIn(
        _ name: String, identifier: String? = nil, _ locks: RemovalLocks, _ dialogue: OperationDialogue
    ) throws -> VaultResult {
        guard let vault else { return unknownSignIn }
        defer { withExtendedLifetime(locks) {} }
        // A renewal may have replaced the tokens.
        let marked = try vault.update { contents -> SignInRecord? in
            guard var record = contents.signIns[name], record.identifier == identifier ?? record.identifier else {
                return nil
            }
            record.ended = SignInRecord.isSigningOut
            try contents.updateSignIn(record)
            return record
        }
        guard let record = marked else { return unknownSignIn }
        let end = try revoke(record, vault.contents.tokens[name], dialogue)
        let scope = record.session
        // The secrets first: a fault in a file of sites may have to be corrected before the rest can be done.
        let isRemoved = try vault.update { contents in
            var bare = record
            (bare.refreshToken, bare.identityToken) = (nil, nil)
            try contents.updateSignIn(bare)
            if let scope, !contents.shares(scope, besides: name) {
                contents.removeSessions(group: scope.group, host: scope.host.text)
            }
            return contents.removeCertificate(of: record)
        }
        let profiles = try removeProfiles(of: name, dialogue)
        let sites = record.allSites
        try SignInSites(home: home, name: name).set([], replacing: sites)
        try BreakerFile(home: home, now: now).nameChanged(name, to: nil)
        // The file is left if this, or storing the sign-in, was interrupted before.
        if isRemoved || record.certificates != nil || record.formerSites != nil {
            try removeLeftFile(of: name, in: vault)
        }
        try vault.update { $0.removeSignIn(named: name) }
        if scope != nil {
            for other in vault.contents.signIns.values {
                try SignInSites(home: home, name: other.name).restoreSession(of: other.sites, without: sites)
            }
        }
        return .signedOut(
            SignedOut(
                isRevoked: end.warning == nil, warning: end.warning, page: end.page, userAgent: end.userAgent,
                sites: record.sites, profiles: profiles))
    }

    var unknownSignIn: VaultResult {
        .removed(count: 0, known: Set((vault?.contents.signIns ?? [:]).keys))
    }

    /// Waits until no token of the sign-in is being renewed, and keeps others from it.
    func renewalLock(
        _ name: String, _ dialogue: OperationDialogue, patience: Duration
    ) throws -> RenewalLock {
        guard let lock = try acquire(RenewalLock.name(ofSignIn: name), dialogue, patience) else {
            throw CountersignError(
                .refused, "another process is renewing the access token of \(name.debugDescription)",
                hint: "try again; `countersign status` shows what it waits for")
        }
        return lock
    }

    /// Waits until no certificate of that name is being requested, and keeps others from it. The caller holds the lock
    /// of the sign-in already.
    func identityLock(_ name: String, _ dialogue: OperationDialogue) throws -> RenewalLock {
        guard let lock = try acquire(name, dialogue, Self.renewalPatience) else {
            throw CountersignError(
                .refused, "another process is requesting a certificate for the identity \(name.debugDescription)",
                hint: "try again when that is done")
        }
        return lock
    }

    func acquire(
        _ name: String, _ dialogue: OperationDialogue, _ patience: Duration
    ) throws -> RenewalLock? {
        do {
            return try Blocking.run(isAbandoned: dialogue.isAbandoned) { [home] in
                try await RenewalLock.acquire(name, of: home, patience: patience) {
                    dialogue.report(.waitingForOtherProcess)
                }
            }
        } catch is CancellationError {
            throw Self.interrupted
        }
    }

    /// Longer than a renewal takes if every request to the provider takes its full time.
    static let renewalPatience = Duration.seconds(150)
    private static let withoutEnd = Duration.seconds(1 << 40)

    static let interrupted = CountersignError(.refused, "the command was interrupted")

    private struct End: Sendable {
        /// Why the tokens were not revoked; nil if they were.
        var warning: String?
        /// Where the person can sign out.
        var page: String?
        var userAgent: String?
    }

    private func revoke(
        _ record: SignInRecord, _ token: TokenCredential?, _ dialogue: OperationDialogue
    ) throws -> End {
        let (home, now) = (home, now)
        let command = vault?.contents.wipes[record.name] == nil ? "unenroll" : "wipe"
        do {
            return try Blocking.run(isAbandoned: dialogue.isAbandoned) {
                let result = await Self.revoke(record, token, home, now)
                try Task.checkCancellation()
                return result
            }
        } catch is CancellationError {
            throw CountersignError(
                .refused, "signing out was interrupted; the tokens may be revoked, but are not removed",
                hint: "complete it with `countersign \(command) \(record.name)`")
        }
    }

    private static func revoke(
        _ record: SignInRecord, _ token: TokenCredential?, _ home: Home, _ now: @escaping @Sendable () -> Int64
    ) async -> End {
        guard let token else { return End() }
        do {
            let profile = try SignInProfile(Array(record.profile.utf8))
            // The broker keeps the account and the refresh token, and has no way to revoke an access token.
            if profile.usesBroker { return End() }
            let client = try home.providerClient(now: now)
            let tokens = TokenSet(
                accessToken: token.token, expiresAt: nil, obtainedAt: record.signedIn,
                refreshToken: record.refreshToken, scope: nil, idToken: nil, clientInfo: nil)
            let (warning, metadata) = await client.revoke(tokens, of: profile)
            let hint = record.account.isEmpty ? nil : record.account
            let page = metadata.flatMap { EndSession.url(logoutHint: hint, client: profile.request.client, at: $0) }
            return End(
                warning: warning, page: page?.description, userAgent: record.userAgent.isEmpty ? nil : record.userAgent)
        } catch {
            return End(warning: Diagnostic.all(in: error).map(\.message).joined(separator: "; "))
        }
    }
}

extension VaultContents {
    /// Whether another sign-in's profile has the same session. Nobody records which of them has brought a cookie.
    fileprivate func shares(_ scope: SessionScope, besides name: String) -> Bool {
        signIns.values.contains { $0.name != name && scope.isSame(as: $0.session) }
    }
}

extension SignInRecord {
    /// The lines that the list may have for it.
    var allSites: [String] { sites + (formerSites ?? []) }

    /// The session that its profile shares; nil if it shares none.
    var session: SessionScope? { (try? SignInProfile(Array(profile.utf8)))?.session }
}

extension SessionScope {
    /// Whether the cookies are stored in the same place, whatever their names.
    fileprivate func isSame(as other: SessionScope?) -> Bool {
        other?.group == group && other?.host.text == host.text
    }
}

extension Home {
    /// A client for providers, which trusts the system's anchors and those in `Certs/anchors`, and never the home's own
    /// interception CA.
    package func providerClient(now: @escaping @Sendable () -> Int64) throws -> ProviderClient {
        let anchors = try anchorFiles()
        return ProviderClient(
            anchors: .implicit(additional: anchors.certificates, revocationLists: anchors.revocationLists),
            refusing: try InterceptionStore(home: self).root().map { [$0] } ?? [], now: now)
    }
}
