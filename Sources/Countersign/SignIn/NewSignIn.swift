// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A completed sign-in, without its tokens, on the way into the vault. Times are in seconds since 1970.
package struct NewSignIn: Equatable, Sendable, Codable {
    package var name: String
    /// The profile's document.
    package var profile: String
    package var source: String
    package var issuer: String
    package var subject: String
    package var account: String
    package var scope: String
    /// Lines for the list of sites.
    package var sites: [String]
    package var signedIn: Int64
    /// 0 if the provider does not say.
    package var expires: Int64
    /// 32 hexadecimal digits, random.
    package var identifier: String
    /// The issuer of the sign-in that the person wants to replace; nil without one.
    package var formerIssuer: String?
    /// A valid certificate of the sign-in that it replaces stays; nil if the profile's EST service issues a new one.
    package var keepsCertificate: Bool?
    /// `homeAccountId`, empty if the provider has not said, for a profile with a compliance service; else nil.
    package var homeAccount: String?
    /// The kind of user agent that has shown the provider's pages; nil if that is not one of ours.
    package var userAgent: String?

    package init(
        name: String, profile: String, source: String, issuer: String, subject: String, account: String, scope: String,
        sites: [String], signedIn: Int64, expires: Int64, formerIssuer: String?
    ) {
        self.name = name
        self.profile = profile
        self.source = source
        self.issuer = issuer
        self.subject = subject
        self.account = account
        self.scope = scope
        self.sites = sites
        self.signedIn = signedIn
        self.expires = expires
        self.formerIssuer = formerIssuer
        identifier = Hex.encode(Randomness.bytes(16))
    }
}
