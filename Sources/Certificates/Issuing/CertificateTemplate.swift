// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

/// The contents of a certificate to sign (TBSCertificate, RFC 5280 §4.1.2).
package struct CertificateTemplate {
    /// A name from its parts, or one copied from another certificate.
    package enum Name {
        /// Organisation and common name; nil parts are omitted.
        case parts(organization: String?, commonName: String?)
        case der([UInt8])

        /// The name of a host's leaf certificate. An address is not used as common name, because clients would check it
        /// against the DNS name constraints.
        static func site(_ host: String) -> Name {
            let isCommonName = IPAddress(text: host) == nil && host.utf8.count <= maximumNameCharacters
            return .parts(organization: "Countersign", commonName: isCommonName ? host.lowercased() : nil)
        }
    }

    package struct Extension {
        let identifier: Int32
        let isCritical: Bool
        let value: [UInt8]

        package init(identifier: Int32, isCritical: Bool = false, value: [UInt8]) {
            self.identifier = identifier
            self.isCritical = isCritical
            self.value = value
        }
    }

    var subject: Name
    /// Big-endian, positive, at most 19 bytes.
    var serial: [UInt8]
    /// Seconds since 1970.
    var notBefore: Int64
    /// Seconds since 1970.
    var notAfter: Int64
    var extensions: [Extension]

    package init(subject: Name, serial: [UInt8], notBefore: Int64, notAfter: Int64, extensions: [Extension]) {
        self.subject = subject
        self.serial = serial
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.extensions = extensions
    }

    /// The maximum length of a common name or organisation (RFC 5280 appendix A.1).
    static let maximumNameCharacters = 64

    /// A certificate for `key`, signed by `signer` in the name of `issuer`, or self-issued if that is nil. Adds the key
    /// identifiers. ECDSA and RSA sign with SHA-256.
    package func signed(
        for key: PrivateKey, issuer: Certificate?, signer: PrivateKey
    ) throws(CertificateError) -> Certificate {
        ERR_clear_error()
        guard let x509 = X509_new() else { throw .openSSL(.unavailable, "making a certificate") }
        defer { X509_free(x509) }
        guard X509_set_version(x509, 2) == 1, set(serialOf: x509), set(datesOf: x509),
            key.withPKEY({ X509_set_pubkey(x509, $0) }) == 1,
            set(subjectOf: x509), set(issuerOf: x509, issuer)
        else { throw .openSSL(.unavailable, "making a certificate") }
        let ownIdentifier = Self.keyIdentifier(of: x509)
        let issuerIdentifier = issuer.map { $0.keyIdentifier } ?? ownIdentifier
        let identifiers = [
            Extension(identifier: NID_subject_key_identifier, value: DEREncoding.octets(ownIdentifier)),
            Extension(
                identifier: NID_authority_key_identifier,
                value: DEREncoding.sequence([DEREncoding.tagged(0, issuerIdentifier)])),
        ]
        for item in extensions + identifiers where !add(item, to: x509) {
            throw .openSSL(.unavailable, "making a certificate")
        }
        guard signer.withPKEY({ X509_sign(x509, $0, EVP_sha256()) }) > 0 else {
            throw .openSSL(.unavailable, "signing a certificate")
        }
        // Retained and not parsed again: parsing decodes the key, which takes as long as everything else here.
        return Certificate(retaining: x509)
    }

    private func set(serialOf x509: OpaquePointer) -> Bool {
        guard let number = BN_bin2bn(serial, Int32(serial.count), nil) else { return false }
        defer { BN_free(number) }
        return BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)) != nil
    }

    private func set(datesOf x509: OpaquePointer) -> Bool {
        ASN1_TIME_set(X509_getm_notBefore(x509), time_t(notBefore)) != nil
            && ASN1_TIME_set(X509_getm_notAfter(x509), time_t(notAfter)) != nil
    }

    private func set(subjectOf x509: OpaquePointer) -> Bool {
        switch subject {
        case .der(let bytes):
            let name = bytes.withUnsafeBufferPointer { buffer in
                var position = buffer.baseAddress
                return d2i_X509_NAME(nil, &position, buffer.count)
            }
            guard let name else { return false }
            defer { X509_NAME_free(name) }
            return X509_set_subject_name(x509, name) == 1
        case .parts(let organization, let commonName):
            // Modified in place, because X509_set_subject_name encodes and decodes its argument.
            let name = X509_get_subject_name(x509)
            for (identifier, text) in [(NID_organizationName, organization), (NID_commonName, commonName)] {
                guard let text else { continue }
                let bytes = Array(
                    String(String.UnicodeScalarView(text.unicodeScalars.prefix(Self.maximumNameCharacters))).utf8)
                guard
                    X509_NAME_add_entry_by_NID(name, identifier, MBSTRING_UTF8, bytes, Int32(bytes.count), -1, 0) == 1
                else { return false }
            }
            return true
        }
    }

    private func set(issuerOf x509: OpaquePointer, _ issuer: Certificate?) -> Bool {
        guard let issuer else { return X509_set_issuer_name(x509, X509_get_subject_name(x509)) == 1 }
        return issuer.withX509 { X509_set_issuer_name(x509, X509_get_subject_name($0)) } == 1
    }

    private func add(_ item: Extension, to x509: OpaquePointer) -> Bool {
        guard let value = ASN1_OCTET_STRING_new() else { return false }
        defer { ASN1_OCTET_STRING_free(value) }
        guard ASN1_OCTET_STRING_set(value, item.value, Int32(item.value.count)) == 1,
            let made = X509_EXTENSION_create_by_NID(nil, item.identifier, item.isCritical ? 1 : 0, value)
        else { return false }
        defer { X509_EXTENSION_free(made) }
        return X509_add_ext(x509, made, -1) == 1
    }

    /// The first 20 bytes of SHA-256 over the public key's bits (RFC 7093 §2).
    fileprivate static func keyIdentifier(of x509: OpaquePointer) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 0
        X509_pubkey_digest(x509, EVP_sha256(), &digest, &length)
        return Array(digest.prefix(20))
    }
}

extension CertificateTemplate.Extension {
    /// The extensions of a CA certificate that signs certificates and revocation lists. With `pathLength` 0, it cannot
    /// issue further CA certificates.
    static func certificationAuthority(pathLength: UInt8) -> [Self] {
        [
            Self(
                identifier: NID_basic_constraints, isCritical: true,
                value: DEREncoding.sequence([DEREncoding.isTrue, DEREncoding.integer(pathLength)])),
            Self(identifier: NID_key_usage, isCritical: true, value: DEREncoding.namedBits(0b0000_0110)),
        ]
    }

    /// The extensions of a server certificate: not a CA, signs handshakes.
    static var server: [Self] {
        [
            Self(identifier: NID_basic_constraints, isCritical: true, value: DEREncoding.sequence([])),
            Self(identifier: NID_key_usage, isCritical: true, value: DEREncoding.namedBits(0b1000_0000)),
            serverAuthentication,
        ]
    }

    /// The subject alternative name of one host, an IP address or a name (RFC 5280 §4.2.1.6).
    static func alternativeName(_ host: String) -> Self {
        let name =
            IPAddress(text: host).map { DEREncoding.tagged(7, $0.bytes) }
            ?? DEREncoding.tagged(2, Array(host.lowercased().utf8))
        return Self(identifier: NID_subject_alt_name, value: DEREncoding.sequence([name]))
    }

    /// id-kp-serverAuth, 1.3.6.1.5.5.7.3.1.
    static var serverAuthentication: Self {
        Self(
            identifier: NID_ext_key_usage,
            value: DEREncoding.sequence([[0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01]]))
    }
}

extension Certificate {
    /// The subject key identifier, or the one that this type would generate.
    fileprivate var keyIdentifier: [UInt8] {
        withX509 { x509 in
            X509_get0_subject_key_id(x509).map { Self.bytes(of: $0) } ?? CertificateTemplate.keyIdentifier(of: x509)
        }
    }
}
