// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A public key given by its numbers, which verifies signatures.
///
/// Unchecked because of the pointer: an EVP_PKEY is not modified after it is read, and OpenSSL locks its caches.
package final class VerificationKey: @unchecked Sendable {
    package enum Curve: String, Sendable, Equatable {
        case p256 = "P-256"
        case p384 = "P-384"
        case p521 = "P-521"

        /// The length of a coordinate.
        package var coordinateBytes: Int {
            switch self {
            case .p256: 32
            case .p384: 48
            case .p521: 66
            }
        }

        /// The object identifier's content in DER (RFC 5480 §2.1.1.1).
        fileprivate var identifier: [UInt8] {
            switch self {
            case .p256: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
            case .p384: [0x2B, 0x81, 0x04, 0x00, 0x22]
            case .p521: [0x2B, 0x81, 0x04, 0x00, 0x23]
            }
        }
    }

    package enum Kind: Sendable, Equatable {
        case rsa
        case ec(Curve)
        case ed25519
    }

    /// A signature algorithm and its parameters.
    package enum Scheme: Sendable, Equatable {
        /// RSASSA-PKCS1-v1_5 (RFC 8017 §8.2).
        case rsaPKCS1(Digest)
        /// RSASSA-PSS (RFC 8017 §8.1) with MGF1 of the same hash function and a salt as long as the digest.
        case rsaPSS(Digest)
        /// ECDSA. The signature is both numbers in network order, each as long as a coordinate (RFC 7518 §3.4).
        case ecdsa(Digest)
        /// RFC 8032.
        case ed25519
    }

    package let kind: Kind
    private let key: OpaquePointer

    /// The sizes of RSA keys, in bits, that are accepted. A longer key would make each verification expensive.
    package static let rsaBits = 2048...8192

    /// An RSA key from its numbers in network order; zeros may precede them. Throws `invalidParameter` for a modulus
    /// outside ``rsaBits`` and for an exponent that is even, 1 or longer than 64 bits.
    package convenience init(rsaModulus modulus: [UInt8], exponent: [UInt8]) throws(CryptographyError) {
        let modulus = Array(modulus.drop { $0 == 0 })
        let exponent = Array(exponent.drop { $0 == 0 })
        let bits = modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)
        guard Self.rsaBits.contains(bits) else {
            throw CryptographyError(.invalidParameter, "an RSA key of \(bits) bits")
        }
        guard let last = exponent.last, last & 1 == 1, exponent != [1], exponent.count <= 8 else {
            throw CryptographyError(.invalidParameter, "the exponent of an RSA key")
        }
        let numbers = DER.sequence(DER.integer(modulus) + DER.integer(exponent))
        // rsaEncryption with NULL (RFC 3279 §2.3.1).
        let algorithm = DER.identifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]) + [0x05, 0x00]
        try self.init(.rsa, algorithm: algorithm, numbers)
    }

    /// A key on a curve from a point's coordinates. Throws `invalidParameter` for coordinates of another length and for
    /// a point that is not on the curve.
    package convenience init(_ curve: Curve, x: [UInt8], y: [UInt8]) throws(CryptographyError) {
        guard x.count == curve.coordinateBytes, y.count == curve.coordinateBytes else {
            throw CryptographyError(.invalidParameter, "the coordinates of a key on \(curve.rawValue)")
        }
        // id-ecPublicKey with the curve (RFC 5480 §2.1.1).
        let algorithm =
            DER.identifier([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]) + DER.identifier(curve.identifier)
        try self.init(.ec(curve), algorithm: algorithm, [0x04] + x + y)
    }

    /// An Ed25519 key (RFC 8032 §5.1.5). Throws `invalidParameter` for another length than 32 bytes.
    package convenience init(ed25519 bytes: [UInt8]) throws(CryptographyError) {
        guard bytes.count == 32 else { throw CryptographyError(.invalidParameter, "the length of an Ed25519 key") }
        try self.init(.ed25519, algorithm: DER.identifier([0x2B, 0x65, 0x70]), bytes)
    }

    /// From the parts of a SubjectPublicKeyInfo (RFC 5280 §4.1).
    private init(_ kind: Kind, algorithm: [UInt8], _ bits: [UInt8]) throws(CryptographyError) {
        ERR_clear_error()
        let encoded = DER.sequence(DER.sequence(algorithm) + DER.bitString(bits))
        let key = encoded.withUnsafeBufferPointer { encoded in
            var position = encoded.baseAddress
            return d2i_PUBKEY(nil, &position, encoded.count)
        }
        guard let key else { throw CryptographyError(.invalidParameter, "a public key") }
        self.key = key
        self.kind = kind
    }

    deinit { EVP_PKEY_free(key) }

    /// Whether `signature` is this key's signature of `message`. False if the scheme is for another kind of key.
    package func verifies(_ signature: [UInt8], of message: [UInt8], _ scheme: Scheme) -> Bool {
        ERR_clear_error()
        defer { ERR_clear_error() }
        switch (scheme, kind) {
        case (.rsaPKCS1(let digest), .rsa):
            return verifies(signature, of: message, digest) {
                EVP_PKEY_CTX_set_rsa_padding($0, RSA_PKCS1_PADDING) == 1
            }
        case (.rsaPSS(let digest), .rsa):
            return verifies(signature, of: message, digest) {
                EVP_PKEY_CTX_set_rsa_padding($0, RSA_PKCS1_PSS_PADDING) == 1
                    && EVP_PKEY_CTX_set_rsa_mgf1_md($0, digest.evp) == 1
                    && EVP_PKEY_CTX_set_rsa_pss_saltlen($0, Int32(digest.lengthBytes)) == 1
            }
        case (.ecdsa(let digest), .ec(let curve)):
            guard signature.count == 2 * curve.coordinateBytes else { return false }
            let numbers =
                DER.integer(Array(signature.prefix(curve.coordinateBytes)))
                + DER.integer(Array(signature.suffix(curve.coordinateBytes)))
            return verifies(DER.sequence(numbers), of: message, digest) { _ in true }
        case (.ed25519, .ed25519):
            return signature.count == 64 && verifies(signature, of: message, nil) { _ in true }
        case (.rsaPKCS1, .ec), (.rsaPKCS1, .ed25519), (.rsaPSS, .ec), (.rsaPSS, .ed25519), (.ecdsa, .rsa),
            (.ecdsa, .ed25519), (.ed25519, .rsa), (.ed25519, .ec):
            return false
        }
    }

    private func verifies(
        _ signature: [UInt8], of message: [UInt8], _ digest: Digest?, _ configure: (OpaquePointer) -> Bool
    ) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        // Belongs to `context`.
        var parameters: OpaquePointer?
        guard EVP_DigestVerifyInit(context, &parameters, digest?.evp, nil, key) == 1, let parameters,
            configure(parameters)
        else { return false }
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
}

/// The few DER encodings (X.690 §8) that a public key and an ECDSA signature need.
private enum DER {
    static func sequence(_ content: [UInt8]) -> [UInt8] { item(0x30, content) }

    static func identifier(_ content: [UInt8]) -> [UInt8] { item(0x06, content) }

    static func bitString(_ content: [UInt8]) -> [UInt8] { item(0x03, [0] + content) }

    /// A number that is not negative, in network order.
    static func integer(_ number: [UInt8]) -> [UInt8] {
        let digits = Array(number.drop { $0 == 0 })
        return item(0x02, digits.first.map { $0 < 0x80 } ?? false ? digits : [0] + digits)
    }

    private static func item(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        if count < 0x80 { return [tag, UInt8(count)] + content }
        if count < 0x100 { return [tag, 0x81, UInt8(count)] + content }
        precondition(count < 0x10000)
        return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xFF)] + content
    }
}
