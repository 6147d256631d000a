// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

@testable import CountersignOAuth

/// Keys and signatures: of the plans "basic", "config" and "dynamic".
extension ConformanceCase {
    private static let twoNameless: @Sendable () -> String = {
        KeySet.text([ScriptedKeys.main.nameless, ScriptedKeys.second.nameless])
    }

    static let signatures: [ConformanceCase] = [
        .accepted("oidcc-client-test-idtoken-sig-rs256") {
            $0.tokens.signer = .rsa
            $0.keys = { KeySet.text([try ScriptedKeys.rsa.get().key()]) }
        },
        .refused("oidcc-client-test-idtoken-sig-none", .invalidIDToken, "algorithm") { $0.tokens.signer = .nobody },
        .refused("alg is None", .invalidIDToken, "algorithm") {
            $0.tokens.signer = .nobody
            $0.tokens.header["alg"] = #""None""#
        },
        .refused("oidcc-client-test-invalid-sig-hs256", .invalidIDToken, "algorithm") {
            $0.tokens.signer = .shared
        },
        .refused("oidcc-client-test-invalid-sig-es256", .invalidIDToken, "its signature") {
            $0.tokens.signer = .stranger
        },
        .refused("oidcc-client-test-invalid-sig-rs256", .invalidIDToken, "its signature") {
            $0.tokens.signer = .rsa
            $0.keys = { KeySet.text([try ScriptedKeys.rsa.get().key()]) }
            $0.tokens.damage = { String($0.dropLast(8)) + "AAAAAAAA" }
        },
        .refused("the claims were changed after signing", .invalidIDToken, "its signature") {
            $0.tokens.damage = { token in
                let parts = token.split(separator: ".")
                let claims = ScriptedRun.claims(of: token).replacing("person-1", with: "person-2")
                return "\(parts[0]).\(Base64URL.encode(Array(claims.utf8))).\(parts[2])"
            }
        },
        .refused("the signature is missing", .invalidIDToken, "its signature") {
            $0.tokens.damage = { $0.split(separator: ".").prefix(2).joined(separator: ".") + "." }
        },
        .accepted("oidcc-client-test-kid-absent-single-jwks") { $0.tokens.header["kid"] = nil },
        .accepted("kid is absent in the token and in the only key") {
            $0.tokens.header["kid"] = nil
            $0.keys = { KeySet.text([ScriptedKeys.main.nameless]) }
        },
        .refused("oidcc-client-test-kid-absent-multiple-jwks", .invalidIDToken, "does not publish") {
            $0.tokens.header["kid"] = nil
            $0.keys = twoNameless
        },
        .accepted("kid is absent, and one key of several fits") {
            $0.tokens.header["kid"] = nil
            $0.keys = { KeySet.text([try ScriptedKeys.rsa.get().key(), ScriptedKeys.main.key()]) }
        },
        .refused("kid is that of no key", .invalidIDToken, "does not publish") {
            $0.tokens.header["kid"] = #""key-9""#
        },
        .refused("kid differs in its case", .invalidIDToken, "does not publish") {
            $0.tokens.header["kid"] = #""KEY-1""#
        },
        .refused("the key is for encryption", .invalidIDToken, "does not publish") {
            $0.keys = { KeySet.text([ScriptedKeys.main.key(#","use":"enc""#)]) }
        },
        .refused("the key is for another algorithm", .invalidIDToken, "does not publish") {
            $0.keys = { KeySet.text([ScriptedKeys.main.key(#","alg":"ES384""#)]) }
        },
        .accepted("oidcc-client-test-ignores-unparseable-key-in-jwks") {
            let unusable = [
                #"{"kty":"AKP","kid":"pq-1","alg":"ML-DSA-00","pub":"AAAA"}"#, #"{"kty":"NEW","kid":"new-1","x":1}"#,
                #"{"kty":"RSA","kid":"rsa-9","alg":"RS257","n":"AQAB","e":"AQAB"}"#,
                #"{"kty":"EC","kid":"ec-9","crv":"P-257","x":"AA","y":"AA"}"#, "7", "null",
            ]
            $0.keys = { KeySet.text(unusable + [ScriptedKeys.main.key()]) }
        },
        .accepted("oidcc-client-test-signing-key-rotation") {
            $0.known = { KeySet.text([ScriptedKeys.second.key()]) }
        } also: {
            $0.sent(.keys).count == 1
        },
        // The client knows a key of this name, and the provider has another one by now.
        .accepted("oidcc-client-test-signing-key-rotation-just-before-signing") {
            $0.known = { KeySet.text([ScriptedKeys.second.key(named: "key-1")]) }
        } also: {
            $0.sent(.keys).count == 1
        },
        .accepted("the known keys suffice") {
            $0.known = { KeySet.text([ScriptedKeys.main.key()]) }
        } also: {
            $0.sent(.keys).isEmpty
        },
        .refused("crit names an extension", .invalidIDToken, "crit") { $0.tokens.header["crit"] = #"["exp"]"# },
        .refused("typ is that of an access token", .invalidIDToken, "typ") { $0.tokens.header["typ"] = #""at+jwt""# },
        .refused("the key is in the token's header", .invalidIDToken, "its signature") {
            $0.tokens.signer = .stranger
            let (x, y) = (ScriptedKeys.stranger.pair.x, ScriptedKeys.stranger.pair.y)
            $0.tokens.header["jwk"] =
                #"{"kty":"EC","crv":"P-256","x":"\#(Base64URL.encode(x))","y":"\#(Base64URL.encode(y))"}"#
        },
        .refused("the provider publishes no keys", .unsupportedProvider, "with which keys") {
            $0.metadata["jwks_uri"] = nil
        },
        .refused("the keys are at an http address", .unsupportedProvider, "with which keys") {
            $0.metadata["jwks_uri"] = #""http://id.example/tenant/keys""#
        },
        .refused("the keys are no key set", .malformedResponse, "the provider's keys") {
            $0.keys = { "[]" }
        },
        .refused("the key set is empty", .invalidIDToken, "does not publish") { $0.keys = { #"{"keys":[]}"# } },
        .refused("the algorithm is none that the metadata promises", .invalidIDToken, "algorithm") {
            $0.metadata["id_token_signing_alg_values_supported"] = #"["PS256","EdDSA"]"#
        },
        .accepted("the algorithm is one that the metadata promises") {
            $0.metadata["id_token_signing_alg_values_supported"] = #"["RS256","ES256"]"#
        },
    ]
}
