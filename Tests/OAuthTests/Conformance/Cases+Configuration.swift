// SPDX-License-Identifier: Apache-2.0

@testable import CountersignOAuth

/// The plans "config" and "dynamic", and MCP's scenarios for metadata and registration. WebFinger is not implemented:
/// the profile, or the site, names the issuer.
extension ConformanceCase {
    static let configuration: [ConformanceCase] = [
        .accepted(
            "oidcc-client-test-discovery-openid-config",
            also: { $0.requests[0].url.path == "/tenant/.well-known/openid-configuration" }),
        .accepted("oidcc-client-test-discovery-jwks-uri-keys") {
            $0.metadata["jwks_uri"] = #""https://keys.example/set""#
        } also: {
            $0.requests.last?.url.description == "https://keys.example/set"
        },
        .refused("oidcc-client-test-discovery-issuer-mismatch", .issuerMismatch, "another issuer") {
            $0.metadata["issuer"] = #""https://other.example/tenant""#
        },
        .refused("auth/metadata-issuer-mismatch", .issuerMismatch, "another issuer") {
            $0.place = 1
            $0.metadata["issuer"] = #""https://other.example""#
        },
        .refused("the metadata's issuer has a slash more", .issuerMismatch, "another issuer") {
            $0.metadata["issuer"] = "\"\(Provider.issuerText)/\""
        },
        .refused("the metadata's issuer is http", .issuerMismatch, "another issuer") {
            $0.metadata["issuer"] = #""http://id.example/tenant""#
        },
        .refused("the metadata has no issuer", .malformedResponse, "\"issuer\"") { $0.metadata["issuer"] = nil },
        .accepted("auth/metadata-var2: RFC 8414 with a path") {
            $0.place = 1
        } also: {
            $0.requests[1].url.path == "/.well-known/oauth-authorization-server/tenant"
        },
        .accepted("auth/metadata-var3: the name of OpenID Connect before the path") {
            $0.place = 2
        } also: {
            $0.requests[2].url.path == "/.well-known/openid-configuration/tenant"
        },
        .accepted("auth/metadata-default: an issuer without a path") {
            ($0.issuer, $0.place) = ("https://id.example", 1)
            $0.metadata["issuer"] = #""https://id.example""#
        },
        .accepted("auth/metadata-var1: OpenID Connect, without a path") {
            $0.issuer = "https://id.example"
            $0.metadata["issuer"] = #""https://id.example""#
        } also: {
            $0.requests[0].url.origin.port == 443
        },
        .refused("there is no metadata", .unsupportedProvider, "has no metadata") {
            $0.place = 9
        } also: {
            $0.requests.count == 3
        },
        .refused("there is none, without a path", .unsupportedProvider, "no metadata") {
            ($0.issuer, $0.place) = ("https://id.example", 9)
        } also: {
            $0.requests.count == 2
        },
        .refused("the metadata is redirected", .unsupportedProvider, "status 302") {
            $0.elsewhere = .init(status: 302, body: "")
            $0.place = 9
        } also: {
            $0.page == nil
        },
        .refused("the metadata is a page for people", .malformedResponse, "the provider's metadata") {
            $0.elsewhere = .init(type: "text/html", body: "<html>")
            $0.place = 9
        },
        .refused("the provider is down", .unavailable, "cannot answer now") {
            $0.metadataReply = .init(status: 503)
        } also: {
            $0.requests.count == 1
        },
        .refused("the token endpoint is http", .malformedResponse, "it is not https") {
            $0.metadata["token_endpoint"] = #""http://id.example/tenant/token""#
        },
        .refused("the token endpoint is missing", .malformedResponse, "token_endpoint") {
            $0.metadata["token_endpoint"] = nil
        },
        .refused("the authorization endpoint is http", .unsupportedProvider, "no authorization endpoint") {
            $0.metadata["authorization_endpoint"] = #""http://id.example/tenant/authorize""#
        },
        .refused("the authorization endpoint has a parameter of ours", .malformedResponse, "its query") {
            $0.metadata["authorization_endpoint"] = #""https://id.example/tenant/authorize?client_id=app-2""#
        },
        .accepted("the authorization endpoint has parameters of its own") {
            $0.metadata["authorization_endpoint"] = #""https://id.example/tenant/authorize?policy=p1""#
        } also: {
            $0.page?.parameters["policy"] == ["p1"]
        },
        .refused("auth/pkce-no-s256-support", .unsupportedProvider, "PKCE") {
            $0.metadata["code_challenge_methods_supported"] = "[]"
        } also: {
            $0.page == nil
        },
        .refused("the provider supports plain PKCE alone", .unsupportedProvider, "PKCE") {
            $0.metadata["code_challenge_methods_supported"] = #"["plain"]"#
        },
        .accepted("the provider does not say whether it supports PKCE") {
            $0.metadata["code_challenge_methods_supported"] = nil
        } also: {
            $0.page?.parameters["code_challenge_method"] == ["S256"]
        },
    ]

    private static let endpoint = #""https://id.example/tenant/register""#

    static let registration: [ConformanceCase] = [
        .accepted("oidcc-client-test-dynamic-registration") {
            $0.registration = .init()
            $0.metadata["registration_endpoint"] = endpoint
        } also: { run in
            let body = run.requests.first { $0.purpose == .registration }?.body?.utf8Text ?? ""
            return run.client == "registered-1" && body.contains(#""application_type":"native""#)
                && body.contains(#""redirect_uris":["http://127.0.0.1/callback"]"#)
        },
        .refused("no clients are registered", .unsupportedProvider, "does not register clients") {
            $0.registration = .init()
        },
        .refused("the registration endpoint is http", .unsupportedProvider, "does not register clients") {
            $0.registration = .init()
            $0.metadata["registration_endpoint"] = #""http://id.example/tenant/register""#
        },
        .refused("the registration is refused", .refused, "invalid_client_metadata") {
            $0.registrationReply = .init(status: 400, body: #"{"error":"invalid_client_metadata"}"#)
            $0.metadata["registration_endpoint"] = endpoint
        },
        .refused("the registration needs a token", .malformedResponse, "status 401") {
            $0.registrationReply = .init(status: 401, type: nil, body: "")
            $0.metadata["registration_endpoint"] = endpoint
        },
        .refused("the registration has no identifier", .malformedResponse, "client_id") {
            $0.registration = .init()
            $0.registration?["client_id"] = nil
            $0.metadata["registration_endpoint"] = endpoint
        },
        .refused("the registered client has a secret", .unsupportedProvider, "with a secret") {
            $0.registration = .init()
            $0.registration?["token_endpoint_auth_method"] = #""client_secret_basic""#
            $0.metadata["registration_endpoint"] = endpoint
        },
        .refused("the registered client has another redirect", .unsupportedProvider, "redirect URI") {
            $0.registration = .init()
            $0.registration?["redirect_uris"] = #"["https://evil.example/callback"]"#
            $0.metadata["registration_endpoint"] = endpoint
        },
        .refused("the registered client may not use codes", .unsupportedProvider, "authorization_code") {
            $0.registration = .init()
            $0.registration?["grant_types"] = #"["client_credentials"]"#
            $0.metadata["registration_endpoint"] = endpoint
        },
        .accepted("the registration says no more than the identifier") {
            $0.registrationReply = .init(status: 201, body: #"{"client_id":"registered-1"}"#)
            $0.metadata["registration_endpoint"] = endpoint
        } also: {
            $0.client == "registered-1"
        },
        .accepted("auth/pre-registration") {
            $0.metadata["registration_endpoint"] = endpoint
        } also: {
            $0.sent(.registration).isEmpty
        },
        .accepted("auth/basic-cimd: the identifier is an address") {
            $0.client = "https://app.example/client.json"
            $0.metadata["client_id_metadata_document_supported"] = "true"
        } also: {
            $0.page?.parameters["client_id"] == ["https://app.example/client.json"]
        },
    ]
}
