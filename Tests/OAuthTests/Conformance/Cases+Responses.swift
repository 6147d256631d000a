// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

@testable import CountersignOAuth

/// The redirect and the response of the token endpoint, among them MCP's scenarios for RFC 9207 and for scopes.
extension ConformanceCase {
    private static let promise = "authorization_response_iss_parameter_supported"

    static let responses: [ConformanceCase] = [
        .accepted("auth/iss-supported") {
            $0.metadata[promise] = "true"
            $0.answer["iss"] = Provider.issuerText
        },
        .accepted("auth/iss-not-advertised"),
        .refused("auth/iss-supported-missing", .mixedUp, "does not name its issuer") {
            $0.metadata[promise] = "true"
        } also: {
            $0.sent(.token).isEmpty
        },
        .refused("auth/iss-wrong-issuer", .mixedUp, "another issuer") {
            $0.metadata[promise] = "true"
            $0.answer["iss"] = "https://evil.example.com"
        } also: {
            $0.sent(.token).isEmpty
        },
        .refused("auth/iss-unexpected", .mixedUp, "another issuer") {
            $0.answer["iss"] = "https://evil.example.com"
        } also: {
            $0.sent(.token).isEmpty
        },
        .refused("iss has a slash more", .mixedUp, "another issuer") { $0.answer["iss"] = Provider.issuerText + "/" },
        .refused("iss has its host in capitals", .mixedUp, "another issuer") {
            $0.answer["iss"] = "https://ID.EXAMPLE/tenant"
        },
        .refused("an error comes from another issuer", .mixedUp, "another issuer") {
            ($0.answer["code"], $0.answer["error"]) = (nil, "access_denied")
            $0.answer["iss"] = "https://evil.example.com"
        },
        .refused("the person declines", .denied, "access_denied") {
            ($0.answer["code"], $0.answer["error"]) = (nil, "access_denied")
        },
        .refused("an error with a code is an error", .denied, "access_denied") {
            $0.answer["error"] = "access_denied"
        } also: {
            $0.sent(.token).isEmpty
        },
        .accepted("the response is posted") {
            $0.usesFormPost = true
        } also: {
            $0.page?.parameters["response_mode"] == ["form_post"]
        },
        .refused("oidcc-client-test-form-post-error", .denied, "access_denied") {
            $0.usesFormPost = true
            ($0.answer["code"], $0.answer["error"]) = (nil, "access_denied")
        },
        .refused("the code occurs twice", .malformedResponse, "occurs twice") {
            $0.query = "code=a&code=b&state=\(Provider.secrets.state)"
        },
        .refused("the redirect has tokens and no code", .malformedResponse, "neither a code nor an error") {
            $0.answer["code"] = nil
            ($0.answer["id_token"], $0.answer["access_token"]) = ("a.b.c", "access-9")
        },
        .accepted("an ID token in the redirect is of no use") {
            $0.answer["id_token"] = "a.b.c"
        } also: {
            $0.account == "person-1"
        },
        .accepted("the token type is missing") { $0.tokens.members["token_type"] = nil },
        .refused("the token is for DPoP, and nobody asked", .unsupportedProvider, "of the type \"DPoP\"") {
            $0.tokens.members["token_type"] = #""DPoP""#
        },
        .refused("the token type is no text", .malformedResponse, "\"token_type\"") {
            $0.tokens.members["token_type"] = "7"
        },
        .refused("the tokens are a form", .malformedResponse, "it is not JSON") {
            $0.tokens.type = "application/x-www-form-urlencoded"
        },
        .refused("the tokens are text/html", .malformedResponse, "it is not JSON") { $0.tokens.type = "text/html" },
        .refused("the tokens have no type", .malformedResponse, "it is not JSON") { $0.tokens.type = nil },
        .refused("the access token is missing", .malformedResponse, "access_token") {
            $0.tokens.members["access_token"] = nil
        },
        .refused("the access token is empty", .malformedResponse, "access_token") {
            $0.tokens.members["access_token"] = #""""#
        },
        .refused("the access token has a line break", .malformedResponse, "access_token") {
            $0.tokens.members["access_token"] = #""a\r\nX: y""#
        },
        .refused("the access token occurs twice", .malformedResponse, "access_token") {
            $0.tokens.members["access_token"] = #""a","access_token":"b""#
        },
        .refused("the token endpoint redirects", .malformedResponse, "status 307") {
            $0.tokens.reply = .init(status: 307, body: "")
        },
        .refused("an error with status 200", .invalidGrant, "invalid_grant") {
            $0.tokens.reply = .init(body: #"{"error":"invalid_grant"}"#)
        },
        .refused("the client is unknown", .invalidClient, "invalid_client") {
            $0.tokens.reply = .init(status: 401, body: #"{"error":"invalid_client"}"#)
        },
        .accepted("a reduced scope is noted") {
            $0.tokens.members["scope"] = #""openid""#
        } also: {
            $0.tokens?.scope == "openid"
        },
        .accepted("an extended scope is noted") {
            $0.tokens.members["scope"] = #""openid offline_access admin""#
        } also: {
            $0.tokens?.scope == "openid offline_access admin"
        },
        .accepted("auth/scope-omitted-when-undefined") {
            $0.scopes = []
        } also: {
            $0.page?.parameters["scope"] == nil
        },
        .accepted("an ID token that nobody asked for is not kept") {
            $0.scopes = ["mcp"]
            $0.tokens.members["id_token"] = #""a.b.c""#
        } also: {
            $0.tokens?.idToken == nil
        },
        .accepted("the resource is in both requests") {
            $0.resources = ["https://api.example/mcp"]
        } also: {
            $0.page?.parameters["resource"] == ["https://api.example/mcp"]
                && $0.sent(.token)[0]["resource"] == ["https://api.example/mcp"]
        },
        .refused("the resource is refused", .refused, "invalid_target") {
            $0.resources = ["https://api.example/mcp"]
            $0.tokens.reply = .init(status: 400, body: #"{"error":"invalid_target"}"#)
        },
    ]
}
