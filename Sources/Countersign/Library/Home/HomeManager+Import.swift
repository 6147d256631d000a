// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignVault
public import FoundationEssentials

/// A key in a smart card or another PKCS#11 token, which the key never leaves.
public struct IdentityToken: Sendable {
    /// A `pkcs11:` URI (RFC 7512), such as `pkcs11:token=card;id=%01`. Its module is its `module-path`, else
    /// `PKCS11_MODULE_PATH`, else the system's.
    public let uri: String
    /// The token's PIN, which is stored in the vault.
    public let pin: Password

    /// A key with this URI and PIN.
    public init(_ uri: String, pin: Password) {
        self.uri = uri
        self.pin = pin
    }

    /// Throws `CertificateError` if the URI is malformed.
    func located() throws -> TokenIdentity { TokenIdentity(try TokenIdentity.uri(uri), pin: pin.secret) }
}

/// Where the private key of an imported identity is, apart from its certificates.
public struct IdentityKeySource: Sendable {
    enum Place: Sendable {
        case file(Data, Password?)
        case token(IdentityToken)
    }

    let place: Place

    /// The contents of a key file, in PEM or DER. `password` is that of the file if it is encrypted.
    public static func file(_ contents: Data, password: Password? = nil) -> IdentityKeySource {
        IdentityKeySource(place: .file(contents, password))
    }

    /// A key that stays in its token.
    public static func token(_ token: IdentityToken) -> IdentityKeySource { IdentityKeySource(place: .token(token)) }
}

extension HomeManager {
    /// Imports a certificate and its key from the contents of a PKCS#12 file, or of a PEM file with both. `password` is
    /// that of the file; `name` defaults to the certificate's common name. Returns the name.
    ///
    /// Throws `certificateFaulty` if the contents cannot be used, or the password is missing or wrong, `nameInUse`
    /// unless `replacing`, and `valueFaulty` for a faulty name.
    @discardableResult
    public func importIdentity(
        _ contents: Data, password: Password? = nil, name: String? = nil, replacing: Bool = false
    ) async throws -> String {
        if let name { try Self.check(name) }
        return try await onVault(creates: true) { vault in
            var bytes = Array(contents)
            defer { bytes.wipe() }
            let (chain, key) = try IdentityFile.read(bytes, password: password?.secret)
            return try Self.importIdentity(chain, key, name, replacing, in: vault)
        }
    }

    /// Imports a certificate whose key is somewhere else. `certificates` are the contents of a file with the
    /// certificate and its issuers, in PEM, DER or PKCS#7; nil for a certificate in the key's token.
    ///
    /// Otherwise like ``importIdentity(_:password:name:replacing:)``. If the vault requires a passphrase, a key in a
    /// token can only be imported by a manager that has it.
    @discardableResult
    public func importIdentity(
        certificates: Data?, key source: IdentityKeySource, name: String? = nil, replacing: Bool = false
    ) async throws -> String {
        if let name { try Self.check(name) }
        switch source.place {
        case .file(let contents, let password):
            guard let certificates else {
                throw ChallengeError(
                    .certificateFaulty, "a key file without certificates", hint: "pass `certificates:`", fault: .caller)
            }
            return try await onVault(creates: true) { vault in
                var bytes = Array(contents)
                defer { bytes.wipe() }
                let key = try IdentityFile.readKey(bytes, password: password?.secret)
                let chain = try IdentityFile.chain(
                    of: key, among: try IdentityFile.readCertificates(Array(certificates)))
                return try Self.importIdentity(chain, key, name, replacing, in: vault)
            }
        case .token(let place):
            return try await vault.withOpenVault(creates: true) { [home] vault in
                do {
                    let token = try place.located()
                    let known = try certificates.map { try IdentityFile.readCertificates(Array($0)) }
                    let chain = try token.chain(among: known)
                    let name = try name ?? IdentityName.from(try Self.leaf(of: chain))
                    let operations = VaultOperations(home: home, vault: vault, now: ChallengeController.now)
                    try operations.importIdentity(name, chain, replaces: replacing) { contents in
                        try contents.setTokenKey(token.key(named: name, leaf: chain.first))
                    }
                    return name
                } catch {
                    throw ChallengeError(managing: error, missing: .valueFaulty)
                }
            }
        }
    }

    private static func importIdentity(
        _ chain: [Certificate], _ key: PrivateKey, _ name: String?, _ replaces: Bool, in vault: any OperationPerformer
    ) throws -> String {
        let name = try name ?? IdentityName.from(try leaf(of: chain))
        _ = try vault.perform(ImportIdentity(name: name, chain: chain, replaces: replaces), secret: key.pkcs8)
        return name
    }

    private static func leaf(of chain: [Certificate]) throws -> Certificate {
        guard let leaf = chain.first else {
            throw ChallengeError(.certificateFaulty, "the file has no certificate", fault: .caller)
        }
        return leaf
    }
}
