// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import CountersignOAuth

/// A profile for a site that has none: what its challenge, its metadata (RFC 9728) and its provider say.
package struct SiteProfile: Sendable {
    /// The site as the person has named it.
    package let site: EndpointURL
    package let resource: ProtectedResourceMetadata
    /// Those that the challenge names, or else those in the metadata.
    package let scopes: [String]

    /// How many scopes to request because the metadata lists them.
    private static let maximumListed = 16
    /// Those of the provider's that keep the person signed in, and say who it is.
    private static let usefulScopes = ["openid", "offline_access"]

    package init(_ site: EndpointURL, _ challenge: ProviderClient.SiteChallenge, _ resource: ProtectedResourceMetadata)
    {
        self.site = site
        self.resource = resource
        scopes = challenge.scopes.isEmpty ? Array(resource.scopes.prefix(Self.maximumListed)) : challenge.scopes
    }

    /// The scopes to request at a provider.
    package func scopes(at metadata: ProviderMetadata) -> [String] {
        scopes + Self.usefulScopes.filter { !scopes.contains($0) && metadata.scopes.contains($0) }
    }

    /// The document. The site alone gets the token, which is for its resource (RFC 8707).
    package func document(_ issuer: Issuer, client: String, _ redirect: RedirectURI, scopes: [String]) -> String {
        func text(_ text: String) -> JSONValue { JSONValue(.string(text)) }
        let members: [(String, JSONValue)] = [
            ("name", text(SignInName.implied(byHost: site.origin.host))), ("issuer", text(issuer.text)),
            ("client_id", text(client)), ("redirect_uri", text(redirect.text)),
            ("scopes", JSONValue(.array(scopes.map(text)))),
            ("resources", JSONValue(.array([text(resource.resource)]))),
            ("sites", JSONValue(.array([text(site.origin.shortText)]))),
        ]
        return JSONValue(.object(members.map { JSONMember($0.0, $0.1) })).serialized
    }

    /// Whether `document` was made for the site at `source`, so that it exists only where the sign-in is stored.
    package static func isOne(_ document: String, from source: String) -> Bool {
        guard source.hasPrefix("https://"), let profile = try? SignInProfile(Array(document.utf8)),
            let site = try? EndpointURL(source, "the site's address")
        else { return false }
        return profile.sites == [site.origin.shortText] && profile.request.resources.count == 1
            && profile.name == SignInName.implied(byHost: site.origin.host)
    }
}
