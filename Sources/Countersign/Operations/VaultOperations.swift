// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignCertificates
import CountersignChallenges
package import CountersignCryptography
import CountersignSitePolicy
package import CountersignVault
import FoundationEssentials

/// Performs ``VaultOperation``s on an opened vault: in the process of a command, or in a running server for a command.
///
/// Calls block for file operations, and while an EST server is asked for as long as it takes.
package struct VaultOperations: Sendable {
    let home: Home
    /// Nil if the home has none.
    let vault: OpenVault?
    /// Seconds since 1970.
    let now: @Sendable () -> Int64

    package init(home: Home, vault: OpenVault?, now: @escaping @Sendable () -> Int64) {
        self.home = home
        self.vault = vault
        self.now = now
    }

    /// Performs one operation. `secret` is the one that belongs to it, and `confirm` chooses the anchors of a first
    /// enrolment if the request does not have them. Throws ``CountersignError``, ``VaultError`` and others with a text
    /// for people.
    package func perform(
        _ operation: VaultOperation, secret: Secret? = nil, _ dialogue: OperationDialogue = .silent,
        confirm: AnchorConfirmation? = nil
    ) throws -> VaultResult {
        // An operation on profiles that cannot be completed says so itself.
        try? finishProfiles()
        switch operation {
        case .listNames:
            return .names(
                credentials: Set(vault?.contents.credentialNames ?? []),
                identities: vault?.contents.identityNames ?? [])
        case .listCredentials: return .credentials(try credentials())
        case .setCredential(let name, let user): return try setCredential(name, user, try Self.needed(secret))
        case .setToken(let name): return try setToken(name, try Self.needed(secret))
        case .setPrincipal(let name, let principal, let hasKeys):
            let secret = try Self.needed(secret)
            return try setPrincipal(name, principal, hasKeys ? .keys(secret) : .password(secret))
        case .removeCredential(let name): return try removeCredential(name)
        case .listTrustExceptions: return .trustExceptions(vault?.contents.trustExceptions ?? [])
        case .addTrustException(let exception):
            try opened().update { try $0.setTrustException(exception) }
            return .done
        case .removeTrustExceptions(let host, let port): return try removeTrustExceptions(host, port)
        case .listIdentities: return .identities(try identities())
        case .showIdentity(let name): return .identities(try identity(name))
        case .listRenewalStates(let name): return .renewalStates(try renewalStates(name))
        case .importIdentity(let name, let chain, let replaces):
            let key = try PrivateKey(pkcs8: try Self.needed(secret))
            try importIdentity(name, chain.map { try Certificate(der: Array($0)) }, key, replaces: replaces)
            return .done
        case .removeIdentity(let name): return try removeIdentity(name)
        case .repairIdentity(let name):
            try Self.check(name)
            return .repaired(try renewal(dialogue).repairFile(of: name))
        case .refreshIdentity(let name, let options):
            try Self.check(name)
            let renewal = try renewal(dialogue)
            return try .outcome(
                Blocking.run(isAbandoned: dialogue.isAbandoned) { try await renewal.refresh(name, options) })
        case .checkEnrollment(let name, let replaces):
            try Self.check(name)
            try renewal(dialogue).checkName(name, replaces: replaces, isInToken: false)
            return .done
        case .enrollIdentity(let request): return try enroll(request, dialogue, confirm)
        case .listSignIns: return .signIns(signIns())
        case .checkSignIn(let name, let sites, let obtainsCertificate):
            return try checkSignIn(name, sites, obtainsCertificate: obtainsCertificate ?? false)
        case .storeSignIn(let new):
            guard let tokens = SignInTokens(decoding: try Self.needed(secret)) else {
                throw CountersignError(.refused, "the tokens are malformed")
            }
            return try storeSignIn(new, tokens, dialogue)
        case .removeSignIn(let name): return try removeSignIn(name, dialogue)
        case .remediateCompliance(let name, let isSilent, let languages, let seconds):
            return try remediate(name, isSilent: isSilent, languages: languages, seconds: seconds, dialogue)
        case .wipe(let name): return try wipe(name, dialogue)
        case .listSessions: return .sessions(sessions())
        case .storeSession(let new, let replaces):
            return try storeSession(new, try Self.needed(secret), replaces: replaces)
        case .clearSessions(let group, let host): return try clearSessions(group: group, host: host)
        case .listProfiles: return .profiles(profiles())
        case .installProfile(let new): return try installProfile(new, secret, dialogue)
        case .removeProfile(let identifier): return try removeProfile(identifier, dialogue)
        case .ensureAuthority, .rotateAuthority: return try authority(operation)
        case .report, .runProxy:
            throw CountersignError(.refused, "only a running server has a policy")
        }
    }

    // MARK: Parts

    func opened() throws -> OpenVault {
        guard let vault else { throw CountersignError(.unknownName, "there is no vault in \(home.path)") }
        return vault
    }

    private static func needed(_ secret: Secret?) throws -> Secret {
        guard let secret else { throw CountersignError(.refused, "the secret is missing or empty") }
        return secret
    }

    /// Throws unless `name` can name an identity and its file.
    static func check(_ name: String) throws {
        guard SiteRule.isStoredName(name), VaultLimits.isName(name) else {
            throw CountersignError(.configuration, "\(name.debugDescription) is not a name")
        }
    }

    // MARK: Credentials

    private func credentials() throws -> [ListedCredential] {
        guard let vault else { return [] }
        let records = try BreakerFile(home: home, now: now).read()
        let key = vault.tagKey
        let contents = vault.contents
        func listed(_ kind: EnrolledCredential.Kind, _ name: String, _ user: String?, _ tag: CredentialTag)
            -> ListedCredential
        {
            ListedCredential(
                name: name, kind: kind, user: user,
                blocked: BlockedCredential.all(in: records, only: [tag], at: now()).first)
        }
        let passwords = contents.credentials.values.map {
            listed(.password, $0.name, $0.user, CredentialTag(user: $0.user, password: $0.password, key: key))
        }
        let tokens = contents.tokens.values.map {
            listed(.token, $0.name, nil, CredentialTag(token: $0.token, key: key))
        }
        let principals = contents.principals.values.map { credential in
            listed(
                EnrolledCredential.principal(credential).kind ?? .principal, credential.name, credential.principal,
                CredentialTag(user: credential.principal, password: credential.proof.secret, key: key))
        }
        return (passwords + tokens + principals).sorted { $0.name < $1.name }
    }

    private func setCredential(_ name: String, _ user: String, _ password: Secret) throws -> VaultResult {
        try Self.check(name)
        let vault = try opened()
        try vault.update { try $0.setCredential(name: name, user: user, password: password) }
        return try stored(name, CredentialTag(user: user, password: password, key: vault.tagKey))
    }

    private func setToken(_ name: String, _ token: Secret) throws -> VaultResult {
        try Self.check(name)
        let vault = try opened()
        try vault.update { try $0.setToken(name: name, token: token) }
        return try stored(name, CredentialTag(token: token, key: vault.tagKey))
    }

    private func setPrincipal(
        _ name: String, _ principal: String, _ proof: PrincipalCredential.Proof
    ) throws -> VaultResult {
        try Self.check(name)
        let vault = try opened()
        try vault.update { try $0.setPrincipal(name: name, principal: principal, proof: proof) }
        return try stored(name, CredentialTag(user: principal, password: proof.secret, key: vault.tagKey))
    }

    /// The breaker forgets the credential that the name stood for before.
    private func stored(_ name: String, _ tag: CredentialTag) throws -> VaultResult {
        let file = BreakerFile(home: home, now: now)
        try file.nameChanged(name, to: .tag(tag))
        return .stored(blocked: BlockedCredential.all(in: try file.read(), only: [tag], at: now()).first)
    }

    private func removeCredential(_ name: String) throws -> VaultResult {
        guard vault?.contents.signIns[name] == nil else {
            throw CountersignError(
                .refused, "credential \(name.debugDescription) is the access token of a sign-in",
                hint: "sign out with `countersign unenroll \(name)`")
        }
        guard let vault, try vault.update({ $0.removeCredential(named: name) }) else {
            return .removed(count: 0, known: Set(vault?.contents.credentialNames ?? []))
        }
        try BreakerFile(home: home, now: now).nameChanged(name, to: nil)
        return .removed(count: 1, known: [])
    }

    // MARK: Trust exceptions and the CA

    private func removeTrustExceptions(_ host: String, _ port: UInt16) throws -> VaultResult {
        let count = try vault?.update { $0.removeTrustExceptions(host: host, port: port) } ?? 0
        let known = vault?.contents.trustExceptions.map { HostText.joined($0.host, $0.port) } ?? []
        return .removed(count: count, known: count > 0 ? [] : Set(known))
    }

    private func authority(_ operation: VaultOperation) throws -> VaultResult {
        let store = InterceptionStore(home: home)
        let hosts = InterceptionStore.hosts(of: try home.sites())
        if operation == .rotateAuthority {
            return .root(Data(try store.rotate(for: hosts, in: try opened(), at: now()).root.der))
        }
        if let root = try store.root() { return .root(Data(root.der)) }
        return .root(Data(try store.authority(for: hosts, in: try opened(), at: now()).authority.root.der))
    }
}

/// The other side of an operation while it is performed.
package struct OperationDialogue: Sendable {
    /// The process that the operation is performed for; nil for this one.
    package let process: Int32?
    /// Receives the progress of a renewal, on any thread.
    package let report: @Sendable (RenewalProgress) -> Void
    /// Whether nobody waits for the result any more, so that a renewal or a test request ends.
    package let isAbandoned: (@Sendable () -> Bool)?
    /// How the page that was to be opened has ended; nil while nobody knows.
    package let pageEnd: @Sendable () -> PageEnd?
    /// Receives the address and the token of a proxy.
    package let opened: @Sendable (_ address: String, _ token: String) -> Void
    /// Waits until the other side ends a proxy.
    package let waitForEnd: @Sendable () -> Void

    package init(
        process: Int32? = nil, report: @escaping @Sendable (RenewalProgress) -> Void,
        isAbandoned: (@Sendable () -> Bool)? = nil, pageEnd: @escaping @Sendable () -> PageEnd? = { nil },
        opened: @escaping @Sendable (String, String) -> Void = { _, _ in },
        waitForEnd: @escaping @Sendable () -> Void = {}
    ) {
        self.process = process
        self.report = report
        self.isAbandoned = isAbandoned
        self.pageEnd = pageEnd
        self.opened = opened
        self.waitForEnd = waitForEnd
    }

    /// Reports nothing.
    package static let silent = OperationDialogue(report: { _ in })
}

/// How a page has ended before the operation that needs it.
package enum PageEnd: Equatable, Sendable, Codable {
    /// The person has closed it.
    case closed
    /// It cannot be shown, for this reason.
    case failed(String)
}
