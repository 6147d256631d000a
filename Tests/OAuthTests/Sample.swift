// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignOAuth

/// A provider with faults, a client, and the values of one sign-in.
enum Sample {
    static let issuer = "https://login.example/t"
    static let client = "client-7"
    /// Seconds since 1970.
    static let now: Int64 = 1_800_000_000
    static let secrets = SignInSecrets(randomBytes: Secret((0..<96).map { UInt8($0) }))

    static func document(_ changes: [String: String?] = [:]) -> [UInt8] {
        var members = ["issuer": "\"\(issuer)\""]
        for (name, path) in [
            "token_endpoint": "token", "authorization_endpoint": "authorize", "jwks_uri": "keys",
            "device_authorization_endpoint": "device", "revocation_endpoint": "revoke",
        ] {
            members[name] = "\"https://login.example/\(path)\""
        }
        for (name, value) in changes { members[name] = value }
        return Array("{\(members.map { "\"\($0)\":\($1)" }.joined(separator: ","))}".utf8)
    }

    static func metadata(_ changes: [String: String?] = [:]) throws -> ProviderMetadata {
        try ProviderMetadata(parsing: document(changes), issuer: try Issuer(issuer))
    }

    static func wanted(
        _ authentication: Client.Authentication = .none, scopes: [String] = ["openid"], claims: JSONValue? = nil
    ) throws -> SignInRequest {
        try SignInRequest(client: Client(client, authentication), scopes: scopes, claims: claims)
    }

    static func outcome(_ status: Int, _ body: [UInt8]) -> ProviderOutcome { .response(response(status, body)) }

    static func outcome(_ status: Int, _ body: String) -> ProviderOutcome { outcome(status, Array(body.utf8)) }

    static func response(_ status: Int, _ body: [UInt8]) -> ProviderResponse {
        ProviderResponse(status: status, contentType: "application/json", body: body)
    }

    static func tokens(_ more: String = "") -> ProviderOutcome {
        outcome(200, #"{"access_token":"access-new","token_type":"Bearer"\#(more)}"#)
    }

    /// A sign-in after the response of the metadata endpoint, and its next action.
    static func begun(
        by method: SignIn.Method? = nil, _ wanted: SignInRequest? = nil, keys: KeySet? = nil,
        metadata: [String: String?] = [:]
    ) throws -> (SignIn, SignIn.Action) {
        let redirect = try RedirectURI("http://127.0.0.1/cb").bound(toPort: 5000)
        var signIn = SignIn(
            issuer: try Issuer(issuer), try wanted ?? self.wanted(), by: method ?? .browser(redirect),
            secrets: secrets, keys: keys)
        _ = signIn.start()
        let action = signIn.received(outcome(200, document(metadata)), now: now)
        return (signIn, action)
    }

    /// A sign-in whose code is on its way to the token endpoint.
    static func redeeming(_ wanted: SignInRequest? = nil, keys: KeySet? = nil) throws -> SignIn {
        var (signIn, _) = try begun(wanted, keys: keys)
        _ = signIn.redirected(.query("code=code-of-the-sign-in&state=\(secrets.state)"))
        return signIn
    }

    /// A refresh whose request is on its way.
    static func refreshing(_ wanted: SignInRequest? = nil, keys: KeySet? = nil) throws -> TokenRefresh {
        let tokens = TokenSet(
            accessToken: Secret(utf8: "access-old"), expiresAt: now, obtainedAt: now - 3600,
            refreshToken: Secret(utf8: "refresh-old"), scope: nil, idToken: Secret(utf8: "id-old"), clientInfo: nil)
        var refresh = TokenRefresh(
            tokens, issuer: try Issuer(issuer), try wanted ?? self.wanted(), subject: "jo",
            metadata: try metadata(), keys: keys)
        _ = refresh.start()
        return refresh
    }
}

/// A key on Ed25519 that the openssl command makes and signs with.
final class IDSigner: Sendable {
    /// As a JSON Web Key Set.
    let keys: String
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder("id-signer")
        let path = folder.file("key")
        try Self.openssl(["genpkey", "-algorithm", "ED25519", "-out", path], folder)
        try Self.openssl(["pkey", "-in", path, "-pubout", "-outform", "DER", "-out", path + ".pub"], folder)
        let point = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path + ".pub"))).suffix(32)
        keys = #"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"\#(Base64URL.encode(point))"}]}"#
    }

    var keySet: KeySet { get throws { try KeySet(parsing: Array(keys.utf8)) } }

    /// An ID token of ``Sample``'s provider, with `changes` to the claims.
    func token(_ changes: [String: String] = [:], keyIdentifier: String? = "k") throws -> String {
        var claims = [
            "iss": "\"\(Sample.issuer)\"", "sub": "\"jo\"", "aud": "\"\(Sample.client)\"",
            "nonce": "\"\(Sample.secrets.nonce)\"", "iat": "\(Sample.now)", "exp": "\(Sample.now + 300)",
        ]
        claims.merge(changes) { $1 }
        let header = keyIdentifier.map { #"{"alg":"EdDSA","kid":"\#($0)"}"# } ?? #"{"alg":"EdDSA"}"#
        let payload = "{\(claims.map { "\"\($0)\":\($1)" }.joined(separator: ","))}"
        let input = [header, payload].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
        let file = try folder.write("input", input)
        try Self.openssl(
            ["pkeyutl", "-sign", "-rawin", "-inkey", folder.file("key"), "-in", file, "-out", file + ".sig"], folder)
        let signature = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file + ".sig")))
        return input + "." + Base64URL.encode(signature)
    }

    private static func openssl(_ arguments: [String], _ folder: TemporaryFolder) throws {
        let result = try Command.run(try Tool.path("openssl"), arguments, in: folder)
        try #require(result.status == 0, "\(result.said)")
    }
}

extension SignIn.Action {
    var error: OAuthError? { if case .fail(let error) = self { error } else { nil } }
    var result: SignInResult? { if case .finish(let result) = self { result } else { nil } }
    var request: ProviderRequest? { if case .send(let request) = self { request } else { nil } }
    var page: EndpointURL? { if case .open(let url) = self { url } else { nil } }
}

extension TokenRefresh.Action {
    var error: OAuthError? { if case .fail(let error, _) = self { error } else { nil } }
    var discardsTokens: Bool? { if case .fail(_, let discards) = self { discards } else { nil } }
    var stored: TokenSet? { if case .store(let tokens) = self { tokens } else { nil } }
    var tokens: TokenSet? { if case .finish(let tokens, _) = self { tokens } else { nil } }
    var isKeysRequest: Bool { if case .send(let request) = self { request.purpose == .keys } else { false } }
}
