// SPDX-License-Identifier: Apache-2.0

import Certificates
import Vault

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
    /// A sentence for each identity whose file is not what it should be, and that is whole all the same.
    package let fileFaults: [Fault]

    package struct Fault: Equatable, Sendable {
        package let name: String
        package let reason: String
    }

    package init(_ contents: VaultContents?, home: Home) throws(CountersignError) {
        var identities: [Identity] = []
        var faults: [Fault] = []
        var fileFaults: [Fault] = []
        let known = [contents?.identityKeys.keys.map(\.self), contents?.tokenKeys.keys.map(\.self)]
        for name in Set(known.compactMap(\.self).joined()).union(try home.identityNames()).sorted() {
            let stored = StoredIdentity(named: name, in: contents, home: home)
            if let identity = stored.identity {
                identities.append(identity)
                if let fault = stored.fileFault { fileFaults.append(Fault(name: name, reason: fault)) }
            } else {
                faults.append(Fault(name: name, reason: stored.fault ?? "it is not whole"))
            }
        }
        self.identities = identities
        self.faults = faults
        self.fileFaults = fileFaults
    }
}

/// One name's key and chain, as far as they are there.
package struct StoredIdentity: Sendable {
    /// Key and chain, where both are there and belong together.
    package let identity: Identity?
    /// Why there is no ``identity``.
    package let fault: String?
    /// What is wrong with the file of the chain, whether the vault's copy stands in for it or not.
    package let fileFault: String?

    package init(named name: String, in contents: VaultContents?, home: Home) {
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
        do throws(CertificateError) {
            let identity = try Identity(name: name, chain: chain, key: key.privateKey())
            self.init(identity: identity, fileFault: fileFault)
        } catch {
            self.init(fault: error.detail, fileFault: fileFault)
        }
    }

    private init(identity: Identity? = nil, fault: String? = nil, fileFault: String? = nil) {
        self.identity = identity
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

    /// Blocks for as long as a token takes.
    func privateKey() throws(CertificateError) -> PrivateKey {
        switch self {
        case .vault(let key): try PrivateKey(pkcs8: key.privateKey)
        case .token(let key): try Token.key(at: TokenURI(key.uri), pin: key.pin)
        }
    }
}
