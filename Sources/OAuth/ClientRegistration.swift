// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The registration of a native app as a public client, by itself (RFC 7591).
package struct ClientRegistration: Sendable {
    /// The name that the provider's page shows to the person.
    package let name: String
    package let redirect: RedirectURI
    package let scopes: [String]

    package init(name: String, redirect: RedirectURI, scopes: [String]) {
        self.name = name
        self.redirect = redirect
        self.scopes = scopes
    }

    /// §3.1. Throws `unsupportedProvider` if the provider registers no clients by itself.
    package func request(at metadata: ProviderMetadata) throws(OAuthError) -> ProviderRequest {
        guard let endpoint = metadata.registrationEndpoint else {
            throw OAuthError(
                .unsupportedProvider, .provider, "\(metadata.issuer) does not register clients by itself",
                hint: "register one there, with the redirect URI \(redirect.text), and pass --client-id"
                    + (metadata.readsClientDocuments ? ", or the address of a client's metadata document" : ""))
        }
        func list(_ texts: [String]) -> JSONValue { JSONValue(.array(texts.map { JSONValue(.string($0)) })) }
        var members = [
            JSONMember("client_name", JSONValue(.string(name))),
            JSONMember("application_type", JSONValue(.string("native"))),
            JSONMember("redirect_uris", list([redirect.text])),
            JSONMember("grant_types", list(["authorization_code", "refresh_token"])),
            JSONMember("response_types", list(["code"])),
            JSONMember("token_endpoint_auth_method", JSONValue(.string("none"))),
        ]
        if !scopes.isEmpty { members.append(JSONMember("scope", JSONValue(.string(scopes.joined(separator: " "))))) }
        return ProviderRequest(
            .registration, endpoint, body: Secret(utf8: JSONValue(.object(members)).serialized))
    }

    /// The client's identifier (§3.2.1). Throws the provider's error (§3.2.2), `malformedResponse`, or
    /// `unsupportedProvider` if the client is not the one that was asked for: it would need a secret, or it has another
    /// redirect URI or no authorization codes.
    package func identifier(_ outcome: ProviderOutcome) throws(OAuthError) -> String {
        let response = try outcome.response(from: .registration)
        let what = "the response of the client registration endpoint"
        guard response.status == 201 || response.status == 200 else {
            throw ProviderError.error(response, at: .registration)
        }
        let value = try OAuthError.reading(what) { () throws(JSONError) in
            try JSONParser.parse(response.body, secrets: ["client_secret", "registration_access_token"])
        }
        guard let identifier = value.text("client_id") else {
            throw .malformed(what, "the key \"client_id\" is missing")
        }
        do throws(OAuthError) {
            try SignInRequest.check(clientIdentifier: identifier)
        } catch {
            throw .malformed(what, "\"client_id\" is not the identifier of a client")
        }
        if let method = value.text("token_endpoint_auth_method"), method != "none" {
            throw OAuthError(
                .unsupportedProvider, .provider,
                "the provider has registered a client with a secret, and a program on this machine cannot keep one",
                hint: "register a public client there, and pass --client-id")
        }
        try check(value)
        return identifier
    }

    /// The provider may replace what was asked for (§3.2.1), and says what it has registered.
    private func check(_ registered: JSONValue) throws(OAuthError) {
        func unlike(_ what: String) -> OAuthError {
            OAuthError(
                .unsupportedProvider, .provider, "the provider has registered a client \(what)",
                hint: "register a public client there, with the redirect URI \(redirect.text), and pass --client-id")
        }
        if let redirects = registered.texts("redirect_uris"), !redirects.containsExactly(redirect.text) {
            throw unlike("with another redirect URI, \(PrintableText.longer(redirects.first ?? "none"))")
        }
        if let grants = registered.texts("grant_types"), !grants.containsExactly("authorization_code") {
            throw unlike("that may not use the grant authorization_code")
        }
    }
}
