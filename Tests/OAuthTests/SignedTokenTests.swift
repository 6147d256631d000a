// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignOAuth

@Suite struct SignedTokenTests {
    /// RFC 7515 appendices A.2 to A.4 and RFC 8037 appendix A.4.
    @Test(arguments: Vector.all)
    func examplesOfTheStandardsVerify(vector: Vector) throws {
        let keys = try KeySet(vector.key)
        #expect(keys.count == 1)
        let token = try SignedToken(parsing: Secret(utf8: vector.token))
        #expect(token.verification(with: keys) == .verified)
        #expect(String(decoding: token.payload, as: UTF8.self).hasPrefix(vector.payload))
        // Each byte of the signature counts.
        let signature = try #require(vector.token.split(separator: ".").last)
        let bytes = try #require(Base64URL.decode(signature))
        for place in [0, bytes.count / 2, bytes.count - 1] {
            var changed = bytes
            changed[place] ^= 1
            let text = vector.token.dropLast(signature.count) + Base64URL.encode(changed)
            #expect(try SignedToken(parsing: Secret(utf8: text)).verification(with: keys) == .forged)
        }
    }

    /// RFC 7515 appendix A.1: HMAC is never accepted, and neither is appendix A.5, a token without a signature.
    @Test(arguments: [
        """
        eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxl\
        LmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
        """,
        """
        eyJhbGciOiJub25lIn0.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0\
        cnVlfQ.
        """,
    ])
    func tokensWithoutAPublicKeyAreRefused(text: String) {
        #expect(error { _ = try SignedToken(parsing: Secret(utf8: text)) }?.code == .invalidIDToken)
    }

    @Test(arguments: SignatureAlgorithm.allCases)
    func everyAlgorithmAgreesWithOpenSSL(algorithm: SignatureAlgorithm) throws {
        let key = try SigningKey("a", Self.generation(algorithm))
        let other = try SigningKey("a", Self.generation(algorithm))
        let token = try SignedToken(parsing: Secret(utf8: try key.token("{}", as: algorithm)))
        #expect(token.algorithm == algorithm)
        #expect(token.verification(with: try KeySet(key.key())) == .verified)
        #expect(token.verification(with: try KeySet(key.key(#","alg":"\#(algorithm.rawValue)""#))) == .verified)
        #expect(token.verification(with: try KeySet(other.key())) == .forged)
        let text = try key.token("{}", as: algorithm)
        let parts = text.split(separator: ".")
        let moved = "\(parts[0]).\(Base64URL.encode(Array(#"{"a":1}"#.utf8))).\(parts[2])"
        #expect(
            try SignedToken(parsing: Secret(utf8: moved)).verification(with: try KeySet(key.key())) == .forged)
    }

    @Test func theAlgorithmIsThatOfTheKey() throws {
        let rsa = try SigningKey("a", SigningKey.rsa)
        let token = try SignedToken(parsing: Secret(utf8: try rsa.token("{}", as: .rs256)))
        // A key for another algorithm, for encryption, of another type, or that is public with its private half.
        for more in [
            #","alg":"PS256""#, #","alg":"RS384""#, #","use":"enc""#, #","key_ops":["sign"]"#, #","d":"AQAB""#,
        ] {
            #expect(token.verification(with: try KeySet(rsa.key(more))) == .unknownKey, "\(more)")
        }
        let ec = try SigningKey("a", SigningKey.ec("P-256"))
        #expect(token.verification(with: try KeySet(ec.key())) == .unknownKey)
        // ES256 needs P-256, even if the numbers of another curve would fit the signature.
        let p384 = try SigningKey("a", SigningKey.ec("P-384"))
        let signed = try SignedToken(parsing: Secret(utf8: try ec.token("{}")))
        #expect(signed.verification(with: try KeySet(p384.key())) == .unknownKey)
        #expect(
            error {
                _ = try SignedToken(parsing: Secret(utf8: try rsa.token("{}", as: .rs256)), algorithms: [.es256])
            }?.code == .invalidIDToken)
    }

    /// The classic forgery: an HMAC whose key is the provider's public key.
    @Test func aPublicKeyIsNoSharedSecret() throws {
        let rsa = try SigningKey("a", SigningKey.rsa)
        let header = Base64URL.encode(Array(#"{"alg":"HS256","kid":"a"}"#.utf8))
        let input = header + "." + Base64URL.encode(Array("{}".utf8))
        let tag = Digest.sha256.hmac(Array(input.utf8), key: Array(try rsa.publicPEM().utf8))
        let text = input + "." + Base64URL.encode(tag)
        #expect(error { _ = try SignedToken(parsing: Secret(utf8: text)) }?.code == .invalidIDToken)
    }

    @Test func theKeyIdentifierChoosesTheKey() throws {
        let first = try SigningKey("first", SigningKey.ec("P-256"))
        let second = try SigningKey("second", SigningKey.ec("P-256"))
        let token = try SignedToken(parsing: Secret(utf8: try second.token("{}")))
        #expect(token.verification(with: try KeySet(first.key(), second.key())) == .verified)
        #expect(token.verification(with: try KeySet(first.key())) == .unknownKey)
        // Without an identifier there must be exactly one key that fits.
        let anonymous = try SignedToken(
            parsing: Secret(utf8: try second.sign(#"{"alg":"ES256"}"#, "{}", as: .es256)))
        let rsa = try SigningKey("third", SigningKey.rsa)
        #expect(anonymous.verification(with: try KeySet(second.key(), rsa.key())) == .verified)
        #expect(anonymous.verification(with: try KeySet(first.key(), second.key())) == .unknownKey)
        #expect(anonymous.verification(with: try KeySet(first.key())) == .forged)
    }

    @Test(arguments: [
        #"{"alg":"ES256","crit":["exp"],"exp":1}"#, #"{"alg":"ES256","crit":[]}"#, #"{"alg":"ES256","b64":false}"#,
        #"{"alg":"ES256","b64":false,"crit":["b64"]}"#, #"{"alg":"es256"}"#, #"{"alg":"None"}"#, #"{"alg":"HS256"}"#,
        #"{"alg":["ES256"]}"#, #"{"alg":null}"#, "{}", "[]", "", #"{"alg":"ES256","alg":"ES256"}"#,
        #"{"alg":"ES256","typ":"at+jwt"}"#, #"{"alg":"ES256","typ":"application/logout+jwt"}"#,
        #"{"alg":"ES256","kid":7}"#, #"{"alg":"ES256"} x"#, #"{"alg":"RSA-OAEP","enc":"A256GCM"}"#,
    ])
    func aHeaderThatIsNotUnderstoodIsRefused(header: String) throws {
        let text = try SigningKey.shared.get().sign(header, "{}", as: .es256)
        #expect(error { _ = try SignedToken(parsing: Secret(utf8: text)) }?.code == .invalidIDToken)
    }

    @Test func onlyThreePartsInBase64URLAreAToken() throws {
        let text = try SigningKey.shared.get().token("{}")
        for changed in [
            "", ".", "..", "...", "a.b", text + ".", text + ".a.b", "." + text, text + "=", text + " ",
            text.replacing(".", with: "+."), String(text.dropFirst()),
        ] {
            #expect(
                error { _ = try SignedToken(parsing: Secret(utf8: changed)) }?.code == .invalidIDToken, "\(changed)")
        }
        let huge = text + String(repeating: "A", count: SignedToken.maximumBytes)
        #expect(error { _ = try SignedToken(parsing: Secret(utf8: huge)) }?.code == .invalidIDToken)
    }

    @Test func aKeySetIsReadWithoutItsUnusableKeys() throws {
        let key = try SigningKey.shared.get()
        let small = #"{"kty":"RSA","n":"\#(Base64URL.encode([UInt8](repeating: 0xFF, count: 128)))","e":"AQAB"}"#
        let large = #"{"kty":"RSA","n":"\#(Base64URL.encode([UInt8](repeating: 0xFF, count: 2048)))","e":"AQAB"}"#
        let one = #"{"kty":"RSA","n":"\#(Base64URL.encode([UInt8](repeating: 0xFF, count: 256)))","e":"AQ"}"#
        let offCurve =
            #"{"kty":"EC","crv":"P-256","x":"\#(Base64URL.encode([UInt8](repeating: 1, count: 32)))","#
            + #""y":"\#(Base64URL.encode([UInt8](repeating: 2, count: 32)))"}"#
        let unusable = [
            small, large, one, offCurve, #"{"kty":"oct","k":"AAAA"}"#,
            #"{"kty":"EC","crv":"secp256k1","x":"A","y":"A"}"#,
            #"{"kty":"OKP","crv":"X25519","x":"3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08"}"#, #"{"kty":"RSA"}"#,
            "{}", "7", "null", #"{"kty":"EC","crv":"P-256","x":"AA==","y":"AA"}"#,
        ]
        #expect(try KeySet(parsing: Array(KeySet.text(unusable + [key.key()]).utf8)).count == 1)
        #expect(try KeySet(parsing: Array(KeySet.text([]).utf8)).count == 0)
        for text in ["", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[],"keys":[]}"#] {
            #expect(error { _ = try KeySet(parsing: Array(text.utf8)) }?.code == .malformedResponse, "\(text)")
        }
        let many = KeySet.text([String](repeating: key.key(), count: KeySet.maximumCount + 50))
        #expect(try KeySet(parsing: Array(many.utf8)).count == KeySet.maximumCount)
    }

    private static func generation(_ algorithm: SignatureAlgorithm) -> [String] {
        switch algorithm {
        case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512: SigningKey.rsa
        case .es256: SigningKey.ec("P-256")
        case .es384: SigningKey.ec("P-384")
        case .es512: SigningKey.ec("P-521")
        case .edDSA: SigningKey.ed25519
        }
    }
}

struct Vector: Sendable, CustomTestStringConvertible {
    let name: String
    let key: String
    let token: String
    let payload: String

    var testDescription: String { name }

    static let all = [
        Vector(
            name: "RFC 7515 A.2",
            key: """
                {"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS\
                2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5\
                rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmou\
                dF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}
                """,
            token: """
                eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290\
                Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5juj\
                Gbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_\
                eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLI\
                hWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw
                """,
            payload: "{\"iss\":\"joe\""),
        Vector(
            name: "RFC 7515 A.3",
            key: """
                {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",\
                "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}
                """,
            token: """
                eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290\
                Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q
                """,
            payload: "{\"iss\":\"joe\""),
        Vector(
            name: "RFC 7515 A.4",
            key: """
                {"kty":"EC","crv":"P-521",\
                "x":"AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk",\
                "y":"ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2"}
                """,
            token: """
                eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA.AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KG\
                DKB34XO0aw_7XdtAG8GaSwFKdCAPZgoXD2YBJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn
                """,
            payload: "Payload"),
        Vector(
            name: "RFC 8037 A.4",
            key: #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
            token: """
                eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhi\
                jcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg
                """,
            payload: "Example of Ed25519 signing"),
    ]
}
