// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

/// The private key of a client identity. Its certificate chain is public and lives in `Certs/identities`.
package struct IdentityKey: Equatable, Sendable {
    package let name: String
    /// PKCS#8 `PrivateKeyInfo`, DER (RFC 5958 §2).
    package let privateKey: Secret
    /// SHA-256 of the leaf certificate's DER, 32 bytes: ties the key to its chain.
    package let leafSHA256: [UInt8]

    package init(name: String, privateKey: Secret, leafSHA256: [UInt8]) {
        self.name = name
        self.privateKey = privateKey
        self.leafSHA256 = leafSHA256
    }
}

/// The private keys of the interception CA, both PKCS#8 DER.
package struct InterceptionKeys: Equatable, Sendable {
    package let rootKey: Secret
    package let issuingKey: Secret

    package init(rootKey: Secret, issuingKey: Secret) {
        self.rootKey = rootKey
        self.issuingKey = issuingKey
    }
}

/// Everything secret of one home. Changed through its verbs only, each of which raises ``generation``.
package struct VaultContents: Equatable, Sendable {
    /// Grows with every change and never falls.
    package private(set) var generation: UInt64
    /// By name.
    package private(set) var credentials: [String: PasswordCredential]
    /// By name.
    package private(set) var identityKeys: [String: IdentityKey]
    package private(set) var interception: InterceptionKeys?
    /// In the order of host, port and leaf, no two with the same three.
    package private(set) var trustDecisions: [TrustDecision]
    /// By the identity's name.
    package internal(set) var enrollments: [String: EnrollmentRecord] = [:]
    /// By the identity's name.
    package internal(set) var pendingEnrollments: [String: PendingEnrollment] = [:]
    /// By the identity's name, of which none has a key in ``identityKeys`` too.
    package internal(set) var tokenKeys: [String: TokenKey] = [:]

    package init() {
        self.init(generation: 1, credentials: [:], identityKeys: [:], interception: nil)
    }

    init(
        generation: UInt64, credentials: [String: PasswordCredential], identityKeys: [String: IdentityKey],
        interception: InterceptionKeys?, trustDecisions: [TrustDecision] = []
    ) {
        self.generation = generation
        self.credentials = credentials
        self.identityKeys = identityKeys
        self.interception = interception
        self.trustDecisions = trustDecisions
    }

    /// How many records the vault file will hold.
    package var recordCount: Int {
        credentials.count + identityKeys.count + (interception == nil ? 0 : 1) + trustDecisions.count
            + enrollments.count + pendingEnrollments.count + tokenKeys.count
    }

    /// Enrols a password, or replaces the one of that name. The credential's generation is new even when its values are
    /// the old ones. Throws `invalidRecord` for a value out of ``VaultLimits``.
    @discardableResult
    package mutating func setCredential(
        name: String, user: String, password: Secret
    ) throws(VaultError) -> PasswordCredential {
        try VaultLimits.check(name: name)
        try VaultLimits.check(user: user)
        try VaultLimits.check(password, "password", upTo: VaultLimits.passwordBytes)
        advance()
        let credential = PasswordCredential(name: name, user: user, password: password, generation: generation)
        credentials[name] = credential
        return credential
    }

    /// Whether there was a credential of that name to remove.
    @discardableResult
    package mutating func removeCredential(named name: String) -> Bool {
        guard credentials.removeValue(forKey: name) != nil else { return false }
        advance()
        return true
    }

    /// Keeps a private key, in the place of any key of that identity. Throws `invalidRecord` for a value out of ``VaultLimits``.
    package mutating func setIdentityKey(_ key: IdentityKey) throws(VaultError) {
        try VaultLimits.check(name: key.name)
        try VaultLimits.check(key.privateKey, "private key", upTo: VaultLimits.keyBytes)
        guard key.leafSHA256.count == VaultLimits.digestBytes else {
            throw VaultError(.invalidRecord, "a SHA-256 has 32 bytes, not \(key.leafSHA256.count)")
        }
        removeTokenKey(named: key.name)
        advance()
        identityKeys[key.name] = key
    }

    /// Whether there was a key of that name to remove.
    @discardableResult
    package mutating func removeIdentityKey(named name: String) -> Bool {
        guard identityKeys.removeValue(forKey: name) != nil else { return false }
        advance()
        return true
    }

    /// Keeps the interception CA's keys, or forgets them. Throws `invalidRecord` for a key out of ``VaultLimits``.
    package mutating func setInterception(_ keys: InterceptionKeys?) throws(VaultError) {
        if let keys {
            try VaultLimits.check(keys.rootKey, "root key", upTo: VaultLimits.keyBytes)
            try VaultLimits.check(keys.issuingKey, "issuing key", upTo: VaultLimits.keyBytes)
        }
        advance()
        interception = keys
    }

    /// Keeps a decision, in the place of one for the same host, port and leaf. Throws `invalidRecord` for a value out of
    /// ``VaultLimits``.
    package mutating func setTrustDecision(_ decision: TrustDecision) throws(VaultError) {
        if let fault = decision.fault { throw VaultError(.invalidRecord, fault) }
        advance()
        let order = decision.order
        let index = trustDecisions.firstIndex { $0.order >= order } ?? trustDecisions.endIndex
        if index < trustDecisions.endIndex, trustDecisions[index].order == order {
            trustDecisions[index] = decision
        } else {
            trustDecisions.insert(decision, at: index)
        }
    }

    /// How many decisions there were for that place to forget.
    @discardableResult
    package mutating func removeTrustDecisions(host: String, port: UInt16) -> Int {
        let kept = trustDecisions.filter { $0.host != host || $0.port != port }
        let count = trustDecisions.count - kept.count
        guard count > 0 else { return 0 }
        advance()
        trustDecisions = kept
        return count
    }

    /// A change of the vault itself, not of a record.
    mutating func advance() {
        generation += 1
    }
}
