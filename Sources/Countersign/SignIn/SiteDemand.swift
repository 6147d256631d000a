// SPDX-License-Identifier: Apache-2.0

package import CountersignAddresses
package import CountersignChallenges
import CountersignCryptography
import CountersignHome
import CountersignOAuth
import CountersignSignIn
import CountersignVault

/// What one site requires of the access token of a sign-in, for that site alone.
package struct SiteDemand: Hashable, Sendable {
    package let origin: Origin
    package let stepUp: StepUp
    /// The site's resource identifier (RFC 8707); nil if the token is for the resources of the profile.
    package let resource: String?

    package init(_ stepUp: StepUp, of origin: Origin, resource: String? = nil) {
        self.origin = origin
        self.stepUp = stepUp
        self.resource = resource
    }

    /// `profile`, with what the site requires.
    func wider(_ profile: SignInProfile) throws(OAuthError) -> SignInProfile {
        let wider = try profile.adding(stepUp)
        return resource.map { wider.asking(for: $0) } ?? wider
    }
}

extension SignInRecord {
    /// The demand that a token for one site meets.
    func demand(met token: SiteTokenRecord) -> SiteDemand {
        SiteDemand(
            token.stepUp, of: Origin(scheme: .https, host: token.host, port: token.port),
            resource: token.resource.isEmpty ? nil : token.resource)
    }

    /// The token for one site that `reference` is; nil if it is another credential. `key` is the vault's for tags.
    func siteToken(with reference: CredentialReference, _ key: Secret) -> SiteTokenRecord? {
        siteTokens.first { $0.token(named: name).tagged(with: key).reference == reference }
    }

    /// The access token for `origin` alone; nil without one.
    func siteToken(for origin: Origin) -> SiteTokenRecord? {
        siteTokens.first { origin == Origin(scheme: .https, host: $0.host, port: $0.port) }
    }
}

extension VaultContents {
    /// Stores tokens that a person, or the provider by itself, has given for the demand of one site. The refresh token
    /// becomes that of the sign-in: it is the newest of the same person and client. Returns the credential for the
    /// site.
    mutating func store(
        _ tokens: SignInTokens, of name: String, for demand: SiteDemand, expires: Int64?, at time: Int64
    ) throws -> TokenCredential? {
        guard var record = signIns[name] else {
            throw CountersignError(.refused, "the sign-in \(name.debugDescription) was removed meanwhile")
        }
        if let refresh = tokens.refresh { record.refreshToken = refresh }
        if let identity = tokens.identity { record.identityToken = identity }
        try updateSignIn(record)
        try setSiteToken(
            SiteTokenRecord(
                host: demand.origin.host, port: demand.origin.port, stepUp: demand.stepUp,
                resource: demand.resource ?? "", access: tokens.access,
                expires: expires ?? 0, obtained: time), of: name)
        return signIns[name]?.siteToken(for: demand.origin)?.token(named: name)
    }
}
