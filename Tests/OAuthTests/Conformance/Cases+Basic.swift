// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

@testable import CountersignOAuth

/// The plan "basic", without its requests for user information, which this client never sends.
extension ConformanceCase {
    static let basic: [ConformanceCase] = [
        .accepted("oidcc-client-test", also: { $0.account == "person-1" && $0.tokens?.refreshToken != nil }),
        .refused("oidcc-client-test-nonce-invalid", .invalidIDToken, "its nonce") {
            $0.tokens.claims["nonce"] = #""another""#
        },
        .refused("the nonce is missing", .invalidIDToken, "its nonce") { $0.tokens.claims["nonce"] = nil },
        .refused("the nonce is a number", .invalidIDToken, "\"nonce\"") { $0.tokens.claims["nonce"] = "7" },
        .accepted("oidcc-client-test-scope-userinfo-claims") {
            $0.scopes = ["openid", "profile", "email"]
        } also: {
            $0.tokens?.scope == "openid profile email"
        },
        .accepted("oidcc-client-test-client-secret-basic") {
            $0.authentication = .secret(Secret(utf8: "s3cret"))
        } also: { run in
            let token = run.requests.last { $0.purpose == .token }
            return token?.authorization?.utf8Text == "Basic " + Base64.encode(Array("app-1:s3cret".utf8))
                && token?.parameters["client_secret"] == nil
        },
        .accepted("a secret in the body") {
            $0.authentication = .secret(Secret(utf8: "s3cret"))
            $0.metadata["token_endpoint_auth_methods_supported"] = #"["client_secret_post"]"#
        } also: {
            $0.sent(.token)[0]["client_secret"] == ["s3cret"]
        },
        .refused("no way to send the secret", .unsupportedProvider, "client_secret_basic") {
            $0.authentication = .secret(Secret(utf8: "s3cret"))
            $0.metadata["token_endpoint_auth_methods_supported"] = #"["client_secret_jwt"]"#
        },
        .refused("oidcc-client-test-missing-iat", .invalidIDToken, "\"iat\"") { $0.tokens.claims["iat"] = nil },
        .refused("iat is in the future", .invalidIDToken, "in the future") {
            $0.tokens.claims["iat"] = "\(Provider.now + 3600)"
        },
        .refused("oidcc-client-test-missing-sub", .invalidIDToken, "\"sub\"") { $0.tokens.claims["sub"] = nil },
        .refused("sub is empty", .invalidIDToken, "\"sub\"") { $0.tokens.claims["sub"] = #""""# },
        .refused("sub is longer than 255 characters", .invalidIDToken, "\"sub\"") {
            $0.tokens.claims["sub"] = "\"\(String(repeating: "a", count: 256))\""
        },
        .refused("sub is a number", .invalidIDToken, "\"sub\"") { $0.tokens.claims["sub"] = "1" },
        .refused("oidcc-client-test-invalid-iss", .invalidIDToken, "its issuer") {
            $0.tokens.claims["iss"] = #""https://other.example""#
        },
        .refused("the issuer has a slash at its end", .invalidIDToken, "its issuer") {
            $0.tokens.claims["iss"] = "\"\(Provider.issuerText)/\""
        },
        .refused("the issuer is in capitals", .invalidIDToken, "its issuer") {
            $0.tokens.claims["iss"] = #""https://ID.example/tenant""#
        },
        .refused("the issuer is missing", .invalidIDToken, "\"iss\"") { $0.tokens.claims["iss"] = nil },
        .refused("oidcc-client-test-invalid-aud", .invalidIDToken, "for another client") {
            $0.tokens.claims["aud"] = #""app-2""#
        },
        .refused("oidcc-client-test-missing-aud", .invalidIDToken, "\"aud\"") { $0.tokens.claims["aud"] = nil },
        .refused("aud is an empty array", .invalidIDToken, "for another client") { $0.tokens.claims["aud"] = "[]" },
        .refused("aud is a longer name", .invalidIDToken, "for another client") {
            $0.tokens.claims["aud"] = #""app-11""#
        },
        .refused("azp is another client", .invalidIDToken, "issued to another client") {
            $0.tokens.claims["azp"] = #""app-2""#
        },
        .accepted("azp is the client") { $0.tokens.claims["azp"] = #""app-1""# },
        .refused("the token has expired", .invalidIDToken, "it expired") {
            $0.tokens.claims["exp"] = "\(Provider.now - 600)"
        },
        .refused("exp is a text", .invalidIDToken, "\"exp\"") { $0.tokens.claims["exp"] = #""1999999999""# },
        .accepted("exp has a fraction") { $0.tokens.claims["exp"] = "\(Provider.now + 300).5" },
        .refused("the token is not valid yet", .invalidIDToken, "valid only in") {
            $0.tokens.claims["nbf"] = "\(Provider.now + 3600)"
        },
        .refused("at_hash is that of another token", .invalidIDToken, "at_hash") {
            $0.tokens.claims["at_hash"] = #""AAAAAAAAAAAAAAAAAAAAAA""#
        },
        .accepted("at_hash is right") {
            let half = Digest.sha256.hash(Array("access-1".utf8)).prefix(16)
            $0.tokens.claims["at_hash"] = "\"\(Base64URL.encode(half))\""
        },
        .refused("there is no ID token", .malformedResponse, "no ID token") { $0.tokens.members["id_token"] = nil },
        .refused("the ID token is encrypted", .invalidIDToken, "encrypted") {
            $0.tokens.damage = { _ in "a.b.c.d.e" }
        },
        .refused("acr is weaker than required", .insufficientAuthentication, "at the level") {
            $0.acrValues = ["phr"]
            $0.tokens.claims["acr"] = #""pwd""#
        },
        .refused("auth_time is missing", .insufficientAuthentication, "at an unknown time") { $0.maxAge = 300 },
        .refused("auth_time is too early", .insufficientAuthentication, "3600 seconds ago") {
            $0.maxAge = 300
            $0.tokens.claims["auth_time"] = "\(Provider.now - 3600)"
        },
        .accepted("acr and auth_time are as required") {
            ($0.acrValues, $0.maxAge) = (["phr"], 300)
            $0.tokens.claims["acr"] = #""phr""#
            $0.tokens.claims["auth_time"] = "\(Provider.now - 60)"
        } also: {
            $0.page?.parameters["max_age"] == ["300"]
        },
    ]
}
