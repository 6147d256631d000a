// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

@testable import CountersignOAuth

/// The plan "refresh": the ID token of a refresh belongs to the sign-in, or the new tokens are not used.
extension ConformanceCase {
    private static func refreshing(
        _ name: String, _ code: OAuthError.Code, _ words: String,
        _ script: @escaping @Sendable (inout ScriptedProvider) -> Void
    ) -> Self {
        refused(name, code, words) {
            $0.refreshes = true
            script(&$0)
        } also: {
            $0.tokens?.accessToken.utf8Text == "access-1"
        }
    }

    private static func refreshed(
        _ name: String, _ script: @escaping @Sendable (inout ScriptedProvider) -> Void = { _ in },
        also: @escaping @Sendable (ScriptedRun) -> Bool = { _ in true }
    ) -> Self {
        accepted(name) {
            $0.refreshes = true
            script(&$0)
        } also: {
            $0.tokens?.accessToken.utf8Text == "access-2" && also($0)
        }
    }

    static let refresh: [ConformanceCase] = [
        refreshed(
            "oidcc-client-test-refresh-token",
            also: { run in
                let last = run.sent(.token).last
                return last?["grant_type"] == ["refresh_token"] && last?["refresh_token"] == ["refresh-1"]
                    && last?["scope"] == nil
            }),
        refreshing("oidcc-client-test-refresh-token-invalid-issuer", .invalidIDToken, "its issuer") {
            $0.refreshed.claims["iss"] = #""https://other.example""#
        },
        refreshing("oidcc-client-test-refresh-token-invalid-sub", .accountChanged, "another account") {
            $0.refreshed.claims["sub"] = #""person-2""#
        },
        refreshing("oidcc-client-test-refresh-token-invalid-aud", .invalidIDToken, "for another client") {
            $0.refreshed.claims["aud"] = #""app-2""#
        },
        refreshing("oidcc-client-test-refresh-token-invalid-azp", .invalidIDToken, "issued to another client") {
            $0.refreshed.claims["azp"] = #""app-2""#
        },
        refreshing("the refreshed token has another nonce", .invalidIDToken, "its nonce") {
            $0.refreshed.claims["nonce"] = #""another""#
        },
        refreshed("the refreshed token has the first nonce") {
            $0.refreshed.claims["nonce"] = "\"\(Provider.secrets.nonce)\""
        },
        refreshing("the refreshed token is forged", .invalidIDToken, "its signature") {
            $0.refreshed.signer = .stranger
        },
        refreshing("the refreshed token is not signed", .invalidIDToken, "algorithm") {
            $0.refreshed.signer = .nobody
        },
        refreshing("the refreshed token has no subject", .invalidIDToken, "\"sub\"") {
            $0.refreshed.claims["sub"] = nil
        },
        refreshing("the refreshed token's at_hash is wrong", .invalidIDToken, "at_hash") {
            $0.refreshed.claims["at_hash"] = #""AAAAAAAAAAAAAAAAAAAAAA""#
        },
        refreshed("a refresh without an ID token keeps the first") {
            $0.refreshed.members["id_token"] = nil
        } also: {
            $0.tokens?.idToken != nil
        },
        refreshed("the refresh token stays", also: { $0.tokens?.refreshToken?.utf8Text == "refresh-1" }),
        refreshed("the refresh token is rotated") {
            $0.refreshed.members["refresh_token"] = #""refresh-2""#
        } also: {
            $0.stored == ["refresh-2"] && $0.tokens?.refreshToken?.utf8Text == "refresh-2"
        },
        .refused("a rotated refresh token outlives the response's faults", .invalidIDToken, "its issuer") {
            $0.refreshes = true
            $0.refreshed.members["refresh_token"] = #""refresh-2""#
            $0.refreshed.claims["iss"] = #""https://other.example""#
        } also: {
            $0.stored == ["refresh-2"]
        },
        .refused("a rotated refresh token of another account is not kept", .accountChanged, "another account") {
            $0.refreshes = true
            $0.refreshed.members["refresh_token"] = #""refresh-2""#
            $0.refreshed.claims["sub"] = #""person-2""#
        } also: {
            $0.stored.isEmpty
        },
        refreshed("the provider has a new key for the refresh") {
            $0.refreshed.signer = .rsa
            $0.laterKeys = { KeySet.text([try ScriptedKeys.rsa.get().key()]) }
        } also: {
            $0.sent(.keys).count == 2
        },
        refreshed("the scope is reduced") {
            $0.refreshed.members["scope"] = #""openid""#
        } also: {
            $0.tokens?.scope == "openid"
        },
        refreshing("the refresh token is no longer valid", .invalidGrant, "invalid_grant") {
            $0.refreshed.reply = .init(status: 400, body: #"{"error":"invalid_grant"}"#)
        },
        refreshing("the provider is down during the refresh", .unavailable, "cannot answer now") {
            $0.refreshed.reply = .init(status: 502, type: "text/html", body: "<html>")
        },
        refreshing("the refreshed token is of another type", .unsupportedProvider, "of the type \"mac\"") {
            $0.refreshed.members["token_type"] = #""mac""#
        },
        refreshing("there is no refresh token", .interactionRequired, "no refresh token") {
            $0.tokens.members["refresh_token"] = nil
        },
        .refused("the bound token is refreshed as a bearer token", .unsupportedProvider, "not bound to a key") {
            $0.refreshes = true
            $0.proofKey = .random()
            $0.refreshed.members["token_type"] = #""Bearer""#
        },
    ]
}
