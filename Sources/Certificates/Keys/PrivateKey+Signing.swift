// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

/// Signatures and public keys in the forms of JSON Web Signature (RFC 7515) and JSON Web Key (RFC 7517).
extension PrivateKey {
    /// The ES256 signature of `message` (RFC 7518 §3.4): 64 bytes, both numbers in network order. Throws `unsupported`
    /// unless the key is on P-256. Blocks while a token makes the signature.
    package func es256Signature(of message: [UInt8]) throws(CertificateError) -> [UInt8] {
        guard kind == .ec(curve: "P-256") else {
            throw CertificateError(.unsupported, "ES256 needs a key on P-256, not \(kind)")
        }
        ERR_clear_error()
        guard let der = withPKEY({ Self.signature(of: message, $0) }) else { throw .openSSL(.unavailable, "signing") }
        let numbers = try DERItem.single(der, tag: DERItem.sequence).items()
        guard numbers.count == 2 else { throw CertificateError(.unavailable, "signing") }
        return numbers.flatMap { number in
            let digits = number.content.drop { $0 == 0 }
            return [UInt8](repeating: 0, count: 32 - digits.count) + digits
        }
    }

    /// The RS256 signature of `message` (RFC 7518 §3.3). Throws `unsupported` unless it is an RSA key. Blocks while a
    /// token makes the signature.
    package func rs256Signature(of message: [UInt8]) throws(CertificateError) -> [UInt8] {
        guard case .rsa = kind else { throw CertificateError(.unsupported, "RS256 needs an RSA key, not \(kind)") }
        ERR_clear_error()
        // The padding of an RSA key is that of PKCS #1 1.5 unless another one is set.
        guard let signature = withPKEY({ Self.signature(of: message, $0) }) else {
            throw .openSSL(.unavailable, "signing")
        }
        return signature
    }

    /// The coordinates of the public key, 32 bytes each (RFC 7518 §6.2.1). Throws `unsupported` unless the key is on
    /// P-256.
    package func p256Coordinates() throws(CertificateError) -> (x: [UInt8], y: [UInt8]) {
        let encoded = withPKEY { key -> [UInt8] in
            let length = i2d_PUBKEY(key, nil)
            guard kind == .ec(curve: "P-256"), length > 0 else { return [] }
            return [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, count in
                var position = buffer.baseAddress
                count = Int(max(0, i2d_PUBKEY(key, &position)))
            }
        }
        // The end of a SubjectPublicKeyInfo with both coordinates (RFC 5480 §2.2).
        guard encoded.count == 91 else {
            throw CertificateError(.unsupported, "the coordinates of a key that is not on P-256")
        }
        let point = encoded.suffix(64)
        return (Array(point.prefix(32)), Array(point.suffix(32)))
    }

    /// With SHA-256: an ECDSA-Sig-Value (RFC 3279 §2.2.3), or RSASSA-PKCS1-v1_5 (RFC 8017 §8.2).
    private static func signature(of message: [UInt8], _ key: OpaquePointer) -> [UInt8]? {
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var length = 0
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, nil, &length, message, message.count) == 1
        else { return nil }
        var signature = [UInt8](repeating: 0, count: length)
        guard EVP_DigestSign(context, &signature, &length, message, message.count) == 1 else { return nil }
        return Array(signature.prefix(length))
    }
}
