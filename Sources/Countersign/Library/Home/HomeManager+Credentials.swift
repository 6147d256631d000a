// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
package import CountersignHome
import CountersignNegotiate
import CountersignReporting
import CountersignVault
public import FoundationEssentials

/// A credential of a home, without its password, token or key.
public struct StoredCredential: Equatable, Sendable {
    /// The kind of a credential.
    public struct Kind: Hashable, Sendable, CustomStringConvertible {
        /// `password`, `token`, `principal` or `keytab`.
        public let description: String

        /// A user name and password.
        public static let password = Kind(description: "password")
        /// A bearer token.
        public static let token = Kind(description: "token")
        /// A Kerberos principal with its password.
        public static let principal = Kind(description: "principal")
        /// A Kerberos principal with its keys.
        public static let keytab = Kind(description: "keytab")
        /// Keys of AWS, with which requests are signed.
        public static let aws = Kind(description: "aws")
    }

    /// The name that a site's line gives with `credential=`; `enrollment` unless it says otherwise.
    public let name: String
    /// Whether it is a password, a token, a principal, a keytab or keys of AWS.
    public let kind: Kind
    /// The user name, the principal or the access key ID; nil for a token.
    public let user: String?
    /// The site to which it is not sent, because that rejected it or did not respond; nil if it is sent everywhere.
    public let block: CredentialBlock?

    /// Creates a value, for the tests of a program.
    public init(name: String, kind: Kind, user: String?, block: CredentialBlock? = nil) {
        self.name = name
        self.kind = kind
        self.user = user
        self.block = block
    }

    init(_ listed: ListedCredential) {
        self.init(
            name: listed.name, kind: Kind(description: listed.kind.rawValue), user: listed.user,
            block: listed.blocked.map { CredentialBlock($0) })
    }
}

/// Where a credential is not sent, until it changes or ``HomeManager/permitRetry(ofCredential:)`` is called.
public struct CredentialBlock: Equatable, Sendable {
    /// Whether it is sent nowhere, after a second rejection.
    public let isEverywhere: Bool
    /// The sites that have rejected it or not answered, such as `https://git.corp.example:443`, oldest first.
    public let sites: [String]
    /// A sentence for display, without a full stop.
    public let reason: String

    /// Creates a value, for the tests of a program.
    public init(isEverywhere: Bool, sites: [String], reason: String) {
        self.isEverywhere = isEverywhere
        self.sites = sites
        self.reason = reason
    }

    init(_ blocked: BlockedCredential) {
        self.init(
            isEverywhere: blocked.isBlockedEverywhere, sites: blocked.places.map(\.site), reason: blocked.sentence)
    }
}

extension HomeManager {
    /// The credentials, sorted by name.
    public func credentials() async throws -> [StoredCredential] {
        try await onVault { try $0.perform(ListCredentials()).map { StoredCredential($0) } }
    }

    /// Stores a user name and its password, in place of any credential of that name. `name` has 1 to 64 characters from
    /// `A-Z a-z 0-9 . _ -`. Returns the block if a site has already rejected them: storing a rejected password again
    /// does not permit another attempt. Throws `valueFaulty`, and `nameInUse` if the name is that of a sign-in.
    @discardableResult
    public func setPassword(
        _ password: Password, user: String, name: String = "enrollment"
    ) async throws -> CredentialBlock? {
        try Self.check(name)
        guard VaultLimits.isUser(user) else {
            throw ChallengeError(
                .valueFaulty,
                "the user name is empty, longer than \(VaultLimits.userBytes) bytes, or has a control character")
        }
        return try await set(SetCredential(name: name, user: user), password)
    }

    /// Stores a bearer token (RFC 6750), which answers Bearer challenges over https only. Otherwise like
    /// ``setPassword(_:user:name:)``.
    @discardableResult
    public func setToken(_ token: BearerToken, name: String) async throws -> CredentialBlock? {
        try Self.check(name)
        return try await set(SetToken(name: name), Password(token.text))
    }

    /// Stores a Kerberos principal, such as `jdoe@CORP.EXAMPLE`, with its password, which obtains tickets and is sent
    /// to no site. Otherwise like ``setPassword(_:user:name:)``.
    @discardableResult
    public func setPrincipal(
        _ principal: String, password: Password, name: String
    ) async throws -> CredentialBlock? {
        try Self.check(name)
        try Self.check(principal: principal)
        return try await set(SetPrincipal(name: name, principal: principal, hasKeys: false), password)
    }

    /// Stores a Kerberos principal with its keys of all versions and types in a keytab file. Otherwise like
    /// ``setPrincipal(_:password:name:)``; also throws `valueFaulty` if the file cannot be read or has no key of the
    /// principal.
    @discardableResult
    public func setPrincipal(_ principal: String, keytab: URL, name: String) async throws -> CredentialBlock? {
        try Self.check(name)
        try Self.check(principal: principal)
        return try await onVault(creates: true) { vault in
            let keys: Secret
            do throws(KerberosError) {
                keys = try KeytabKeys.read(keytab.path(percentEncoded: false), of: principal)
            } catch {
                throw ChallengeError(.valueFaulty, error.detail, hint: error.hint, fault: .caller)
            }
            let operation = SetPrincipal(name: name, principal: principal, hasKeys: true)
            return try vault.perform(operation, secret: keys).map { CredentialBlock($0) }
        }
    }

    private static func check(principal: String) throws {
        guard VaultLimits.isPrincipal(principal) else {
            throw ChallengeError(
                .valueFaulty, "\(principal.debugDescription) is not a principal",
                hint: "write a name and a realm, such as jdoe@CORP.EXAMPLE")
        }
    }

    private func set<Operation: VaultOperation>(
        _ operation: Operation, _ password: Password
    ) async throws -> CredentialBlock? where Operation.Result == BlockedCredential? {
        try await onVault(creates: true) { vault in
            try vault.perform(operation, secret: password.secret).map { CredentialBlock($0) }
        }
    }

    /// Removes a credential. Throws `credentialMissing` if no credential has that name.
    public func removeCredential(_ name: String) async throws {
        try await onVault(missing: .credentialMissing) { vault in
            let removed = try vault.perform(RemoveCredential(name: name))
            guard removed.count > 0 else {
                throw CountersignError.unknown(
                    "credential", name, known: removed.known, addedBy: "credential set --user USER")
            }
        }
    }

    /// Permits one more attempt with a credential that sites have rejected, or with all of them; for a password that is
    /// right after all, for example because the account was locked. Returns the names. Throws `credentialMissing` if
    /// nothing is blocked.
    @discardableResult
    public func permitRetry(ofCredential name: String? = nil) async throws -> [String] {
        try await blocking(missing: .credentialMissing) { [home] in
            try BreakerFile(home: home, now: ChallengeController.now).permitRetry(of: name)
        }
    }

    /// Throws `valueFaulty` unless `name` can name a credential or an identity.
    static func check(_ name: String) throws(ChallengeError) {
        guard IdentityName.isGood(name) else {
            throw ChallengeError(
                .valueFaulty, "\(name.debugDescription) is not a name",
                hint: "use 1 to 64 characters from A-Z a-z 0-9 . _ -")
        }
    }
}

extension BreakerFile {
    /// Permits one more attempt with the blocked credential `name`, or with all. Returns their names. Throws
    /// `unknownName` without a blocked one.
    package func permitRetry(of name: String?) throws(CountersignError) -> [String] {
        var names: [String] = []
        if try !isEmpty() {
            let time = ChallengeController.now()
            try update { names = $0.permitRetry(of: name, at: time) }
        }
        guard !names.isEmpty else {
            throw CountersignError(
                .unknownName,
                name.map { "credential \($0.debugDescription) is not blocked" } ?? "no credential is blocked",
                hint: "`countersign credential list` shows which are")
        }
        return names
    }
}
