// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignEnrollment
import CountersignHome
import CountersignVault

extension RenewalAttempt {
    /// If the server does not accept a certificate that it issued, a new one is requested after this many attempts.
    private static let verificationAttempts: UInt32 = 3

    /// Verifies the issued certificate with the server and makes it the identity's. Returns the leaf, or nil if the
    /// issued chain is unusable, which discards it.
    func install() async throws -> Certificate? {
        guard let pending = vault.contents.pendingEnrollments[name], case .issued(let issued) = pending.state,
            let chain = try? issued.map({ try Certificate(der: $0) }),
            let identity = try identity(chain, of: pending), identity.leaf.isValid(at: now),
            pending.attempts < Self.verificationAttempts
        else {
            try vault.update { contents in
                if let plan = plan(in: contents) {
                    try contents.setPendingEnrollment(
                        PendingEnrollment(for: plan, token: pendingToken(in: contents), created: now))
                } else {
                    contents.removePendingEnrollment(named: name)
                }
            }
            return nil
        }
        try await verify(identity)
        try commit(identity)
        return identity.leaf
    }

    /// Nil if the key and the chain do not match. Throws if a token cannot be used now.
    private func identity(_ chain: [Certificate], of pending: PendingEnrollment) throws -> Identity? {
        let key = if let token = pending.token { try key(in: token) } else { try PrivateKey(pkcs8: pending.privateKey) }
        return try? Identity(name: name, chain: chain, key: key)
    }

    private func pendingToken(in contents: VaultContents) -> TokenKey? { contents.pendingEnrollments[name]?.token }

    /// Presents the new certificate to the server that has issued it. Throws if the server does not accept it, and the
    /// identity is better off with the present one.
    private func verify(_ identity: Identity) async throws {
        let record = try record()
        do {
            guard try await session().verify(identity) else {
                return context.report(.notVerified(server: record.server))
            }
        } catch let error as EnrollmentError {
            if try await !hasBetterIdentity(than: error) { return context.report(.notVerified(server: record.server)) }
            guard error.code == .identityRefused || error.code == .identityUnusable else { throw error }
            try vault.update { contents in
                guard var pending = contents.pendingEnrollments[name] else { return }
                pending.attempts = pending.attempts &+ 1
                try contents.setPendingEnrollment(pending)
            }
            throw EnrollmentError(
                .wrongCertificate, "\(record.server) does not accept the certificate that it issued: \(error.detail)",
                hint: "the identity is unchanged")
        }
    }

    /// Whether the present identity is preferable to one that failed its test with this error.
    private func hasBetterIdentity(than error: EnrollmentError) async throws -> Bool {
        switch error.code {
        case .identityUnusable:
            guard let present = try workingIdentity() else { return false }
            // The identity to replace may be for other servers. Otherwise, a server that cannot use the present key in
            // TLS either, such as P-384 with libest, has not tested the new certificate.
            if plan(in: vault.contents) != nil { return true }
            return try await canBeUsed(present)
        default:
            // If there is no working identity, an unverified one is better than none.
            return try !error.isTransient || workingIdentity() != nil
        }
    }

    /// Whether the server can use the identity's key in TLS.
    private func canBeUsed(_ identity: Identity) async throws -> Bool {
        do {
            _ = try await session().verify(identity)
            return true
        } catch let error as EnrollmentError {
            if error.code == .identityUnusable { return false }
            guard error.code == .identityRefused else { throw error }
            return true
        }
    }

    /// Whether the identity may get its present certificate back if a site rejects the new one: not if that is another
    /// person's, or another service has issued it.
    private func keepsPrevious(of record: EnrollmentRecord, in contents: VaultContents) -> Bool {
        guard let present = contents.enrollments[name] else { return record.owner == nil }
        guard let owner = record.owner else { return present.owner == nil }
        guard present.server == record.server else { return false }
        guard let signIn else { return present.owner?.signIn == owner.signIn }
        // The sign-in before, which is replaced in the same step.
        guard let former = contents.signIn(of: present) else { return false }
        return signIn.new.isSamePerson(as: former)
    }

    private func commit(_ identity: Identity) throws {
        let time = now
        try vault.update { contents in
            var record = try record(in: contents)
            let before = StoredIdentity(named: name, in: contents, home: home).identity
            let keepsPrevious = keepsPrevious(of: record, in: contents)
            record.previous = keepsPrevious ? contents.enrollments[name]?.previous : nil
            let isKept = record.previous?.leaf?.isValid(at: time) ?? false
            if let before, keepsPrevious, !isKept, before.leaf != identity.leaf {
                // A key in a token can only be restored by its token's URI, which remains that of the new certificate.
                let isSameKey = identity.key.isInToken && identity.key.matches(before.leaf)
                let key: Secret? =
                    before.key.isInToken
                    ? (isSameKey ? PendingEnrollment.keyInToken : nil) : try before.key.pkcs8
                record.previous = key.map { PreviousIdentity(privateKey: $0, chain: before.chain.map(\.der)) }
            }
            record.chain = identity.chain.map(\.der)
            record.failures = 0
            record.lastFailure = 0
            let leafSHA256 = identity.leaf.sha256Fingerprint
            if let token = pendingToken(in: contents) {
                try contents.setTokenKey(token.certified(by: leafSHA256))
            } else {
                try contents.setIdentityKey(
                    IdentityKey(name: name, privateKey: try identity.key.pkcs8, leafSHA256: leafSHA256))
            }
            try contents.setEnrollment(record)
            contents.removePendingEnrollment(named: name)
            try signIn?.store(&contents)
            try profile?.store(&contents)
        }
        do {
            try context.repairFile(of: name)
        } catch {
            // The vault has a copy, so the identity is complete.
            context.report(.fileNotWritten(reason: Diagnostic.all(in: error).first?.message ?? "it cannot be written"))
        }
    }
}
