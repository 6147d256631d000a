// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import CountersignVault

/// The keys of enrolled identities, as clients of providers sign with them.
extension ClientKey {
    /// Nil for a key that makes no signatures that providers know.
    init?(_ identity: Identity) {
        let algorithms: [SignatureAlgorithm]
        switch identity.key.kind {
        // Every provider should know it (OpenID Connect Discovery §3).
        case .rsa: algorithms = [.rs256, .ps256]
        case .rsaPSS: algorithms = [.ps256]
        case .ec(curve: "P-256"): algorithms = [.es256]
        case .ec(curve: "P-384"): algorithms = [.es384]
        case .ec, .ed25519, .ed448, .dsa, .other: return nil
        }
        let key = identity.key
        self.init(name: identity.name, certificate: identity.leaf.der, algorithms: algorithms) { message, algorithm in
            switch algorithm {
            case .rs256: try? key.rs256Signature(of: message)
            case .ps256: try? key.ps256Signature(of: message)
            case .es256: try? key.es256Signature(of: message)
            case .es384: try? key.es384Signature(of: message)
            case .rs384, .rs512, .ps384, .ps512, .es512, .edDSA: nil
            }
        }
    }
}

extension SignInProfile {
    /// The same profile, whose client has the key of the identity that it names, if it names one. Throws
    /// `configuration` if the vault has no such identity, or one that cannot sign. May block for as long as a token
    /// takes.
    func withClientKey(_ contents: VaultContents?, _ home: Home) throws -> SignInProfile {
        guard let name = clientIdentity?.name else { return self }
        let hint = "add it with `countersign certificate import FILE --name \(name)`"
        let what = "the identity \(name.debugDescription), with which the client of \(issuer) proves who it is,"
        guard IdentityName.isGood(name) else {
            throw CountersignError(.configuration, "\"client_identity\" is not the name of an identity")
        }
        let stored = StoredIdentity(named: name, in: contents, home: home)
        guard let identity = stored.identity else {
            throw CountersignError(
                .configuration, "\(what) cannot be used: \(stored.fault ?? "it is incomplete")", hint: hint)
        }
        guard let key = ClientKey(identity) else {
            throw CountersignError(
                .configuration, "\(what) has a key that signs no assertions: \(identity.key.kind)",
                hint: "use an RSA key, or one on P-256 or P-384")
        }
        return authenticated(with: key)
    }
}

extension VaultOperations {
    /// Gives the plan's client the key of the identity that the profile names, if it names one, and tokens for one site
    /// the key of the sign-in's. Throws `configuration` if the vault has no such identity, or one that cannot sign.
    /// Never done by a running server: this process has opened the vault.
    package func authenticate(_ plan: inout SignInPlan) throws {
        plan.profile = try plan.profile.withClientKey(vault?.contents, home)
        guard plan.demand != nil else { return }
        plan.profile = plan.profile.bound(to: vault?.contents.tokens[plan.name]?.bound?.key)
    }
}

extension SignInRecord {
    /// The profile that the person has agreed to, with what its client proves who it is with: its secret or its key.
    /// May block for as long as a token takes.
    func signInProfile(_ contents: VaultContents?, _ home: Home) throws -> SignInProfile {
        try signInProfile().withClientKey(contents, home)
    }
}
