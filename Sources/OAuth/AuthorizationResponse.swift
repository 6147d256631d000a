// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The message that the user agent brought back to the redirect URI, not yet checked.
package enum RedirectMessage: Sendable, Equatable {
    /// The query of a request to the redirect URI, without its question mark.
    case query(String)
    /// The body of a POST to the redirect URI (OAuth 2.0 Form Post Response Mode §2). The path was compared already.
    case formPost([UInt8])
    /// A whole URL: from the navigation of a user agent, or pasted by the person.
    case url(String)
}

/// A checked authorization response (RFC 6749 §4.1.2).
package struct AuthorizationResponse: Sendable, Equatable {
    package let code: Secret

    /// The longest message, in bytes.
    package static let maximumBytes = 32 * 1024

    /// Checks `state` first, so that a forged message has no effect; then that no parameter occurs twice (§3.1), then
    /// `iss` (RFC 9207 §2.4), then `error`, then `code`.
    ///
    /// Throws `wrongRedirect` for a URL that is not the redirect URI, and `stateMismatch`: neither is a reason to stop
    /// waiting. Everything else ends the sign-in: `mixedUp`, `malformedResponse`, or the provider's error.
    package init(
        _ message: RedirectMessage, to redirect: RedirectURI, state: String, metadata: ProviderMetadata
    ) throws(OAuthError) {
        let parameters = try Self.parameters(of: message, to: redirect)
        let states = parameters.filter { $0.name.isExactly("state") }
        guard states.count == 1, Secret(utf8: states[0].value) == Secret(utf8: state) else {
            throw OAuthError(
                .stateMismatch, .person, "the redirect does not belong to this sign-in",
                hint: "finish the sign-in in the page that was opened last")
        }
        // Compared as bytes: `String` normalises, in quadratic time.
        var names: Set<[UInt8]> = []
        for (name, _) in parameters {
            guard names.insert(Array(name.utf8)).inserted else {
                throw .malformed("the authorization response", "\(PrintableText.quote(name)) occurs twice")
            }
        }
        func value(_ name: String) -> String? { parameters.first { $0.name.isExactly(name) }?.value }
        try Self.check(issuer: value("iss"), metadata)
        if let error = value("error") {
            let reported = ProviderError(
                error: error, suberror: value("suberror") ?? value("error_subcode"),
                description: value("error_description"), claims: value("claims"),
                hiding: [state, value("code") ?? ""].map { Secret(utf8: $0) })
            throw reported?.error(from: "the provider")
                ?? .malformed("the authorization response", "\"error\" is not an error code")
        }
        // RFC 6749 appendix A.11.
        guard let code = value("code"), !code.isEmpty, code.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw .malformed("the authorization response", "it has neither a code nor an error")
        }
        self.code = Secret(utf8: code)
    }

    /// RFC 9207 §2.4. A provider that does not promise `iss` may send it, and then it must be right.
    private static func check(issuer: String?, _ metadata: ProviderMetadata) throws(OAuthError) {
        guard let issuer else {
            guard !metadata.sendsIssuerInResponses else {
                throw OAuthError(
                    .mixedUp, .provider,
                    "the authorization response does not name its issuer, as the provider promises",
                    hint: "do not sign in there again before the provider's operator has looked at it")
            }
            return
        }
        guard metadata.hasIssuer else { return }
        guard issuer.isExactly(metadata.issuer) else {
            throw OAuthError(
                .mixedUp, .provider,
                "the authorization response comes from another issuer, \(PrintableText.longer(issuer))",
                hint: "do not sign in there again before the provider's operator has looked at it")
        }
    }

    private static func parameters(
        of message: RedirectMessage, to redirect: RedirectURI
    ) throws(OAuthError) -> [(name: String, value: String)] {
        let bytes: [UInt8]
        switch message {
        case .query(let query): bytes = Array(query.utf8)
        case .formPost(let body): bytes = body
        case .url(let url):
            guard url.utf8.count <= maximumBytes, let query = redirect.query(of: url) else {
                throw OAuthError(
                    .wrongRedirect, .person, "the URL is not one of \(redirect.text)",
                    hint: "copy the whole address of the page to which the sign-in has led")
            }
            bytes = Array(query.utf8)
        }
        guard bytes.count <= maximumBytes, let parameters = FormEncoding.decode(bytes) else {
            throw OAuthError(.stateMismatch, .person, "the redirect is not an authorization response")
        }
        return parameters
    }
}
