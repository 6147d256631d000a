// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// A proof that the sender has the key to which its token is bound (RFC 9449 §4.2): the value of the field `DPoP`.
/// Each request, and each repetition, has one of its own.
package struct DPoPProof: Sendable {
    private let method: String
    private let address: String
    private let nonce: String?
    private let token: Secret?

    /// The name of the field.
    package static let field = "DPoP"
    /// The size of ``signed(with:at:random:)``'s random bytes.
    package static let randomByteCount = 16

    /// `method` is that of the request, as sent, and `address` its URL; query and fragment are left out. `token` is the
    /// access token that the request carries, if it does. `nonce` is the server's, if it gave one.
    package init(_ method: String, _ address: String, token: Secret? = nil, nonce: String? = nil) {
        self.method = method
        self.address = String(address.prefix { $0 != "?" && $0 != "#" })
        self.token = token
        self.nonce = nonce
    }

    /// The compact serialisation (RFC 7515 §3.1). `time` is in seconds since 1970; `random` are bytes for `jti`. Nil if
    /// the key cannot be used.
    package func signed(with key: ES256Key, at time: Int64, random: [UInt8]) -> String? {
        func text(_ text: String) -> JSONValue { JSONValue(.string(text)) }
        let header = [
            JSONMember("typ", text("dpop+jwt")), JSONMember("alg", text("ES256")),
            JSONMember(
                "jwk",
                JSONValue(
                    .object([
                        JSONMember("kty", text("EC")), JSONMember("crv", text("P-256")),
                        JSONMember("x", text(Base64URL.encode(key.x))), JSONMember("y", text(Base64URL.encode(key.y))),
                    ]))),
        ]
        var claims = [
            JSONMember("jti", text(Base64URL.encode(random))), JSONMember("htm", text(method)),
            JSONMember("htu", text(address)), JSONMember("iat", JSONValue(.integer(time))),
        ]
        if let token { claims.append(JSONMember("ath", text(Self.hash(of: token)))) }
        if let nonce { claims.append(JSONMember("nonce", text(nonce))) }
        let parts = [header, claims].map { Base64URL.encode(JSONValue(.object($0)).serialized.utf8) }
        let signed = parts.joined(separator: ".")
        return key.signature(of: Array(signed.utf8)).map { "\(signed).\(Base64URL.encode($0))" }
    }

    /// The thumbprint of the public key (RFC 7638 §3).
    package static func thumbprint(of key: ES256Key) -> String {
        let (x, y) = (Base64URL.encode(key.x), Base64URL.encode(key.y))
        return Base64URL.encode(
            Digest.sha256.hash(Array(#"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#.utf8)))
    }

    /// `ath`: the hash of an access token.
    static func hash(of token: Secret) -> String { Base64URL.encode(token.withBytes { Digest.sha256.hash($0) }) }
}
