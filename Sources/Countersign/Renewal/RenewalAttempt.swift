// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignEnrollment
import CountersignHome
import CountersignVault

/// One renewal of one identity, continuing from the vault's current state. The caller holds the identity's
/// ``RenewalLock``.
struct RenewalAttempt: Sendable {
    let context: RenewalContext
    let name: String
    let reusesKey: Bool
    /// Follows the pending plan rather than the identity's enrolment.
    let isFirst: Bool
    /// Chooses the trust anchors of issued certificates once, for the plan of a first request.
    let confirm: AnchorConfirmation?
    /// The sign-in that a first request belongs to; nil if it belongs to none.
    var signIn: SignInInProgress?
    /// The configuration profile that a first request belongs to; nil if it belongs to none.
    var profile: ProfileInProgress?

    var vault: OpenVault { context.vault }
    var home: Home { context.home }
    var now: Int64 { context.now() }

    func run(patienceSeconds: Int64) async throws -> RenewalOutcome {
        do {
            if !isFirst, vault.contents.hasAbandonedRequest(named: name) {
                try vault.update { contents in
                    if contents.hasAbandonedRequest(named: name) { contents.removePendingEnrollment(named: name) }
                }
            }
            if case .issued = vault.contents.pendingEnrollments[name]?.state {
                if let leaf = try await install() { return .renewed(leaf) }
            }
            if let until = try await request(patienceSeconds: patienceSeconds) { return .pending(until: until) }
            guard let leaf = try await install() else {
                throw EnrollmentError(.wrongCertificate, "the issued certificate is not valid now")
            }
            return .renewed(leaf)
        } catch {
            let isOfSignIn = (try? record())?.owner != nil
            if !error.isCancellation { try recordFailure(error) }
            throw isOfSignIn ? error.withoutFingerprints : error
        }
    }

    // MARK: The enrolment's record

    /// The description of the certificate: the pending plan, or the identity's enrolment.
    func record() throws(CountersignError) -> EnrollmentRecord { try record(in: vault.contents) }

    func record(in contents: VaultContents) throws(CountersignError) -> EnrollmentRecord {
        guard let record = plan(in: contents) ?? (isFirst ? nil : contents.enrollments[name]) else {
            throw CountersignError(
                .unknownName, "the enrolment of \(name.debugDescription) was removed during the renewal")
        }
        return record
    }

    /// The pending plan, if this attempt follows it. The existing identity cannot authenticate it.
    func plan(in contents: VaultContents) -> EnrollmentRecord? {
        isFirst ? contents.pendingEnrollments[name]?.plan : contents.pendingPlan(of: name)
    }

    /// Changes the record that ``record(in:)`` returns.
    private func updateRecord(
        in contents: inout VaultContents, _ change: (inout EnrollmentRecord) -> Void
    ) throws {
        var record = try record(in: contents)
        change(&record)
        if plan(in: contents) != nil, var pending = contents.pendingEnrollments[name] {
            pending.plan = record
            try contents.setPendingEnrollment(pending)
        } else {
            try contents.setEnrollment(record)
        }
    }

    /// The identity, if a server could accept it now. May log in to a token, and records a refused PIN.
    func workingIdentity() throws -> Identity? {
        let stored = StoredIdentity(named: name, in: vault.contents, home: home)
        if let key = stored.refusedPIN { try vault.update { $0.refusePIN(of: key) } }
        return stored.identity.flatMap { $0.leaf.isValid(at: now) ? $0 : nil }
    }

    /// The key in the token, and how to reach it; nil if the record's key is not in a token.
    private func keyInToken() throws -> (key: PrivateKey, token: TokenKey)? {
        guard try record().keySpecification == EnrollmentRecord.tokenKey else { return nil }
        let contents = vault.contents
        guard let token = contents.pendingEnrollments[name]?.token ?? contents.tokenKeys[name] else {
            throw CountersignError(
                .unknownName, "the vault has no token for the key of identity \"\(name)\"",
                hint: "enrol it again with `countersign certificate enroll \(name) --replace --key pkcs11:… --est URL`")
        }
        return (try key(in: token), token)
    }

    /// Loads the key, unless its token has refused the PIN before.
    func key(in token: TokenKey) throws -> PrivateKey {
        let hint = "enrol it again with `countersign certificate enroll \(name) --replace --key pkcs11:… --est URL`"
        guard !token.isPINRefused else {
            throw CountersignError(.configuration, "the token refused the PIN before", hint: hint)
        }
        do throws(CertificateError) {
            return try PKCS11Token.key(at: try TokenURI(token.uri), pin: token.pin)
        } catch {
            guard error.code == .wrongPassword else { throw error }
            try vault.update { contents in
                contents.refusePIN(of: token)
                contents.refusePendingPIN(of: token)
            }
            throw CountersignError(.configuration, error.detail, hint: hint)
        }
    }

    // MARK: Requesting

    /// Requests the certificate. Returns nil once it is in the vault, or the time at which to ask the server again.
    private func request(patienceSeconds: Int64) async throws -> Int64? {
        let deadline = now + patienceSeconds
        var confirm = confirm
        while true {
            if let retryAt = vault.contents.pendingEnrollments[name]?.retryTime(at: now), retryAt > now {
                guard retryAt <= deadline else { return retryAt }
                context.report(.waiting(server: try record().server, until: retryAt))
                try await Task.sleep(for: .seconds(retryAt - now))
            }
            let session = try session(confirming: confirm, tokenFault: try await renewToken())
            confirm = nil
            context.report(.asking(server: try record().server))
            let answer = try await session.request { attributes throws in try pendingKey(for: attributes) }
            switch answer.outcome {
            case .issued(let chain):
                try storeIssued(chain, answer)
                return nil
            case .pending(let seconds, let request):
                let retryAt = now + min(max(seconds, 1), ESTClient.longestRetryAfter)
                try vault.update { contents in
                    _ = try record(in: contents)
                    guard var pending = contents.pendingEnrollments[name] else { return }
                    pending.retryAt = retryAt
                    pending.attempts = pending.attempts &+ 1
                    pending.request = request
                    try contents.setPendingEnrollment(pending)
                }
                if patienceSeconds == 0 { return retryAt }
            }
        }
    }

    private func storeIssued(_ chain: [Certificate], _ answer: EnrollmentSession.Answer) throws {
        try vault.update { contents in
            try updateRecord(in: &contents) { record in
                record.anchors = answer.anchors.map(\.der)
                record.serverAnchors = record.serverAnchors.rolledOver(by: answer.published, at: now)
                if answer.authentication.hasPassword { record.refusedCredential = 0 }
                if answer.authentication.hasToken { record.owner?.refusedToken = 0 }
                // The server accepted the current identity, so the one it replaced is no longer needed.
                if case .current = answer.authentication { record.previous = nil }
            }
            guard var pending = contents.pendingEnrollments[name] else { return }
            pending.state = .issued(chain: chain.map(\.der))
            pending.retryAt = 0
            pending.attempts = 0
            pending.request = []
            try contents.setPendingEnrollment(pending)
        }
    }

    func session(
        confirming confirm: AnchorConfirmation? = nil, tokenFault: EnrollmentSession.TokenFault? = nil
    ) throws -> EnrollmentSession {
        let contents = vault.contents
        let record = try record()
        var refused: [Certificate] = []
        if let root = try InterceptionStore(home: home).root() { refused.append(root) }
        let confirmation: EnrollmentSession.Confirmation? =
            if let confirm { { try confirmed($0, confirm) } } else { nil }
        let listed = listedEnroller(record, contents)
        let enroller = (record.identity ?? listed.identity).map { StoredIdentity(named: $0, in: contents, home: home) }
        if let key = enroller?.refusedPIN { try vault.update { $0.refusePIN(of: key) } }
        let token = signIn?.token ?? contents.accessToken(for: record, at: now)
        var homeAnchors = AnchorFiles()
        if record.serverAnchors == .implicit {
            homeAnchors = try home.anchorFiles()
            for anchor in profile?.anchors ?? [] { try homeAnchors.add(Array(anchor.pem.utf8), from: "the profile") }
        }
        return try EnrollmentSession(
            record: record, homeAnchors: homeAnchors,
            refusing: refused, current: plan(in: contents) == nil ? try workingIdentity() : nil,
            enroller: EnrollmentSession.Enroller(
                credential: (listed.credential ?? record.credential).flatMap { contents.credentials[$0] },
                token: token, identity: profile?.identity ?? enroller?.identity,
                tokenFault: token == nil ? tokenFault : nil),
            now: context.now, report: context.report, confirm: confirmation)
    }

    /// For the certificate of a sign-in, the credential that the list of sites names for the EST server: a server that
    /// does not accept the access token may accept it.
    private func listedEnroller(
        _ record: EnrollmentRecord, _ contents: VaultContents
    ) -> (credential: String?, identity: String?) {
        // A faulty list permits nothing.
        guard signIn != nil || contents.signIn(of: record) != nil,
            let listed = try? home.sites().authentication(at: try ESTEndpoint(parsing: record.server).origin)
        else { return (nil, nil) }
        return (listed.credential, listed.identity == self.name ? nil : listed.identity)
    }

    /// Stores the anchors that the user has chosen among those of a server that has been verified (RFC 7030 §4.1.3).
    private func confirmed(
        _ published: ESTPublishedAuthorities, _ confirm: AnchorConfirmation
    ) throws -> [Certificate] {
        let record = try record()
        let anchors = try confirm(published)
        let isVerified = try ESTEndpoint(parsing: record.server).isVerified(
            published.serverChain, by: .explicit(anchors), at: now)
        try vault.update { contents in
            try updateRecord(in: &contents) { record in
                record.anchors = anchors.map(\.der)
                switch record.serverAnchors {
                case .own(let own) where Set(own) == Set(record.anchors): record.serverAnchors = .same
                // The explicit anchors are fewer than the implicit ones, so they are used if they suffice.
                case .implicit where isVerified: record.serverAnchors = .same
                case .same, .own, .implicit: break
                }
            }
        }
        return anchors
    }

    /// The key for the request, stored in the vault before the request is sent. Reuses the pending key if it still
    /// fits.
    private func pendingKey(for attributes: CSRAttributes?) throws -> (key: PrivateKey, previous: [UInt8]?) {
        if let (key, token) = try keyInToken() {
            return try vault.update { contents in
                _ = try record(in: contents)
                if let pending = contents.pendingEnrollments[name], pending.token?.uri == token.uri {
                    return (key, pending.request.isEmpty ? nil : pending.request)
                }
                var pending = PendingEnrollment(token: token, created: max(0, now))
                pending.plan = plan(in: contents)
                try contents.setPendingEnrollment(pending)
                return (key, nil)
            }
        }
        let wanted = try specification(attributes)
        return try vault.update { contents in
            _ = try record(in: contents)
            let plan = plan(in: contents)
            let reusesKey = reusesKey && plan == nil
            let present = contents.identityKeys[name]?.privateKey
            if let pending = contents.pendingEnrollments[name], (pending.plan == nil) == (plan == nil),
                let key = try? PrivateKey(pkcs8: pending.privateKey),
                reusesKey ? pending.privateKey == present : pending.privateKey != present && key.kind == wanted.kind
            {
                return (key, pending.request.isEmpty ? nil : pending.request)
            }
            let key: PrivateKey
            if reusesKey, let present { key = try PrivateKey(pkcs8: present) } else { key = try .generate(wanted) }
            var pending = PendingEnrollment(name: name, privateKey: try key.pkcs8, created: max(0, now))
            pending.plan = plan
            try contents.setPendingEnrollment(pending)
            return (key, nil)
        }
    }

    private func specification(_ attributes: CSRAttributes?) throws -> KeySpecification {
        let text = try record().keySpecification
        if text == EnrollmentRecord.anyKey { return attributes?.keySpecification ?? .ecP256 }
        guard let specification = KeySpecification(text) else {
            throw CountersignError(.configuration, "\(text.debugDescription) is not a kind of key")
        }
        return specification
    }

    // MARK: Failing

    /// Records the failure for the next attempt.
    private func recordFailure(_ error: any Error) throws {
        let refusal = error as? CredentialRefused
        try vault.update { contents in
            guard let failed = try? record(in: contents) else { return }
            try updateRecord(in: &contents) { record in
                record.failures = record.failures == .max ? .max : record.failures + 1
                record.lastFailure = max(0, now)
                if let refusal { record.note(refusal) }
            }
            if let refusal, var enrollment = contents.enrollments[name], enrollment.server == failed.server,
                enrollment.credential == failed.credential
            {
                enrollment.note(refusal)
                try contents.setEnrollment(enrollment)
            }
            // A request that the server has refused is not repeated with the same key.
            if contents.pendingEnrollments[name]?.state == .requested, error.isAboutRequest {
                contents.removePendingEnrollment(named: name)
            }
        }
    }
}

extension EnrollmentRecord {
    fileprivate mutating func note(_ refusal: CredentialRefused) {
        guard refusal.generation != 0 else { return }
        if refusal.isToken { owner?.refusedToken = refusal.generation } else { refusedCredential = refusal.generation }
    }
}

extension Error {
    /// Without advice to choose other anchors, which are those of the profile.
    fileprivate var withoutFingerprints: any Error {
        guard let error = self as? EnrollmentError, error.hint?.contains("--fingerprint") == true else {
            return self
        }
        return EnrollmentError(
            error.code, error.detail,
            hint: "if the service has a new CA, ask for a profile that names it, and sign in again with that")
    }

    /// Whether the server refused the certificate request, or issued a certificate that does not match it. False for
    /// errors of the connection or the authentication.
    fileprivate var isAboutRequest: Bool {
        switch self {
        case let error as EnrollmentError: error.rejects == .request || error.code == .wrongCertificate
        case let error as CredentialRefused: error.turnsDownRequest
        default: false
        }
    }
}
