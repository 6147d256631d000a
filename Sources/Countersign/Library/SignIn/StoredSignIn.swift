// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A person who is signed in at a provider. The tokens stay in the vault: the access token is the credential of the
/// same name, which answers the Bearer challenges of the sign-in's sites and is renewed when necessary.
public struct StoredSignIn: Equatable, Sendable {
    /// The name of the sign-in and of its access token.
    public let name: String
    /// The provider's issuer identifier, a URL.
    public let issuer: String
    /// The provider's name for the person, for display; nil if it gives none.
    public let account: String?
    /// The person's identifier at the provider, `sub`; nil if there is no ID token.
    public let subject: String?
    /// The scopes that the provider has granted.
    public let scopes: [String]
    /// The source of the profile: a path or a URL.
    public let profileSource: String
    /// The lines that the sign-in has added to the list of sites.
    public let sites: [String]
    /// When the person signed in.
    public let signedIn: Date
    /// When the access token expires; nil if the provider does not say.
    public let expires: Date?
    /// Whether the access token can be renewed without the person.
    public let isRenewable: Bool
    /// Why the person has to sign in again, as the provider gave it; nil if the provider has not ended the sign-in.
    public let endReason: String?
    /// The client certificate of the sign-in; nil if its profile names no EST service.
    public let certificate: SignInCertificate?

    /// Whether the person has to sign in again at `date`.
    public func hasEnded(at date: Date = .now) -> Bool {
        endReason != nil || !isRenewable && (expires.map { $0 <= date } ?? false)
    }

    init(_ listed: ListedSignIn) {
        name = listed.name
        issuer = listed.issuer
        account = listed.account.isEmpty ? nil : listed.account
        subject = listed.subject.isEmpty ? nil : listed.subject
        scopes = listed.scope.split(separator: " ").map(String.init)
        profileSource = listed.source
        sites = listed.sites
        signedIn = Date(seconds: listed.signedIn)
        expires = listed.expires == 0 ? nil : Date(seconds: listed.expires)
        isRenewable = listed.isRenewable
        endReason = listed.ended.isEmpty ? nil : listed.ended
        certificate = listed.certificate.map { SignInCertificate($0) }
    }
}

/// The client certificate of a sign-in, which answers as the identity with the sign-in's name. Its key stays in the
/// vault, and it is renewed before it expires.
public struct SignInCertificate: Equatable, Sendable {
    /// The EST server.
    public let server: String
    /// The subject for display; nil while the server has not issued the first certificate.
    public let subject: String?
    /// The end of the validity period; nil while there is no certificate.
    public let notAfter: Date?

    init(_ listed: ListedCertificate) {
        server = listed.server
        subject = listed.subject
        notAfter = listed.notAfter.map { Date(seconds: $0) }
    }
}

/// The result of ``SignIns/signOut(_:)``. The sign-in is removed from the home in any case.
public struct SignOut: Equatable, Sendable {
    /// Whether the provider has revoked the tokens (RFC 7009).
    public let isRevoked: Bool
    /// Why it has not, for display; nil if it has.
    public let warning: String?
    /// The address of the provider's page that signs the person out in the browser; nil if it has none.
    public let page: String?
    /// The lines that were removed from the list of sites.
    public let sites: [String]

    init(_ result: SignedOut) {
        isRevoked = result.isRevoked
        warning = result.warning
        page = result.page
        sites = result.sites
    }
}
