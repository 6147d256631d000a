// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

@testable import CountersignOAuth

/// The provider and the client that the tests speak of.
enum Provider {
    static let issuerText = "https://id.example/tenant"
    static let client = "app-1"
    /// Seconds since 1970.
    static let now: Int64 = 1_900_000_000

    static func issuer() throws -> Issuer { try Issuer(issuerText) }

    /// The members of the metadata, with `changes`; a change to nil removes a member.
    static func document(_ changes: [String: String?] = [:]) -> [UInt8] {
        var members = [
            "issuer": #""\#(issuerText)""#,
            "authorization_endpoint": #""https://id.example/tenant/authorize""#,
            "token_endpoint": #""https://id.example/tenant/token""#,
            "jwks_uri": #""https://id.example/tenant/keys""#,
            "device_authorization_endpoint": #""https://id.example/tenant/device""#,
            "revocation_endpoint": #""https://id.example/tenant/revoke""#,
            "end_session_endpoint": #""https://id.example/tenant/logout""#,
            "code_challenge_methods_supported": #"["plain","S256"]"#,
            "unknown_member": #"{"deep":[1,2]}"#,
        ]
        for (name, value) in changes { members[name] = value }
        return Array("{\(members.sorted { $0.key < $1.key }.map { "\"\($0)\":\($1)" }.joined(separator: ","))}".utf8)
    }

    static func metadata(_ changes: [String: String?] = [:]) throws -> ProviderMetadata {
        try ProviderMetadata(parsing: document(changes), issuer: try issuer())
    }

    static func request(
        _ authentication: Client.Authentication = .none, scopes: [String] = ["openid", "offline_access"],
        resources: [String] = [], parameters: [SignInRequest.Parameter] = [],
        tokenParameters: [SignInRequest.Parameter] = [], claims: JSONValue? = nil, loginHint: String? = nil,
        prompt: String? = nil, usesFormPost: Bool = false, usesPushedAuthorization: Bool = true
    ) throws -> SignInRequest {
        try SignInRequest(
            client: Client(client, authentication), scopes: scopes, resources: resources, parameters: parameters,
            tokenParameters: tokenParameters, claims: claims, loginHint: loginHint, prompt: prompt,
            usesFormPost: usesFormPost, usesPushedAuthorization: usesPushedAuthorization)
    }

    static let secrets = SignInSecrets(randomBytes: Secret((0..<96).map { UInt8($0) }))

    static func redirect() throws -> RedirectURI {
        try RedirectURI("http://127.0.0.1/callback").bound(toPort: 40_000)
    }

    /// A response with status 200 and a JSON body.
    static func response(_ body: String) -> ProviderOutcome { response(200, body) }

    static func response(
        _ status: Int, type: String? = "application/json", retryAfter: Int64? = nil, _ body: String
    ) -> ProviderOutcome {
        .response(
            ProviderResponse(status: status, contentType: type, retryAfter: retryAfter, body: Array(body.utf8)))
    }
}

extension ProviderRequest {
    /// The parameters of the body.
    var parameters: [String: [String]] { Dictionary(form(body?.utf8Text ?? ""), uniquingKeysWith: +) }
}

extension EndpointURL {
    /// The parameters of the query.
    var parameters: [String: [String]] { Dictionary(form(String(query ?? "")), uniquingKeysWith: +) }
}

private func form(_ text: String) -> [(String, [String])] {
    (FormEncoding.decode(text.utf8) ?? []).map { ($0.name, [$0.value]) }
}

/// The error that `body` throws.
func error(_ body: () throws -> Void) -> OAuthError? {
    do {
        try body()
        return nil
    } catch {
        return error as? OAuthError
    }
}

struct Unexpected: Error {
    let value: String

    init(_ value: Any) { self.value = "\(value)" }
}

/// A small generator whose numbers are the same in every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
