// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

extension Certificate {
    /// The dNSName entries of the subject alternative name (RFC 5280 §4.2.1.6), in their order. Omits entries that are
    /// not printable ASCII, because no host has such a name.
    package var dnsNames: [String] {
        alternativeNames(of: GEN_DNS).compactMap { bytes in
            bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F } ? String(decoding: bytes, as: UTF8.self) : nil
        }
    }

    /// The iPAddress entries of the subject alternative name as text, in their order. Omits entries of a length other
    /// than 4 or 16 bytes.
    package var ipAddresses: [String] {
        alternativeNames(of: GEN_IPADD).compactMap { IPAddress(bytes: $0)?.description }
    }

    /// `EC P-256`, `RSA 2048`, `Ed25519`.
    package var keyDescription: String {
        withX509 { X509_get0_pubkey($0) }.map { KeyKind(of: $0).description } ?? "unknown key"
    }

    /// The issuer's signature algorithm under OpenSSL's name: `ecdsa-with-SHA256`.
    package var signatureDescription: String {
        withX509 { OBJ_nid2ln(X509_get_signature_nid($0)) }.map { String(cString: $0) } ?? "unknown signature"
    }

    /// All subject alternative names in OpenSSL's format, such as `DNS:host.example`. The issuer controls the text:
    /// escape control characters before displaying it.
    package var alternativeNamesText: String? { extensionText(NID_subject_alt_name) }

    /// The key usage in OpenSSL's format; nil if the extension is absent.
    package var keyUsageText: String? { extensionText(NID_key_usage) }

    /// The extended key usage in OpenSSL's format; nil if the extension is absent.
    package var extendedKeyUsageText: String? { extensionText(NID_ext_key_usage) }

    private func extensionText(_ identifier: Int32) -> String? {
        withX509 { x509 in
            let index = X509_get_ext_by_NID(x509, identifier, -1)
            guard index >= 0, let found = X509_get_ext(x509, index), let output = BIO_new(BIO_s_mem()) else {
                return nil
            }
            defer {
                BIO_free(output)
                ERR_clear_error()
            }
            guard X509V3_EXT_print(output, found, 0, 0) == 1 else { return "unreadable" }
            return String(decoding: contents(ofMemory: output), as: UTF8.self)
        }
    }

    /// The DER of the SubjectPublicKeyInfo.
    package var publicKeyDER: [UInt8] {
        withX509 { x509 in derBytes { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509), $0) } }
    }

    /// Whether the basic constraints declare a CA (RFC 5280 §4.2.1.9).
    package var isCertificateAuthority: Bool {
        withX509 { X509_get_extension_flags($0) } & UInt32(EXFLAG_CA) != 0
    }

    /// Whether the key usage is absent or includes digitalSignature (RFC 5280 §4.2.1.3).
    package var allowsDigitalSignature: Bool {
        withX509 { X509_get_key_usage($0) } & UInt32(X509v3_KU_DIGITAL_SIGNATURE) != 0
    }

    /// Whether the extended key usage is absent or includes clientAuth or anyExtendedKeyUsage (RFC 5280 §4.2.1.12).
    package var allowsClientAuthentication: Bool {
        withX509 { X509_get_extended_key_usage($0) } & UInt32(XKU_SSL_CLIENT | XKU_ANYEKU) != 0
    }

    /// The certificate's hash for `tls-server-end-point` (RFC 5929 §4.1), computed with the hash function of the
    /// signature algorithm (for RSASSA-PSS, from its parameters). SHA-256 replaces MD5 and SHA-1 and is used for
    /// algorithms without a separate hash function, such as Ed25519.
    package var tlsServerEndPointHash: [UInt8] {
        withX509 { x509 in
            var hash: Int32 = NID_undef
            let known = X509_get_signature_info(x509, &hash, nil, nil, nil) == 1
            let replaced = [NID_undef, NID_md5, NID_sha1, NID_md5_sha1].contains(hash)
            guard known, !replaced, let digest = EVP_get_digestbyname(OBJ_nid2sn(hash)) else {
                return sha256Fingerprint
            }
            var length: UInt32 = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
                count = X509_digest(x509, digest, buffer.baseAddress, &length) == 1 ? Int(length) : 0
            }
            return bytes.isEmpty ? sha256Fingerprint : bytes
        }
    }

    /// The extension's value octets and whether it is critical; nil if it is absent.
    func extensionValue(_ identifier: Int32) -> (bytes: [UInt8], isCritical: Bool)? {
        withX509 { x509 in
            let index = X509_get_ext_by_NID(x509, identifier, -1)
            guard index >= 0, let found = X509_get_ext(x509, index), let value = X509_EXTENSION_get_data(found) else {
                return nil
            }
            return (Self.bytes(of: value), X509_EXTENSION_get_critical(found) == 1)
        }
    }

    private func alternativeNames(of type: Int32) -> [[UInt8]] {
        withX509 { x509 in
            guard let found = X509_get_ext_d2i(x509, NID_subject_alt_name, nil, nil) else { return [] }
            let names = OpaquePointer(found)
            defer { GENERAL_NAMES_free(names) }
            return generalNames(in: names).compactMap { name in
                var actual: Int32 = -1
                guard let value = GENERAL_NAME_get0_value(name, &actual), actual == type else { return nil }
                return Self.bytes(of: UnsafePointer(value.assumingMemoryBound(to: ASN1_STRING.self)))
            }
        }
    }

    private func generalNames(in stack: OpaquePointer) -> [UnsafePointer<GENERAL_NAME>] {
        (0..<max(0, OPENSSL_sk_num(stack))).compactMap { index in
            OPENSSL_sk_value(stack, index).map { UnsafePointer($0.assumingMemoryBound(to: GENERAL_NAME.self)) }
        }
    }
}
