// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignVault

/// The stored key and chain of one identity, which may be incomplete.
package struct StoredIdentity: Sendable {
    /// The identity, if its key and chain exist and match.
    package let identity: Identity?
    /// The chain. Present without ``identity`` if the key is in a token that was not read.
    package let chain: [Certificate]?
    /// The key, if its token has just refused the PIN.
    package let refusedPIN: TokenKey?
    /// Why there is neither an identity nor a chain.
    package let fault: String?
    /// The fault of the chain's file, even if the vault has a copy of the chain.
    package let fileFault: String?

    /// With `readsTokens`, logs in to the token if the key is in one.
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

    /// The chain in the enrolment's record, if it belongs to the key.
    private static func copy(of record: EnrollmentRecord?, for key: StoredKey) -> [Certificate]? {
        guard let record, let chain = try? record.chain.map({ try Certificate(der: $0) }),
            chain.first?.sha256Fingerprint == key.leafSHA256
        else { return nil }
        return chain
    }
}

/// An identity's private key in the vault, or a reference to one in a token.
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

    /// May block for as long as a token takes.
    func privateKey() throws(CertificateError) -> PrivateKey {
        switch self {
        case .vault(let key): return try PrivateKey(pkcs8: key.privateKey)
        case .token(let key):
            if key.isPINRefused {
                throw CertificateError(
                    .wrongPassword,
                    "the token refused the PIN before; import the identity again with `countersign certificate import FILE --replace`"
                )
            }
            return try PKCS11Token.key(at: TokenURI(key.uri), pin: key.pin)
        }
    }
}
