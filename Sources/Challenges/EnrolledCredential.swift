// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The source of a credential, and its version. Results of one version do not apply to another.
package enum CredentialSource: Hashable, Sendable {
    /// The vault. The generation changes each time the credential is enrolled.
    case vault(generation: UInt64)
    /// The caller, for this run. A random number identifies the version.
    case supplied(UInt64)
    /// The program that drives the exchange, which is responsible for how often it tries the credential.
    case program
}

/// Identifies a credential without its secret.
package struct CredentialReference: Hashable, Sendable {
    package let name: String
    package let source: CredentialSource
    /// Identifies the user name and password to the breaker, in all processes that use the same home. Nil if only this
    /// process knows the credential.
    package let tag: CredentialTag?

    package init(name: String, source: CredentialSource, tag: CredentialTag? = nil) {
        self.name = name
        self.source = source
        self.tag = tag
    }
}

/// A user name and password.
package struct PasswordCredential: Equatable, Sendable {
    /// The name under which it was enrolled: `enrollment` unless the user chose another.
    package let name: String
    /// `jdoe`, `ACME\jdoe` or `jdoe@acme.example`.
    package let user: String
    package let password: Secret
    package let source: CredentialSource
    /// As in ``CredentialReference``.
    package let tag: CredentialTag?

    package init(name: String, user: String, password: Secret, source: CredentialSource, tag: CredentialTag? = nil) {
        self.name = name
        self.user = user
        self.password = password
        self.source = source
        self.tag = tag
    }

    /// A credential from the vault.
    package init(name: String, user: String, password: Secret, generation: UInt64) {
        self.init(name: name, user: user, password: password, source: .vault(generation: generation))
    }

    package var reference: CredentialReference { CredentialReference(name: name, source: source, tag: tag) }

    /// The same credential with the tag for `key`, which all processes that use the same home share.
    package func tagged(with key: Secret) -> PasswordCredential {
        PasswordCredential(
            name: name, user: user, password: password, source: source,
            tag: CredentialTag(user: user, password: password, key: key))
    }

    /// ``user``, qualified by `domain` unless it has a domain already (`ACME\jdoe`).
    package func qualifiedUser(domain: String?) -> String {
        guard let domain, !domain.isEmpty, !user.contains("\\"), !user.contains("@") else { return user }
        return "\(domain)\\\(user)"
    }

    /// The vault's generation, if the credential comes from the vault.
    package var generation: UInt64? { if case .vault(let generation) = source { generation } else { nil } }
}

/// A credential that can answer a challenge. A client identity is represented only by its name; its key stays in the
/// TLS module.
package enum EnrolledCredential: Equatable, Sendable {
    case password(PasswordCredential)
    case identity(named: String)

    /// Identifies the credential that is sent to a server. Nil for an identity, which is used only in TLS.
    package var reference: CredentialReference? {
        switch self {
        case .password(let credential): credential.reference
        case .identity: nil
        }
    }
}
