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
        return try ecdsaSignature(of: message, EVP_sha256(), numberBytes: 32)
    }

    /// The ES384 signature of `message` (RFC 7518 §3.4): 96 bytes. Throws `unsupported` unless the key is on P-384.
    /// Blocks while a token makes the signature.
    package func es384Signature(of message: [UInt8]) throws(CertificateError) -> [UInt8] {
        guard kind == .ec(curve: "P-384") else {
            throw CertificateError(.unsupported, "ES384 needs a key on P-384, not \(kind)")
        }
        return try ecdsaSignature(of: message, EVP_sha384(), numberBytes: 48)
    }

    private func ecdsaSignature(
        of message: [UInt8], _ digest: OpaquePointer, numberBytes: Int
    ) throws(CertificateError) -> [UInt8] {
        ERR_clear_error()
        guard let der = withPKEY({ Self.signature(of: message, $0, digest) }) else {
            throw .openSSL(.unavailable, "signing")
        }
        let numbers = try DERItem.single(der, tag: DERItem.sequence).items()
        guard numbers.count == 2 else { throw CertificateError(.unavailable, "signing") }
        return numbers.flatMap { number in
            let digits = number.content.drop { $0 == 0 }
            return [UInt8](repeating: 0, count: numberBytes - digits.count) + digits
        }
    }

    /// The RS256 signature of `message` (RFC 7518 §3.3). Throws `unsupported` unless it is an RSA key. Blocks while a
    /// token makes the signature.
    package func rs256Signature(of message: [UInt8]) throws(CertificateError) -> [UInt8] {
        guard case .rsa = kind else { throw CertificateError(.unsupported, "RS256 needs an RSA key, not \(kind)") }
        ERR_clear_error()
        // The padding of an RSA key is that of PKCS #1 1.5 unless another one is set.
        guard let signature = withPKEY({ Self.signature(of: message, $0, EVP_sha256()) }) else {
            throw .openSSL(.unavailable, "signing")
        }
        return signature
    }

    /// The PS256 signature of `message` (RFC 7518 §3.5). Throws `unsupported` unless it is an RSA key. Blocks while a
    /// token makes the signature.
    package func ps256Signature(of message: [UInt8]) throws(CertificateError) -> [UInt8] {
        switch kind {
        case .rsa, .rsaPSS: break
        case .ec, .ed25519, .ed448, .dsa, .other:
            throw CertificateError(.unsupported, "PS256 needs an RSA key, not \(kind)")
        }
        ERR_clear_error()
        guard let signature = withPKEY({ Self.signature(of: message, $0, EVP_sha256(), usesPSS: true) }) else {
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

    /// An ECDSA-Sig-Value (RFC 3279 §2.2.3), RSASSA-PKCS1-v1_5 (RFC 8017 §8.2), or RSASSA-PSS (§8.1) with a salt of the
    /// digest's length.
    private static func signature(
        of message: [UInt8], _ key: OpaquePointer, _ digest: OpaquePointer, usesPSS: Bool = false
    ) -> [UInt8]? {
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var length = 0
        var parameters: OpaquePointer?
        guard EVP_DigestSignInit(context, &parameters, digest, nil, key) == 1 else { return nil }
        if usesPSS {
            guard EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) == 1,
                EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST) == 1
            else { return nil }
        }
        guard EVP_DigestSign(context, nil, &length, message, message.count) == 1 else { return nil }
        var signature = [UInt8](repeating: 0, count: length)
        guard EVP_DigestSign(context, &signature, &length, message, message.count) == 1 else { return nil }
        return Array(signature.prefix(length))
    }
}
