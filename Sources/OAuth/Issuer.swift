// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The issuer identifier of a provider: an https URL without query and fragment (RFC 8414 §2). It is compared byte by
/// byte and never normalised (OpenID Connect Core §2).
package struct Issuer: Hashable, Sendable, CustomStringConvertible {
    package let text: String
    package let url: EndpointURL

    /// Throws `configuration`.
    package init(_ text: String, _ transport: EndpointURL.Transport = .secure) throws(OAuthError) {
        url = try EndpointURL(text, "issuer", transport)
        guard url.query == nil else { throw .profile("the issuer \(PrintableText.quote(text)) must not have a query") }
        self.text = text
    }

    package var description: String { PrintableText.longer(text) }

    /// The possible locations of the metadata, in the order to try: the issuer with `/.well-known/openid-configuration`
    /// after it (OpenID Connect Discovery §4.1), then with `/.well-known/oauth-authorization-server` between host and
    /// path (RFC 8414 §3.1), then with the former name there (RFC 8414 §5), if there is a path.
    package var metadataLocations: [EndpointURL] {
        let path = String(url.path.hasSuffix("/") ? url.path.dropLast() : url.path)
        let (openID, authorizationServer) =
            ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")
        let locations = [path + openID, authorizationServer + path] + (path.isEmpty ? [] : [openID + path])
        return locations.map { url.replacing(path: $0) }
    }
}
