// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCookies
import CountersignCryptography

/// The private key of a client identity. Its certificate chain is public and lives in `Certs/identities`.
package struct IdentityKey: Equatable, Sendable {
    package let name: String
    /// PKCS#8 `PrivateKeyInfo`, DER (RFC 5958 §2).
    package let privateKey: Secret
    /// SHA-256 of the leaf certificate's DER, 32 bytes: says which chain belongs to the key.
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

/// All secrets of one home. They are changed by the methods below only, and each of these increments ``generation``.
package struct VaultContents: Equatable, Sendable {
    /// Grows with every change and never decreases.
    package internal(set) var generation: UInt64
    /// By name.
    package private(set) var credentials: [String: PasswordCredential]
    /// By name. No password has the name of a token.
    package internal(set) var tokens: [String: TokenCredential] = [:]
    /// By name. No password or token has the name of a principal.
    package internal(set) var principals: [String: PrincipalCredential] = [:]
    /// By name. No other credential has the name of one of these.
    package internal(set) var awsKeys: [String: AWSCredential] = [:]
    /// By name. No other credential has the name of one of these.
    package internal(set) var programs: [String: ProgramCredential] = [:]
    /// By name. ``tokens`` has an access token of the same name for each.
    package internal(set) var signIns: [String: SignInRecord] = [:]
    /// None is without cookies.
    package internal(set) var sessions: [SharedSession.Key: SharedSession] = [:]
    /// By name.
    package private(set) var identityKeys: [String: IdentityKey]
    package private(set) var interception: InterceptionKeys?
    /// In the order of host, port and leaf, each combination at most once.
    package private(set) var trustExceptions: [TrustExceptionRecord]
    /// By the identity's name.
    package internal(set) var enrollments: [String: EnrollmentRecord] = [:]
    /// By the identity's name.
    package internal(set) var pendingEnrollments: [String: PendingEnrollment] = [:]
    /// By the identity's name. No identity has a key both here and in ``identityKeys``.
    package internal(set) var tokenKeys: [String: TokenKey] = [:]
    /// By identifier.
    package internal(set) var profiles: [String: ProfileRecord] = [:]
    /// The names of ``identityKeys`` and ``tokenKeys`` in the order in which they were added. Replacing a key keeps its
    /// place.
    package internal(set) var identityOrder: [String] = []
    /// The key of the tags by which the breaker identifies a user name and password; nil in a vault that was never
    /// rekeyed, in which it is derived from the data key.
    package internal(set) var tagKey: Secret?
    /// By name. ``signIns`` has a sign-in of the same name for each.
    package internal(set) var compliance: [String: ComplianceRecord] = [:]
    /// By name.
    package internal(set) var wipes: [String: WipeRecord] = [:]
    /// By name. ``signIns`` has a sign-in of the same name for each.
    package internal(set) var tokenPermissions: [String: TokenPermission] = [:]

    package init() {
        self.init(generation: 1, credentials: [:], identityKeys: [:], interception: nil)
    }

    init(
        generation: UInt64, credentials: [String: PasswordCredential], identityKeys: [String: IdentityKey],
        interception: InterceptionKeys?, trustExceptions: [TrustExceptionRecord] = []
    ) {
        self.generation = generation
        self.credentials = credentials
        self.identityKeys = identityKeys
        self.interception = interception
        self.trustExceptions = trustExceptions
        identityOrder = identityKeys.keys.sorted()
    }

    /// These contents, with the objects of `known` in place of equal ones, so that users of the older contents and of
    /// these share one copy of each secret.
    func sharingSecrets(with known: VaultContents) -> VaultContents {
        guard self != known else { return known }
        func share<Key, Record: Equatable>(_ records: inout [Key: Record], _ known: [Key: Record]) {
            for (name, record) in known where records[name] == record { records[name] = record }
        }
        var shared = self
        share(&shared.credentials, known.credentials)
        share(&shared.tokens, known.tokens)
        share(&shared.principals, known.principals)
        share(&shared.awsKeys, known.awsKeys)
        share(&shared.signIns, known.signIns)
        share(&shared.sessions, known.sessions)
        share(&shared.identityKeys, known.identityKeys)
        share(&shared.pendingEnrollments, known.pendingEnrollments)
        share(&shared.tokenKeys, known.tokenKeys)
        if interception == known.interception { shared.interception = known.interception }
        if tagKey == known.tagKey { shared.tagKey = known.tagKey }
        return shared
    }

    /// Adds a password, or replaces the one of that name. The credential gets a new generation even if its values are
    /// the same. Throws `invalidRecord` for a value outside ``VaultLimits``, and `nameInUse` if a token or a principal
    /// has the name.
    @discardableResult
    package mutating func setCredential(
        name: String, user: String, password: Secret
    ) throws(VaultError) -> PasswordCredential {
        try VaultLimits.check(name: name)
        try VaultLimits.check(user: user)
        try VaultLimits.check(password, "password", upTo: VaultLimits.passwordBytes)
        guard signIns[name] == nil else { throw Self.signInHasName(name) }
        guard tokens[name] == nil else { throw Self.nameInUse(name, by: "a token") }
        guard principals[name] == nil else { throw Self.nameInUse(name, by: "a Kerberos principal") }
        guard awsKeys[name] == nil else { throw Self.nameInUse(name, by: Self.keysOfAWS) }
        try checkProgram(name, writes: .password(user: user))
        advance()
        programs[name] = nil
        let credential = PasswordCredential(name: name, user: user, password: password, generation: generation)
        credentials[name] = credential
        return credential
    }

    /// Adds a Kerberos principal, or replaces the one of that name. Throws `invalidRecord` for a value outside
    /// ``VaultLimits``, and `nameInUse` if a password or a token has the name.
    @discardableResult
    package mutating func setPrincipal(
        name: String, principal: String, proof: PrincipalCredential.Proof
    ) throws(VaultError) -> PrincipalCredential {
        try VaultLimits.check(name: name)
        try VaultLimits.check(principal: principal)
        try VaultLimits.check(proof.secret, "password or the keys", upTo: VaultLimits.passwordBytes)
        guard credentials[name] == nil else { throw Self.nameInUse(name, by: "a user name and password") }
        guard signIns[name] == nil else { throw Self.signInHasName(name) }
        guard tokens[name] == nil else { throw Self.nameInUse(name, by: "a token") }
        guard programs[name] == nil else { throw Self.nameInUse(name, by: "what a program writes") }
        guard awsKeys[name] == nil else { throw Self.nameInUse(name, by: Self.keysOfAWS) }
        advance()
        let credential = PrincipalCredential(
            name: name, principal: principal, proof: proof, source: .vault(generation: generation))
        principals[name] = credential
        return credential
    }

    /// Adds a bearer token, or replaces the one of that name, which gets a new generation even if it is the same.
    /// Throws `invalidRecord` for a name or token that is not valid, and `nameInUse` if a password, a principal or a
    /// sign-in has the name.
    @discardableResult
    package mutating func setToken(name: String, token: Secret) throws(VaultError) -> TokenCredential {
        try VaultLimits.check(name: name)
        try VaultLimits.check(token, "token", upTo: VaultLimits.passwordBytes)
        guard TokenCredential.isStorable(token) else {
            throw VaultError(
                .invalidRecord, "the token has a character that Bearer cannot send (RFC 6750 §2.1)",
                hint: "a token consists of A-Z a-z 0-9 - . _ ~ + / and may end with =; leave out the word Bearer")
        }
        guard credentials[name] == nil else { throw Self.nameInUse(name, by: "a user name and password") }
        guard principals[name] == nil else { throw Self.nameInUse(name, by: "a Kerberos principal") }
        guard signIns[name] == nil else { throw Self.signInHasName(name) }
        guard awsKeys[name] == nil else { throw Self.nameInUse(name, by: Self.keysOfAWS) }
        try checkProgram(name, writes: .token)
        advance()
        programs[name] = nil
        let credential = TokenCredential(name: name, token: token, generation: generation)
        tokens[name] = credential
        return credential
    }

    static let keysOfAWS = "keys of AWS"

    static func signInHasName(_ name: String) -> VaultError {
        VaultError(
            .nameInUse, "credential \(name.debugDescription) is the access token of a sign-in",
            hint: "choose another name, or sign out with `countersign unenroll \(name)`")
    }

    static func nameInUse(_ name: String, by kind: String) -> VaultError {
        VaultError(
            .nameInUse, "credential \(name.debugDescription) is \(kind)",
            hint: "choose another name, or remove it with `countersign credential remove \(name)`")
    }

    /// The names of all passwords, tokens, principals and keys of AWS, sorted, with those whose secrets programs write.
    package var credentialNames: [String] {
        (Array(credentials.keys) + tokens.keys + principals.keys + awsKeys.keys + programs.keys).sorted()
    }

    /// Removes a password, token, principal or keys of AWS, and returns whether there was one of that name. The access
    /// token of a sign-in does not count: it is removed with the sign-in.
    @discardableResult
    package mutating func removeCredential(named name: String) -> Bool {
        guard signIns[name] == nil,
            credentials.removeValue(forKey: name) != nil || tokens.removeValue(forKey: name) != nil
                || principals.removeValue(forKey: name) != nil || awsKeys.removeValue(forKey: name) != nil
                || programs.removeValue(forKey: name) != nil
        else {
            return false
        }
        advance()
        return true
    }

    /// Adds a private key and removes any other key of that identity. Throws `invalidRecord` for a value outside
    /// ``VaultLimits``.
    package mutating func setIdentityKey(_ key: IdentityKey) throws(VaultError) {
        try VaultLimits.check(name: key.name)
        try VaultLimits.check(key.privateKey, "private key", upTo: VaultLimits.keyBytes)
        guard key.leafSHA256.count == VaultLimits.digestBytes else {
            throw VaultError(.invalidRecord, "a SHA-256 has 32 bytes, not \(key.leafSHA256.count)")
        }
        tokenKeys[key.name] = nil
        advance()
        identityKeys[key.name] = key
        noteAdded(key.name)
    }

    /// Removes a private key and returns whether there was one of that name.
    @discardableResult
    package mutating func removeIdentityKey(named name: String) -> Bool {
        guard identityKeys.removeValue(forKey: name) != nil else { return false }
        advance()
        noteRemoved(name)
        return true
    }

    /// Sets the interception CA's keys, or removes them. Throws `invalidRecord` for a key outside ``VaultLimits``.
    package mutating func setInterception(_ keys: InterceptionKeys?) throws(VaultError) {
        if let keys {
            try VaultLimits.check(keys.rootKey, "root key", upTo: VaultLimits.keyBytes)
            try VaultLimits.check(keys.issuingKey, "issuing key", upTo: VaultLimits.keyBytes)
        }
        advance()
        interception = keys
    }

    /// The trust exceptions for one host and port, in the order of their leaves.
    package func trustExceptions(host: String, port: UInt16) -> [TrustExceptionRecord] {
        trustExceptions.filter { $0.host == host && $0.port == port }
    }

    /// Adds a trust exception, or replaces the one for the same host, port and leaf. Throws `invalidRecord` for a value
    /// outside ``VaultLimits``.
    package mutating func setTrustException(_ exception: TrustExceptionRecord) throws(VaultError) {
        if let fault = exception.fault { throw VaultError(.invalidRecord, fault) }
        advance()
        let order = exception.order
        let index = trustExceptions.firstIndex { $0.order >= order } ?? trustExceptions.endIndex
        if index < trustExceptions.endIndex, trustExceptions[index].order == order {
            trustExceptions[index] = exception
        } else {
            trustExceptions.insert(exception, at: index)
        }
    }

    /// Removes the trust exceptions for one host and port and returns how many there were.
    @discardableResult
    package mutating func removeTrustExceptions(host: String, port: UInt16) -> Int {
        let kept = trustExceptions.filter { $0.host != host || $0.port != port }
        let count = trustExceptions.count - kept.count
        guard count > 0 else { return 0 }
        advance()
        trustExceptions = kept
        return count
    }

    /// Removes a password, token or keys in whose place a program writes them.
    mutating func withoutCredential(named name: String) {
        credentials[name] = nil
        tokens[name] = nil
        awsKeys[name] = nil
    }

    /// Removes a private key that another key of the same identity replaces.
    mutating func withoutIdentityKey(named name: String) { identityKeys[name] = nil }

    /// Counts one more change: of a record, or of the vault's key.
    mutating func advance() {
        generation += 1
    }
}
