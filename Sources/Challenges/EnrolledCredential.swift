// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Where a credential comes from, and which version of it this is. What is known about one version says nothing about another.
package enum CredentialSource: Hashable, Sendable {
    /// From the vault. The generation changes whenever the credential is enrolled again.
    case vault(generation: UInt64)
    /// Supplied by the caller for this run; a random number identifies the version.
    case supplied(UInt64)
    /// Made by the program that drives the exchange, which is responsible for how often it is tried.
    case program
}

/// Identifies a credential without its secret.
package struct CredentialReference: Hashable, Sendable {
    package let name: String
    package let source: CredentialSource

    package init(name: String, source: CredentialSource) {
        self.name = name
        self.source = source
    }
}

/// A user name and password.
package struct PasswordCredential: Equatable, Sendable {
    /// The name it was enrolled under, `enrollment` unless the person chose another.
    package let name: String
    /// `jdoe`, `ACME\jdoe` or `jdoe@acme.example`.
    package let user: String
    package let password: Secret
    package let source: CredentialSource

    package init(name: String, user: String, password: Secret, source: CredentialSource) {
        self.name = name
        self.user = user
        self.password = password
        self.source = source
    }

    /// A credential from the vault.
    package init(name: String, user: String, password: Secret, generation: UInt64) {
        self.init(name: name, user: user, password: password, source: .vault(generation: generation))
    }

    package var reference: CredentialReference { CredentialReference(name: name, source: source) }

    /// ``user``, with `domain` before it if it is bare (`ACME\jdoe`).
    package func qualifiedUser(domain: String?) -> String {
        guard let domain, !domain.isEmpty, !user.contains("\\"), !user.contains("@") else { return user }
        return "\(domain)\\\(user)"
    }

    /// The vault's generation, if the credential comes from there.
    package var generation: UInt64? { if case .vault(let generation) = source { generation } else { nil } }
}

/// What a challenge can be answered with. A client identity is known here only by its name: its key stays in the TLS module.
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
