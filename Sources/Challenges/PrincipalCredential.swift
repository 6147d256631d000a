// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A Kerberos principal, with the password or the keys that obtain its tickets. Neither is sent to a site.
package struct PrincipalCredential: Equatable, Sendable {
    /// The proof of the identity for the KDC.
    package enum Proof: Equatable, Sendable {
        case password(Secret)
        /// The principal's keys from a keytab, as `KeytabKeys` encodes them.
        case keys(Secret)

        package var secret: Secret {
            switch self {
            case .password(let secret), .keys(let secret): secret
            }
        }
    }

    /// The name under which it was enrolled.
    package let name: String
    /// `jdoe@CORP.EXAMPLE`.
    package let principal: String
    package let proof: Proof
    package let source: CredentialSource
    /// As in ``CredentialReference``.
    package let tag: CredentialTag?

    package init(
        name: String, principal: String, proof: Proof, source: CredentialSource, tag: CredentialTag? = nil
    ) {
        self.name = name
        self.principal = principal
        self.proof = proof
        self.source = source
        self.tag = tag
    }

    package var reference: CredentialReference { CredentialReference(name: name, source: source, tag: tag) }

    /// The vault's generation, if the credential comes from the vault.
    package var generation: UInt64? { if case .vault(let generation) = source { generation } else { nil } }

    /// The same credential with the tag for `key`, which all processes that use the same home share.
    package func tagged(with key: Secret) -> PrincipalCredential {
        PrincipalCredential(
            name: name, principal: principal, proof: proof, source: source,
            tag: CredentialTag(user: principal, password: proof.secret, key: key))
    }

    /// The part after the last `@`.
    package var realm: String { Self.realm(of: principal) ?? "" }

    /// The realm of `principal`; nil if it is not a name, an `@` and a realm.
    package static func realm(of principal: String) -> String? {
        let parts = principal.split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
        return String(parts[1])
    }
}

/// Permits attempts with a principal's password or keys at a KDC, and records their results: the breaker, for a thread
/// that may block.
package struct KDCAttempts: Sendable {
    /// Waits for other attempts with the same credential.
    package let request: @Sendable (Breaker.Key) -> Breaker.Permission
    package let ended: @Sendable (Breaker.Key, Breaker.Result) -> Void

    package init(
        request: @escaping @Sendable (Breaker.Key) -> Breaker.Permission,
        ended: @escaping @Sendable (Breaker.Key, Breaker.Result) -> Void
    ) {
        self.request = request
        self.ended = ended
    }
}
