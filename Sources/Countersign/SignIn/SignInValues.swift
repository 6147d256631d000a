// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
package import CountersignOAuth
package import CountersignSignIn
import CountersignVault

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

/// A sign-in without its tokens, for display.
package struct ListedSignIn: Equatable, Sendable, Codable {
    package let name: String
    package let issuer: String
    package let account: String
    package let subject: String
    package let scope: String
    package let source: String
    package let sites: [String]
    package let signedIn: Int64
    /// When the access token expires; 0 if the provider does not say.
    package let expires: Int64
    /// Whether the access token can be renewed.
    package let isRenewable: Bool
    /// Why the person has to sign in again; empty if that is not so.
    package let ended: String
    package let failures: UInt32
    package let lastFailure: Int64
    /// Empty if an earlier version has stored it.
    package let identifier: String
    /// Why another process cannot store the newer tokens that it has; nil if there is no such process.
    package let unstored: String?
    /// The client certificate of the sign-in; nil if it has none.
    package let certificate: ListedCertificate?
    /// Whether the device complies; nil if the profile names no compliance service.
    package let compliance: ListedCompliance?
    /// The profile's document, for a profile with a compliance service or one that is built in; else nil.
    package let profileText: String?
    /// Whether the client's secret is stored; nil from an earlier version.
    package let hasClientSecret: Bool?

    init(
        _ record: SignInRecord, certificate: ListedCertificate?, compliance: ListedCompliance?, unstored: String?
    ) {
        self.compliance = compliance
        let isKeptHere =
            NamedMachine.isBuiltIn(record.source) || SiteProfile.isOne(record.profile, from: record.source)
        profileText = compliance == nil && !isKeptHere ? nil : record.profile
        hasClientSecret = record.clientSecret != nil
        self.certificate = certificate
        name = record.name
        identifier = record.identifier
        self.unstored = unstored
        issuer = record.issuer
        account = record.account
        subject = record.subject
        scope = record.scope
        source = record.source
        sites = record.sites
        signedIn = record.signedIn
        expires = record.expires
        isRenewable = record.isRenewable
        ended = record.shownEnd
        failures = record.failures
        lastFailure = record.lastFailure
    }
}

/// The result of the removal of a sign-in.
package struct SignedOut: Equatable, Sendable, Codable {
    /// The provider has revoked the tokens.
    package let isRevoked: Bool
    /// Why it has not; nil if it has.
    package let warning: String?
    /// Where the person signs out in the browser, if the provider has such a page.
    package let page: String?
    /// The kind of user agent that has shown the provider's pages; nil if it is not known.
    package let userAgent: String?
    /// The sites that are no longer listed.
    package let sites: [String]
    /// The configuration profiles that were removed with the sign-in; nil from an earlier version.
    package let profiles: [RemovedProfile]?
}

/// The tokens of a sign-in as one secret: for each of access, refresh and ID token, four bytes length and the token;
/// and then the client's secret in the same form, if the client has one.
package struct SignInTokens: Equatable, Sendable {
    package let access: Secret
    package let refresh: Secret?
    package let identity: Secret?
    package var client: Secret?

    package init(access: Secret, refresh: Secret?, identity: Secret?, client: Secret? = nil) {
        self.access = access
        self.refresh = refresh
        self.identity = identity
        self.client = client
    }

    /// With the secret of the profile's client.
    package init(_ tokens: TokenSet, of profile: SignInProfile) {
        self.init(tokens)
        client = profile.request.client.authentication.secret
    }

    /// Omits an ID token that is too long for the vault: nothing depends on it.
    package init(_ tokens: TokenSet) {
        let identity = tokens.idToken.flatMap { $0.count <= VaultLimits.passwordBytes ? $0 : nil }
        self.init(access: tokens.accessToken, refresh: tokens.refreshToken, identity: identity)
    }

    package var encoded: Secret {
        // Earlier versions read three.
        let all = [access, refresh, identity] + (client.map { [$0] } ?? [])
        return Secret(count: all.reduce(0) { $0 + 4 + ($1?.count ?? 0) }) { room in
            var offset = 0
            for token in all {
                let count = token?.count ?? 0
                for shift in [24, 16, 8, 0] {
                    room[offset] = UInt8(truncatingIfNeeded: count >> shift)
                    offset += 1
                }
                token?.withBytes {
                    UnsafeMutableRawBufferPointer(rebasing: room[offset...]).copyMemory(from: $0)
                }
                offset += count
            }
        }
    }

    /// Nil for other bytes.
    package init?(decoding secret: Secret) {
        let tokens: [Secret?]? = secret.withBytes { bytes in
            var rest = bytes[...]
            var tokens: [Secret?] = []
            while tokens.count < 3 || tokens.count == 3 && !rest.isEmpty {
                guard rest.count >= 4 else { return nil }
                let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
                rest = rest.dropFirst(4)
                guard rest.count >= count else { return nil }
                tokens.append(count == 0 ? nil : Secret(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            return rest.isEmpty ? tokens : nil
        }
        guard let tokens, let access = tokens[0] else { return nil }
        self.init(access: access, refresh: tokens[1], identity: tokens[2], client: tokens.count > 3 ? tokens[3] : nil)
    }
}
