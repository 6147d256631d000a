// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignJSON

/// The metadata document of a client, whose identifier is the document's address
/// (draft-ietf-oauth-client-id-metadata-document). The provider reads it; this program reads it only to find out before
/// the browser opens whether it is that of a client like this one. Nobody but the person names such an identifier.
package struct ClientDocument: Sendable, Equatable {
    /// The first redirect URI on which this program can wait.
    package let redirect: RedirectURI

    /// The largest document, in bytes (§6.6 recommends 5 KiB).
    static let maximumBytes = 64 << 10

    /// Whether an identifier is the address of a document, and not a provider's own name for a client.
    package static func isOne(_ identifier: String) -> Bool { identifier.hasPrefix("https://") }

    /// §3: https, with a path, without dot segments, user information and fragment. Throws `configuration`.
    package static func location(_ identifier: String) throws(OAuthError) -> EndpointURL {
        let location = try EndpointURL(identifier, "client_id")
        let segments = identifier.lowercased().replacing("%2e", with: ".").split(separator: "/")
        guard identifier.dropFirst("https://".count).contains("/"), !segments.contains("."), !segments.contains("..")
        else {
            throw .profile(
                "\(PrintableText.quote(identifier)) is not the address of a client's metadata document",
                hint: "it needs a path, as in https://app.example/client.json")
        }
        return location
    }

    /// Reads the document at the address `identifier`. Throws `malformedResponse` for another text and for the document
    /// of another identifier (§4.1), and `configuration` for that of a client that has a secret or a key, or no
    /// redirect URI on this machine.
    package init(_ outcome: ProviderOutcome, for identifier: String) throws(OAuthError) {
        let response = try outcome.response(from: .clientDocument)
        let what = "the metadata document \(PrintableText.longer(identifier))"
        guard response.status == 200, response.isJSON else {
            throw .malformed(what, "unexpected \(response.summary)")
        }
        let limits = JSONLimits(bytes: Self.maximumBytes, depth: 8)
        let value = try OAuthError.reading(what) { () throws(JSONError) in
            try JSONParser.parse(response.body, limits: limits, secrets: ["client_secret"])
        }
        guard let named = value.text("client_id"), named.isExactly(identifier) else {
            throw .malformed(what, "\"client_id\" is not its address")
        }
        if let method = value.text("token_endpoint_auth_method"), !method.isExactly("none") {
            throw .profile(
                "\(what) is that of a client that proves who it is with \(PrintableText.quote(method))",
                hint: "write a profile for this client, or name the document of a public client")
        }
        let redirects = (value.texts("redirect_uris") ?? []).compactMap { try? RedirectURI($0) }
        let own = redirects.first { if case .loopback = $0.kind { true } else { false } }
        guard let redirect = own else {
            throw .profile(
                "\(what) has no redirect URI on which this program can wait",
                hint: "add http://127.0.0.1/ to its redirect_uris")
        }
        self.redirect = redirect
    }
}
