// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// What a provider says about itself (OpenID Connect Discovery §3, RFC 8414 §2). Only the members that are used.
package struct ProviderMetadata: Sendable, Equatable {
    /// As configured, to the byte.
    package let issuer: String
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
    package let responseModes: [String]?
    package let tokenEndpointAuthenticationMethods: [String]?

    /// Parses the document that `issuer` serves. Throws `issuerMismatch` if it names another issuer (RFC 8414 §3.3),
    /// `unsupportedProvider` if the provider does not support S256, and `malformedResponse`.
    package init(
        parsing body: [UInt8], issuer: Issuer, _ transport: EndpointURL.Transport = .secure
    ) throws(OAuthError) {
        let members = try OAuthError.reading("the provider's metadata") { () throws(JSONError) in
            try Members(body)
        }
        guard members.issuer == issuer.text else {
            throw OAuthError(
                .issuerMismatch, .profile,
                "the metadata of \(issuer) is that of another issuer, \(PrintableText.longer(members.issuer))",
                hint: "write the issuer in the profile exactly as the provider does")
        }
        // A provider that supports PKCE may leave the member out.
        if let methods = members.challengeMethods, !methods.contains("S256") {
            throw OAuthError(
                .unsupportedProvider, .provider, "the provider \(issuer) does not support PKCE with S256 (RFC 7636)")
        }
        func endpoint(_ name: String) throws(OAuthError) -> EndpointURL? {
            guard let text = members.endpoints[name] else { return nil }
            return try EndpointURL(provided: text, name, transport)
        }
        guard let tokenEndpoint = try endpoint("token_endpoint") else {
            throw .malformed("the provider's metadata", "the key \"token_endpoint\" is missing")
        }
        self.issuer = issuer.text
        self.tokenEndpoint = tokenEndpoint
        authorizationEndpoint = try endpoint("authorization_endpoint")
        keysEndpoint = try endpoint("jwks_uri")
        pushedAuthorizationEndpoint = try endpoint("pushed_authorization_request_endpoint")
        deviceAuthorizationEndpoint = try endpoint("device_authorization_endpoint")
        revocationEndpoint = try endpoint("revocation_endpoint")
        endSessionEndpoint = try endpoint("end_session_endpoint")
        requiresPushedAuthorization = members.requiresPushedAuthorization
        sendsIssuerInResponses = members.sendsIssuerInResponses
        responseModes = members.responseModes
        tokenEndpointAuthenticationMethods = members.tokenEndpointAuthenticationMethods
    }

    /// The members by type, before their values are checked.
    private struct Members {
        let issuer: String
        let challengeMethods: [String]?
        let requiresPushedAuthorization: Bool
        let sendsIssuerInResponses: Bool
        let responseModes: [String]?
        let tokenEndpointAuthenticationMethods: [String]?
        var endpoints: [String: String] = [:]

        init(_ body: [UInt8]) throws(JSONError) {
            var reader = try JSONReader(try JSONParser.parse(body), "the document", .lenient)
            issuer = try reader.string("issuer")
            challengeMethods = try reader.stringsIfPresent("code_challenge_methods_supported")
            requiresPushedAuthorization = try reader.boolIfPresent("require_pushed_authorization_requests") ?? false
            sendsIssuerInResponses =
                try reader.boolIfPresent("authorization_response_iss_parameter_supported") ?? false
            responseModes = try reader.stringsIfPresent("response_modes_supported")
            tokenEndpointAuthenticationMethods = try reader.stringsIfPresent("token_endpoint_auth_methods_supported")
            for name in Self.endpointNames { endpoints[name] = try reader.stringIfPresent(name) }
        }

        static let endpointNames = [
            "token_endpoint", "authorization_endpoint", "jwks_uri", "pushed_authorization_request_endpoint",
            "device_authorization_endpoint", "revocation_endpoint", "end_session_endpoint",
        ]
    }
}
