// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

/// A private key in memory or in a token.
///
/// Unchecked because of the pointer: an EVP_PKEY is not modified after it is read or generated, and OpenSSL locks its
/// caches.
package final class PrivateKey: @unchecked Sendable {
    private let key: OpaquePointer
    /// Nil for a key in a token.
    private let encoded: Secret?
    /// Algorithm and size.
    package let kind: KeyKind

    /// Parses exactly one PrivateKeyInfo (RFC 5208 §5) in DER. Throws `malformed` for anything else.
    package convenience init(pkcs8: Secret) throws(CertificateError) {
        ERR_clear_error()
        let key = pkcs8.withBytes { bytes -> OpaquePointer? in
            if let key = P256KeyDecoder(bytes)?.read() { return key }
            ERR_clear_error()
            let start = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
            var position = start
            guard let info = d2i_PKCS8_PRIV_KEY_INFO(nil, &position, bytes.count) else { return nil }
            defer { PKCS8_PRIV_KEY_INFO_free(info) }
            guard let start, let position, position - start == bytes.count else { return nil }
            return EVP_PKCS82PKEY(info)
        }
        guard let key else { throw .openSSL(.malformed, "not a private key in PKCS#8") }
        self.init(adopting: key, pkcs8: pkcs8)
    }

    /// Takes ownership of a key that was generated or read elsewhere.
    convenience init(adopting key: OpaquePointer) throws(CertificateError) {
        guard let pkcs8 = Self.encoding(of: key) else {
            EVP_PKEY_free(key)
            throw .openSSL(.unsupported, "a private key that cannot be written as PKCS#8")
        }
        self.init(adopting: key, pkcs8: pkcs8)
    }

    /// A copy of a key that belongs to another OSSL_LIB_CTX, made through its PKCS#8.
    static func copy(of key: OpaquePointer) throws(CertificateError) -> PrivateKey {
        guard let pkcs8 = encoding(of: key) else {
            throw .openSSL(.unsupported, "a private key that cannot be written as PKCS#8")
        }
        return try PrivateKey(pkcs8: pkcs8)
    }

    /// Takes ownership of a key that stays in its token.
    convenience init(inToken key: OpaquePointer) { self.init(adopting: key, pkcs8: nil) }

    private init(adopting key: OpaquePointer, pkcs8: Secret?) {
        self.key = key
        self.encoded = pkcs8
        self.kind = KeyKind(of: key)
    }

    deinit { EVP_PKEY_free(key) }

    /// Whether the key stays in a token. Such a key has no ``pkcs8``, and each signature blocks until the token has
    /// made it.
    package var isInToken: Bool { encoded == nil }

    /// The unencrypted PrivateKeyInfo in DER (RFC 5208 §5). Throws `unsupported` for a key in a token.
    package var pkcs8: Secret {
        get throws(CertificateError) {
            guard let encoded else { throw CertificateError(.unsupported, "the private key stays in its token") }
            return encoded
        }
    }

    /// Generates a key of that kind. RSA takes from a few hundred milliseconds to a few seconds.
    package static func generate(_ specification: KeySpecification) throws(CertificateError) -> PrivateKey {
        switch specification {
        case .ecP256: try generateEC(NID_X9_62_prime256v1)
        case .ecP384: try generateEC(NID_secp384r1)
        case .ecP521: try generateEC(NID_secp521r1)
        case .rsa2048: try generateRSA(bits: 2048)
        case .rsa3072: try generateRSA(bits: 3072)
        case .rsa4096: try generateRSA(bits: 4096)
        }
    }

    /// Generates a key on NIST P-256 for many certificates. Putting its public key into a certificate takes a fortieth
    /// of the time of a key from ``generate(_:)``, which OpenSSL encodes and decodes again through the formats of all
    /// providers.
    package static func generateP256() throws(CertificateError) -> PrivateKey {
        let key = try generate(.ecP256)
        guard let made = key.withPKEY({ csn_EVP_PKEY_as_EC_KEY($0) }) else {
            throw .openSSL(.unavailable, "key generation")
        }
        return try PrivateKey(adopting: made)
    }

    private static func generateEC(_ curve: Int32) throws(CertificateError) -> PrivateKey {
        try generate(EVP_PKEY_EC) { EVP_PKEY_CTX_set_ec_paramgen_curve_nid($0, curve) }
    }

    /// Generates an RSA key. Takes a few hundred milliseconds for 2048 bits.
    package static func generateRSA(bits: Int) throws(CertificateError) -> PrivateKey {
        guard bits >= 2048, bits <= 8192, bits.isMultiple(of: 8) else {
            throw CertificateError(.unsupported, "RSA keys must have 2048 to 8192 bits, not \(bits)")
        }
        return try generate(EVP_PKEY_RSA) { EVP_PKEY_CTX_set_rsa_keygen_bits($0, Int32(bits)) }
    }

    /// Whether the certificate is for this key.
    package func matches(_ certificate: Certificate) -> Bool {
        certificate.withX509 { x509 in
            guard let certified = X509_get0_pubkey(x509) else { return false }
            return EVP_PKEY_eq(certified, key) == 1
        }
    }

    /// Calls `body` with the EVP_PKEY, which must not be modified.
    package func withPKEY<Result, Failure: Error>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(key)
    }

    private static func generate(
        _ algorithm: Int32, _ configure: (OpaquePointer) -> Int32
    ) throws(CertificateError) -> PrivateKey {
        ERR_clear_error()
        guard let context = EVP_PKEY_CTX_new_id(algorithm, nil) else { throw .openSSL(.unavailable, "key generation") }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, configure(context) == 1, EVP_PKEY_keygen(context, &key) == 1, let key
        else { throw .openSSL(.unavailable, "key generation") }
        return try PrivateKey(adopting: key)
    }

    private static func encoding(of key: OpaquePointer) -> Secret? {
        guard let info = EVP_PKEY2PKCS8(key) else { return nil }
        defer { PKCS8_PRIV_KEY_INFO_free(info) }
        let length = i2d_PKCS8_PRIV_KEY_INFO(info, nil)
        guard length > 0 else { return nil }
        return Secret(count: Int(length)) { buffer in
            var position = buffer.assumingMemoryBound(to: UInt8.self).baseAddress
            i2d_PKCS8_PRIV_KEY_INFO(info, &position)
        }
    }
}

extension PrivateKey: CustomStringConvertible, CustomReflectable {
    package var description: String { "(private key\(isInToken ? " in a token" : ""), \(kind))" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
