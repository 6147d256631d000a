// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

@testable import CountersignOAuth

/// The plan of the FAPI 2.0 security profile, with plain responses: pushed requests, bound tokens, `iss`. Clients there
/// prove who they are with a key, which has tests of its own. The other modules of the plan have the same faults as
/// the plan "basic", with pushed requests.
extension ConformanceCase {
    /// A provider as the profile demands it.
    private static func fapi(
        _ verdict: Verdict, _ name: String, _ script: @escaping @Sendable (inout ScriptedProvider) -> Void = { _ in },
        also: @escaping @Sendable (ScriptedRun) -> Bool = { _ in true }
    ) -> Self {
        Self(
            name: "fapi2: \(name)", verdict: verdict,
            script: {
                $0.metadata["pushed_authorization_request_endpoint"] = #""https://id.example/tenant/par""#
                $0.metadata["require_pushed_authorization_requests"] = "true"
                $0.metadata["authorization_response_iss_parameter_supported"] = "true"
                $0.metadata["id_token_signing_alg_values_supported"] = #"["PS256","ES256","EdDSA"]"#
                $0.answer["iss"] = Provider.issuerText
                $0.proofKey = .random()
                script(&$0)
            }, also: also)
    }

    private static func idToken(_ words: String) -> Verdict { .refused(.invalidIDToken, words) }

    static let fapi: [ConformanceCase] = [
        fapi(.accepted, "happy-path") {
            $0.nonce = "n-1"
        } also: { run in
            let page = run.page?.parameters ?? [:]
            return Set(page.keys) == ["client_id", "request_uri"] && run.sent(.pushedAuthorization).count == 1
                && run.sent(.token).count == 2 && run.sent(.pushedAuthorization)[0]["dpop_jkt"] != nil
        },
        fapi(.accepted, "happy-path-no-dpop-nonce", also: { $0.sent(.token).count == 1 }),
        fapi(.refused(.refused, "use_dpop_nonce"), "the nonce is never right") {
            $0.tokens.reply = .init(status: 400, body: #"{"error":"use_dpop_nonce"}"#, nonce: "n-1")
        } also: {
            $0.sent(.token).count == 2
        },
        fapi(.refused(.issuerMismatch, "another issuer"), "discovery-issuer-mismatch") {
            $0.metadata["issuer"] = #""https://other.example/tenant""#
        },
        fapi(idToken("its issuer"), "invalid-iss") { $0.tokens.claims["iss"] = #""https://id.example/tenant1""# },
        fapi(idToken("\"iss\""), "invalid-missing-iss") { $0.tokens.claims["iss"] = nil },
        fapi(idToken("for another client"), "invalid-aud") { $0.tokens.claims["aud"] = #""app-12""# },
        fapi(idToken("issued to another client"), "invalid-secondary-aud") {
            $0.tokens.claims["aud"] = #"["app-1","https://other.example"]"#
        },
        fapi(idToken("\"aud\""), "invalid-missing-aud") { $0.tokens.claims["aud"] = nil },
        fapi(.accepted, "valid-aud-as-array") { $0.tokens.claims["aud"] = #"["app-1"]"# },
        fapi(idToken("algorithm"), "invalid-null-alg") { $0.tokens.signer = .nobody },
        fapi(idToken("algorithm"), "invalid-alternate-alg") {
            $0.tokens.signer = .rsa
            $0.keys = { KeySet.text([ScriptedKeys.main.key(), try ScriptedKeys.rsa.get().key()]) }
        },
        fapi(idToken("it expired"), "invalid-expired-exp") { $0.tokens.claims["exp"] = "\(Provider.now - 300)" },
        fapi(idToken("\"exp\""), "invalid-missing-exp") { $0.tokens.claims["exp"] = nil },
        fapi(idToken("its nonce"), "invalid-nonce") { $0.tokens.claims["nonce"] = #""another""# },
        fapi(idToken("its nonce"), "invalid-missing-nonce") { $0.tokens.claims["nonce"] = nil },
        fapi(.refused(.mixedUp, "another issuer"), "invalid-authorization-response-iss") {
            $0.answer["iss"] = "https://other.example"
        },
        fapi(.refused(.mixedUp, "does not name its issuer"), "remove-authorization-response-iss") {
            $0.answer["iss"] = nil
        },
        fapi(.ignored(.stateMismatch), "ensure-authorization-response-with-invalid-state-fails") {
            $0.answer["state"] = "another"
        },
        fapi(.ignored(.stateMismatch), "ensure-authorization-response-with-invalid-missing-state-fails") {
            $0.answer["state"] = nil
        },
        fapi(.ignored(.stateMismatch), "the state occurs twice") {
            $0.query = "code=a&state=\(Provider.secrets.state)&state=\(Provider.secrets.state)"
        },
        fapi(.accepted, "token-endpoint-response-without-expires_in") {
            $0.tokens.members["expires_in"] = nil
        } also: {
            $0.tokens?.expiresAt == nil
        },
        fapi(.accepted, "token-type-case-insensitivity") { $0.tokens.members["token_type"] = #""dPoP""# },
        fapi(.refused(.unsupportedProvider, "not bound to a key"), "a bearer token in place of a bound one") {
            $0.tokens.members["token_type"] = #""Bearer""#
        },
        fapi(.refused(.unsupportedProvider, "not bound to a key"), "the token type is missing, and so is the key") {
            $0.tokens.members["token_type"] = nil
        },
        fapi(.accepted, "refresh-token") {
            $0.refreshes = true
            $0.refreshed.members["refresh_token"] = #""refresh-2""#
        } also: {
            $0.stored == ["refresh-2"]
        },
        fapi(.refused(.refused, "invalid_request"), "the pushed request is refused") {
            $0.push = .init(status: 400, body: #"{"error":"invalid_request"}"#)
        } also: {
            $0.page == nil
        },
        fapi(.refused(.invalidClient, "invalid_client"), "the push does not know the client") {
            $0.push = .init(status: 401, body: #"{"error":"invalid_client"}"#)
        } also: {
            $0.page == nil
        },
        fapi(.refused(.unavailable, "cannot answer now"), "the push is down") {
            $0.push = .init(status: 503)
        } also: {
            $0.page == nil
        },
        fapi(.refused(.malformedResponse, "\"request_uri\""), "the push has no name") {
            $0.push = .init(status: 201, body: #"{"expires_in":60}"#)
        } also: {
            $0.page == nil
        },
        fapi(.refused(.malformedResponse, "is not a URI"), "the push's name has a space") {
            $0.push = .init(status: 201, body: #"{"request_uri":"urn:a b","expires_in":60}"#)
        } also: {
            $0.page == nil
        },
        fapi(.refused(.malformedResponse, "status 404"), "the required push is not there") {
            $0.push = .init(status: 404, type: nil, body: "")
        } also: {
            $0.page == nil
        },
        fapi(.refused(.unsupportedProvider, "no endpoint"), "pushing is required and nowhere") {
            $0.metadata["pushed_authorization_request_endpoint"] = nil
        },
        fapi(.refused(.unsupportedProvider, "no endpoint"), "pushing is required at an http address") {
            $0.metadata["pushed_authorization_request_endpoint"] = #""http://id.example/tenant/par""#
        },
    ]
}
