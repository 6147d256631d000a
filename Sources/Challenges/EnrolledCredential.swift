// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import Synchronization

/// The source of a credential, and its version. Results of one version do not apply to another.
package enum CredentialSource: Hashable, Sendable {
    /// The vault. The generation changes each time the credential is enrolled.
    case vault(generation: UInt64)
    /// The caller, for this run. A random number identifies the version.
    case supplied(UInt64)
    /// The user's own tickets, which the KDC issues and the operating system keeps.
    case ticketCache
    /// A Kerberos ticket as the breaker knows it: each version of it, at each site, is a credential of its own.
    case ticket(version: UInt64, site: Origin)
    /// The program that drives the exchange, which is responsible for the number of attempts.
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

extension CredentialReference {
    /// The user's own Kerberos ticket. The name cannot be that of an enrolled credential.
    package static let ticket = CredentialReference(name: "Kerberos ticket", source: .ticketCache)

    /// The ticket of this credential, for the breaker. A site that rejects it says nothing about other sites, or about
    /// the next ticket.
    package func ticket(version: UInt64, at site: Origin) -> CredentialReference {
        CredentialReference(name: name, source: .ticket(version: version, site: site))
    }

    /// Whether it is a Kerberos ticket as the breaker knows it. A ticket contains no password, so that no account is
    /// locked because of it.
    package var isTicket: Bool { if case .ticket = source { true } else { false } }
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
    /// The secrets that schemes have derived from the password.
    let derived: DerivedSecrets

    package init(name: String, user: String, password: Secret, source: CredentialSource, tag: CredentialTag? = nil) {
        self.init(name: name, user: user, password: password, source: source, tag: tag, derived: DerivedSecrets())
    }

    private init(
        name: String, user: String, password: Secret, source: CredentialSource, tag: CredentialTag?,
        derived: DerivedSecrets
    ) {
        self.name = name
        self.user = user
        self.password = password
        self.source = source
        self.tag = tag
        self.derived = derived
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
            tag: CredentialTag(user: user, password: password, key: key), derived: derived)
    }

    /// ``user``, qualified by `domain` unless it has a domain already (`ACME\jdoe`).
    package func qualifiedUser(domain: String?) -> String {
        guard let domain, !domain.isEmpty, !user.contains("\\"), !user.contains("@") else { return user }
        return "\(domain)\\\(user)"
    }

    /// The vault's generation, if the credential comes from the vault.
    package var generation: UInt64? { if case .vault(let generation) = source { generation } else { nil } }
}

/// Secrets that were computed from a credential, which the answers at all sites share. They live as long as it does, or
/// as long as an answer that contains them.
///
/// A weak reference would do the same, but Swift counts every reference to its object 100 instructions more slowly.
final class DerivedSecrets: Sendable, Equatable {
    private let secrets = Mutex<[Secret]>([])

    /// The secret that equals `secret`, if there is one already; otherwise `secret` itself.
    func shared(_ secret: Secret) -> Secret {
        secrets.withLock { secrets in
            if let known = secrets.first(where: { $0 == secret }) { return known }
            secrets.append(secret)
            return secret
        }
    }

    /// Derived secrets are not part of a credential's value.
    static func == (left: DerivedSecrets, right: DerivedSecrets) -> Bool { true }
}

/// A credential that can answer a challenge. A client identity is represented only by its name; its key stays in the
/// TLS module.
package enum EnrolledCredential: Equatable, Sendable {
    case password(PasswordCredential)
    case token(TokenCredential)
    case identity(named: String)
    /// A certificate of this device that signs, or the statement that the device has none.
    case device(DeviceCredential)
    /// The user's own Kerberos ticket. Nothing is enrolled for it, and no server can lock an account because of it.
    case ticket
    /// A principal whose tickets this process obtains.
    case principal(PrincipalCredential)
    /// Keys that sign requests to AWS.
    case aws(AWSCredential)

    /// Identifies the credential that is sent to a server. Nil for an identity, which is used only in TLS.
    package var reference: CredentialReference? {
        switch self {
        case .password(let credential): credential.reference
        case .token(let credential): credential.reference
        case .identity: nil
        case .device(let credential): credential.reference
        case .ticket: .ticket
        case .principal(let credential): credential.reference
        case .aws(let credential): credential.reference
        }
    }

    /// The user name and password for `scheme`, which is a name for display. Throws `unusableCredential` if the
    /// credential is of another kind.
    package func password(for scheme: String) throws(AuthenticationError) -> PasswordCredential {
        guard case .password(let credential) = self else {
            throw AuthenticationError(.unusableCredential, "\(scheme) needs a user name and password")
        }
        return credential
    }

    /// The token for `scheme`, which is a name for display. Throws `unusableCredential` if the credential is of another
    /// kind.
    package func token(for scheme: String) throws(AuthenticationError) -> TokenCredential {
        guard case .token(let credential) = self else {
            throw AuthenticationError(.unusableCredential, "\(scheme) needs a token")
        }
        return credential
    }
}

extension EnrolledCredential {
    /// The kind of a credential that is sent to a server.
    package enum Kind: String, Sendable, Codable {
        case password
        case token
        /// A Kerberos principal with its password.
        case principal
        /// A Kerberos principal with its keys.
        case keytab
        /// Keys of AWS in one record.
        case aws
    }

    /// Nil for an identity, which is used only in TLS, and for a ticket, which is not enrolled.
    package var kind: Kind? {
        switch self {
        case .password: .password
        case .token: .token
        case .principal(let credential): if case .password = credential.proof { .principal } else { .keytab }
        case .aws: .aws
        case .identity, .device, .ticket: nil
        }
    }

    /// The actual kind, if a scheme needs another one, for display.
    package var isNot: String {
        switch self {
        case .password: "a user name and password, not a token"
        case .token: "a token, not a user name and password"
        case .identity, .device: "an identity"
        case .ticket: "a Kerberos ticket"
        case .principal: "only for Kerberos"
        case .aws: "only for inject=aws"
        }
    }
}

extension AuthenticationScheme {
    /// The kind of credential that answers a challenge of the scheme; nil if none does.
    package var credentialKind: EnrolledCredential.Kind? {
        switch self {
        case .certificate, .pkeyauth: nil
        case .bearer: .token
        case .negotiate, .ntlm, .digest, .basic: .password
        }
    }

    /// Whether `credential` can answer a challenge of the scheme.
    package func uses(_ credential: EnrolledCredential) -> Bool {
        credentialKind != nil && credentialKind == credential.kind
    }
}
