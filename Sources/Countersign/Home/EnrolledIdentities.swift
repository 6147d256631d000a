// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignVault

/// The client identities of a home: keys of the vault that have their chain in `Certs/identities`.
///
/// The vault decides: a chain is an identity's when its leaf is the one that the key's record names. An identity that was
/// enrolled over EST has its chain in the vault too, and the file is a copy, so that a refresh that was stopped between the two,
/// or a damaged file, costs nothing.
package struct EnrolledIdentities: Sendable {
    /// In the order of their names.
    package let identities: [Identity]
    /// A sentence for each name that has not both halves, or two that do not belong together.
    package let faults: [Fault]
    /// The chains of those, and of the ones whose keys were not looked for in their tokens; in the order of their names.
    package let chains: [(name: String, chain: [Certificate])]
    /// The keys whose PIN was refused now: to be kept by ``VaultContents/refusePIN(of:)``.
    package let refusedPINs: [TokenKey]
    /// A sentence for each identity whose file is not what it should be, and that is whole all the same.
    package let fileFaults: [Fault]

    package struct Fault: Equatable, Sendable {
        package let name: String
        package let reason: String
    }

    /// `readsTokens`: keys in tokens are looked for, which logs in to them.
    package init(_ contents: VaultContents?, home: Home, readsTokens: Bool = true) throws(CountersignError) {
        var identities: [Identity] = []
        var chains: [(name: String, chain: [Certificate])] = []
        var refusedPINs: [TokenKey] = []
        var faults: [Fault] = []
        var fileFaults: [Fault] = []
        let known = [contents?.identityKeys.keys.map(\.self), contents?.tokenKeys.keys.map(\.self)]
        for name in Set(known.compactMap(\.self).joined()).union(try home.identityNames()).sorted() {
            let stored = StoredIdentity(named: name, in: contents, home: home, readsTokens: readsTokens)
            if let key = stored.refusedPIN { refusedPINs.append(key) }
            if let identity = stored.identity { identities.append(identity) }
            if let chain = stored.chain {
                chains.append((name, chain))
                if let fault = stored.fileFault { fileFaults.append(Fault(name: name, reason: fault)) }
            } else {
                faults.append(Fault(name: name, reason: stored.fault ?? "it is not whole"))
            }
        }
        self.identities = identities
        self.chains = chains
        self.refusedPINs = refusedPINs
        self.faults = faults
        self.fileFaults = fileFaults
    }
}

/// One name's key and chain, as far as they are there.
package struct StoredIdentity: Sendable {
    /// Key and chain, where both are there and belong together.
    package let identity: Identity?
    /// Its chain; there without ``identity`` where the key was not looked for in its token.
    package let chain: [Certificate]?
    /// The key whose PIN the token has refused now.
    package let refusedPIN: TokenKey?
    /// Why there is neither.
    package let fault: String?
    /// What is wrong with the file of the chain, whether the vault's copy stands in for it or not.
    package let fileFault: String?

    /// `readsTokens`: a key in a token is looked for, which logs in to it.
    package init(named name: String, in contents: VaultContents?, home: Home, readsTokens: Bool = true) {
        let file = home.identityChain(named: name)
        guard let key = StoredKey(named: name, in: contents) else {
            self.init(fault: "the vault has no private key for \(file.name)")
            return
        }
        var chain: [Certificate]?
        var fileFault: String?
        do throws(CountersignError) {
            chain = try Self.chain(named: name, of: key, home: home)
        } catch {
            fileFault = error.detail
            chain = Self.copy(of: contents?.enrollments[name], for: key)
        }
        guard let chain else {
            self.init(fault: fileFault, fileFault: fileFault)
            return
        }
        if !readsTokens, key.token != nil {
            self.init(chain: chain, fileFault: fileFault)
            return
        }
        do throws(CertificateError) {
            let identity = try Identity(name: name, chain: chain, key: key.privateKey())
            self.init(identity: identity, chain: chain, fileFault: fileFault)
        } catch {
            let refused = error.code == .wrongPassword ? key.token : nil
            self.init(refusedPIN: refused, fault: error.detail, fileFault: fileFault)
        }
    }

    private init(
        identity: Identity? = nil, chain: [Certificate]? = nil, refusedPIN: TokenKey? = nil, fault: String? = nil,
        fileFault: String? = nil
    ) {
        self.identity = identity
        self.chain = chain
        self.refusedPIN = refusedPIN
        self.fault = fault
        self.fileFault = fileFault
    }

    private static func chain(
        named name: String, of key: StoredKey, home: Home
    ) throws(CountersignError) -> [Certificate] {
        let file = home.identityChain(named: name)
        guard let chain = try home.chain(named: name), let leaf = chain.first else {
            throw CountersignError(.configuration, "\(file.name) is missing")
        }
        guard leaf.sha256Fingerprint == key.leafSHA256 else {
            throw CountersignError(
                .configuration, "the first certificate of \(file.name) is not the one that was imported")
        }
        return chain
    }

    /// The chain in the enrolment's record, if it is the key's.
    private static func copy(of record: EnrollmentRecord?, for key: StoredKey) -> [Certificate]? {
        guard let record, let chain = try? record.chain.map({ try Certificate(der: $0) }),
            chain.first?.sha256Fingerprint == key.leafSHA256
        else { return nil }
        return chain
    }
}

/// An identity's key where the vault has it, or says where it lies.
private enum StoredKey {
    case vault(IdentityKey)
    case token(TokenKey)

    init?(named name: String, in contents: VaultContents?) {
        if let key = contents?.identityKeys[name] {
            self = .vault(key)
        } else if let key = contents?.tokenKeys[name] {
            self = .token(key)
        } else {
            return nil
        }
    }

    var leafSHA256: [UInt8] {
        switch self {
        case .vault(let key): key.leafSHA256
        case .token(let key): key.leafSHA256
        }
    }

    var token: TokenKey? { if case .token(let key) = self { key } else { nil } }

    /// Blocks for as long as a token takes.
    func privateKey() throws(CertificateError) -> PrivateKey {
        switch self {
        case .vault(let key): return try PrivateKey(pkcs8: key.privateKey)
        case .token(let key):
            if key.isPINRefused {
                throw CertificateError(
                    .wrongPassword, "the token refused that PIN before; `certificate import --replace` takes another")
            }
            return try Token.key(at: TokenURI(key.uri), pin: key.pin)
        }
    }
}
