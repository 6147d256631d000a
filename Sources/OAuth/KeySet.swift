// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The public keys of a provider: a JSON Web Key Set (RFC 7517 §5). Keys that cannot verify a signature here are
/// ignored, as §5 requires: other types, other curves, private or symmetric ones, too short ones, and those for
/// encryption.
package struct KeySet: Sendable {
    struct Key: Sendable {
        /// `kid` (RFC 7517 §4.5).
        let identifier: String?
        /// `alg` (§4.4). Nil if any algorithm that fits the key is permitted.
        let algorithm: String?
        let key: VerificationKey
    }

    let keys: [Key]

    /// More keys than these are not read.
    static let maximumCount = 100

    /// Throws `malformedResponse` if the text is not a key set.
    package init(parsing body: [UInt8]) throws(OAuthError) {
        let values = try OAuthError.reading("the provider's keys") { () throws(JSONError) in
            var reader = try JSONReader(try JSONParser.parse(body), "the document", .lenient)
            return try reader.array("keys")
        }
        keys = values.prefix(Self.maximumCount).compactMap { try? Self.key($0) }
    }

    /// The number of usable keys.
    package var count: Int { keys.count }

    private struct Unusable: Error {}

    private static func key(_ value: JSONValue) throws -> Key {
        var reader = try JSONReader(value, "the key", .lenient)
        if let use = try reader.stringIfPresent("use"), !use.isExactly("sig") { throw Unusable() }
        if let operations = try reader.stringsIfPresent("key_ops"), !operations.containsExactly("verify") {
            throw Unusable()
        }
        // Anyone can sign with a published private key.
        if reader.valueIfPresent("d") != nil || reader.valueIfPresent("k") != nil { throw Unusable() }
        return Key(
            identifier: try reader.stringIfPresent("kid"), algorithm: try reader.stringIfPresent("alg"),
            key: try publicKey(&reader))
    }

    /// RFC 7518 §6.2.1, §6.3.1; RFC 8037 §2.
    private static func publicKey(_ reader: inout JSONReader) throws -> VerificationKey {
        func number(_ name: String) throws -> [UInt8] {
            guard let bytes = Base64URL.decode(try reader.string(name)) else { throw Unusable() }
            return bytes
        }
        let type = try reader.string("kty")
        if type.isExactly("RSA") {
            return try VerificationKey(rsaModulus: try number("n"), exponent: try number("e"))
        }
        let curve = try reader.string("crv")
        if type.isExactly("OKP"), curve.isExactly("Ed25519") {
            return try VerificationKey(ed25519: try number("x"))
        }
        let curves: [VerificationKey.Curve] = [.p256, .p384, .p521]
        guard type.isExactly("EC"), let curve = curves.first(where: { $0.rawValue.isExactly(curve) }) else {
            throw Unusable()
        }
        return try VerificationKey(curve, x: try number("x"), y: try number("y"))
    }
}
