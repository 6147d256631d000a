// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignJSON

/// A provider's metadata (OpenID Connect Discovery §3, RFC 8414 §2). Only the members that are used.
package struct ProviderMetadata: Sendable, Equatable {
    /// As configured, to the byte.
    package let issuer: String
    /// False if the profile names endpoints and no issuer. ``issuer`` is the token endpoint's origin then, and the
    /// provider's own name is not known.
    package let hasIssuer: Bool
    package let authorizationEndpoint: EndpointURL?
    package let tokenEndpoint: EndpointURL
    package let keysEndpoint: EndpointURL?
    /// RFC 9126 §5.
    package let pushedAuthorizationEndpoint: EndpointURL?
    package let requiresPushedAuthorization: Bool
    /// RFC 8628 §4.
    package let deviceAuthorizationEndpoint: EndpointURL?
    /// RFC 7009.
    package let revocationEndpoint: EndpointURL?
    /// OpenID Connect RP-Initiated Logout §2.1.
    package let endSessionEndpoint: EndpointURL?
    /// RFC 9207 §3: every authorization response has `iss`.
    package let sendsIssuerInResponses: Bool
    /// RFC 7591 §3.
    package private(set) var registrationEndpoint: EndpointURL?
    /// Whether a client's identifier may be the address of its ``ClientDocument``.
    package private(set) var readsClientDocuments = false
    /// `scopes_supported`; empty if the provider does not say.
    package private(set) var scopes: [String] = []
    package let responseModes: [String]?
    package let tokenEndpointAuthenticationMethods: [String]?
    package let revocationEndpointAuthenticationMethods: [String]?
    /// The signature algorithms of client assertions; nil if the provider does not say.
    package private(set) var tokenEndpointAuthenticationAlgorithms: [String]?
    /// Those of ID tokens, without the ones that are not implemented; nil if the provider does not say.
    package private(set) var idTokenAlgorithms: Set<SignatureAlgorithm>?
    /// Whether the issuer itself has published it; false if the profile names the endpoints.
    package private(set) var isPublished = false

    /// Those of the endpoints.
    package var origins: Set<Origin> {
        let optional = [
            authorizationEndpoint, keysEndpoint, pushedAuthorizationEndpoint, deviceAuthorizationEndpoint,
            revocationEndpoint, endSessionEndpoint,
        ]
        return Set(optional.compactMap { $0?.origin } + [tokenEndpoint.origin])
    }

    /// Parses the document that `issuer` serves. Throws `issuerMismatch` if it names another issuer (RFC 8414 §3.3),
    /// `unsupportedProvider` if the provider does not support S256, and `malformedResponse` without a token endpoint
    /// that can be used. Any other endpoint that cannot be used counts as absent.
    package init(
        parsing body: [UInt8], issuer: Issuer, _ transport: EndpointURL.Transport = .secure
    ) throws(OAuthError) {
        let members = try OAuthError.reading("the provider's metadata") { () throws(JSONError) in
            try Members(body)
        }
        guard members.issuer.isExactly(issuer.text) else {
            // Microsoft's name for the metadata of all tenants.
            let isTemplate = members.issuer.utf8.contains(UInt8(ascii: "{"))
            throw OAuthError(
                .issuerMismatch, .profile,
                "the metadata of \(issuer) is that of another issuer, \(PrintableText.longer(members.issuer))",
                hint: isTemplate
                    ? "write the tenant's own identifier into the issuer, in place of a word such as \"common\""
                    : "write the issuer in the profile exactly as the provider does")
        }
        // A provider that supports PKCE may leave the member out.
        if let methods = members.challengeMethods, !methods.containsExactly("S256") {
            throw OAuthError(
                .unsupportedProvider, .provider, "the provider \(issuer) does not support PKCE with S256 (RFC 7636)")
        }
        func endpoint(_ name: String) -> EndpointURL? {
            members.document.text(name).flatMap { try? EndpointURL(provided: $0, name, transport) }
        }
        guard let tokenEndpoint = members.document.text("token_endpoint") else {
            throw .malformed("the provider's metadata", "the key \"token_endpoint\" is missing")
        }
        self.issuer = issuer.text
        hasIssuer = true
        self.tokenEndpoint = try EndpointURL(provided: tokenEndpoint, "token_endpoint", transport)
        authorizationEndpoint = endpoint("authorization_endpoint")
        keysEndpoint = endpoint("jwks_uri")
        pushedAuthorizationEndpoint = endpoint("pushed_authorization_request_endpoint")
        deviceAuthorizationEndpoint = endpoint("device_authorization_endpoint")
        revocationEndpoint = endpoint("revocation_endpoint")
        endSessionEndpoint = endpoint("end_session_endpoint")
        registrationEndpoint = endpoint("registration_endpoint")
        readsClientDocuments = members.document.isTrue("client_id_metadata_document_supported")
        scopes = members.document.texts("scopes_supported") ?? []
        requiresPushedAuthorization = members.requiresPushedAuthorization
        sendsIssuerInResponses = members.sendsIssuerInResponses
        responseModes = members.responseModes
        tokenEndpointAuthenticationMethods = members.tokenEndpointAuthenticationMethods
        revocationEndpointAuthenticationMethods = members.revocationEndpointAuthenticationMethods
        tokenEndpointAuthenticationAlgorithms = members.document.texts(
            "token_endpoint_auth_signing_alg_values_supported")
        if let names = members.document.texts("id_token_signing_alg_values_supported"), !names.isEmpty {
            idTokenAlgorithms = Set(names.compactMap(SignatureAlgorithm.init(named:)))
        }
        isPublished = true
    }

    /// The members by type, before their values are checked.
    private struct Members {
        let issuer: String
        let challengeMethods: [String]?
        let requiresPushedAuthorization: Bool
        let sendsIssuerInResponses: Bool
        let responseModes: [String]?
        let tokenEndpointAuthenticationMethods: [String]?
        let revocationEndpointAuthenticationMethods: [String]?
        let document: JSONValue

        init(_ body: [UInt8]) throws(JSONError) {
            document = try JSONParser.parse(body)
            var reader = try JSONReader(document, "the document", .lenient)
            issuer = try reader.string("issuer")
            challengeMethods = document.texts("code_challenge_methods_supported")
            requiresPushedAuthorization = document.isTrue("require_pushed_authorization_requests")
            sendsIssuerInResponses = document.isTrue("authorization_response_iss_parameter_supported")
            responseModes = document.texts("response_modes_supported")
            tokenEndpointAuthenticationMethods = document.texts("token_endpoint_auth_methods_supported")
            revocationEndpointAuthenticationMethods = document.texts("revocation_endpoint_auth_methods_supported")
        }
    }
}

/// Members of a provider's document that are not required. Those of another type count as absent, because a fault in
/// one that is perhaps not used must not make the provider unusable.
extension JSONValue {
    func text(_ name: String) -> String? {
        if case .string(let text)? = self[name]?.content { text } else { nil }
    }

    func texts(_ name: String) -> [String]? {
        switch self[name]?.content {
        case .array(let values)?: values.compactMap { if case .string(let text) = $0.content { text } else { nil } }
        case .string(let text)?: [text]
        case .null?, .bool?, .integer?, .number?, .secret?, .object?, nil: nil
        }
    }

    /// Also for the string that some providers write.
    func isTrue(_ name: String) -> Bool { self[name]?.content == .bool(true) || text(name)?.isExactly("true") == true }
}
