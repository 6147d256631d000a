// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignJSON

/// The key that signs ID tokens, with ES256.
struct IssuerKey: Sendable {
    private let key: PrivateKey
    private let identifier: String
    /// The public key (RFC 7517 §4).
    let publicKey: JSONValue

    init() throws(CertificateError) {
        key = try PrivateKey.generateP256()
        let (x, y) = try key.p256Coordinates()
        identifier = Hex.encode(Digest.sha256.hash(x + y).prefix(8))
        publicKey = JSONValue(
            .object([
                JSONMember("kty", JSONValue(.string("EC"))), JSONMember("crv", JSONValue(.string("P-256"))),
                JSONMember("use", JSONValue(.string("sig"))), JSONMember("alg", JSONValue(.string("ES256"))),
                JSONMember("kid", JSONValue(.string(identifier))),
                JSONMember("x", JSONValue(.string(Base64URL.encode(x)))),
                JSONMember("y", JSONValue(.string(Base64URL.encode(y)))),
            ]))
    }

    /// The claims as a JWS in compact serialization (RFC 7515 §3.1).
    func sign(_ claims: JSONValue) throws(CertificateError) -> String {
        let header = #"{"alg":"ES256","kid":"\#(identifier)","typ":"JWT"}"#
        let parts = [header, claims.serialized].map { Base64URL.encode(Array($0.utf8)) }
        let input = parts.joined(separator: ".")
        return input + "." + Base64URL.encode(try key.es256Signature(of: Array(input.utf8)))
    }
}
