// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A certification request (PKCS#10, RFC 2986), signed with its own key.
package struct CertificationRequest: Sendable, Equatable {
    /// The CertificationRequest's DER.
    package let der: [UInt8]

    /// The maximum length of a challenge password (RFC 2985 §5.4.1).
    package static let maximumChallengeBytes = 255

    /// A request for a client certificate, with `attributes`, and with keyUsage digitalSignature and extendedKeyUsage
    /// clientAuth unless `attributes` has other usages. `challengePassword` is the base64 text of the channel binding
    /// (RFC 7030 §3.5). Signs with SHA-256, or with the digest of the key or `attributes`. A token may take some time.
    ///
    /// Throws `malformed` for an invalid alternative name or challenge password, `unavailable` if the key cannot sign.
    package static func make(
        subject: SubjectName, alternativeNames: [SubjectAlternativeName] = [], attributes: CSRAttributes? = nil,
        challengePassword: String? = nil, key: PrivateKey
    ) throws(CertificateError) -> CertificationRequest {
        var names: [[UInt8]] = []
        for name in alternativeNames { names.append(try name.encoded()) }
        return try make(
            subject: subject, names: names, attributes: attributes ?? CSRAttributes(),
            challengePassword: challengePassword, key: key)
    }

    /// A request for a renewal with the same subject and alternative names, byte for byte (RFC 7030 §4.2.2).
    package static func make(
        renewing certificate: Certificate, attributes: CSRAttributes? = nil, challengePassword: String? = nil,
        key: PrivateKey
    ) throws(CertificateError) -> CertificationRequest {
        var names: [[UInt8]] = []
        if let value = certificate.extensionValue(NID_subject_alt_name)?.bytes {
            names = try DERItem.single(value, tag: DERItem.sequence).items().map(\.encoding)
        }
        return try make(
            subject: SubjectName(subjectOf: certificate), names: names, attributes: attributes ?? CSRAttributes(),
            challengePassword: challengePassword, key: key)
    }

    private static func make(
        subject: SubjectName, names: [[UInt8]], attributes: CSRAttributes, challengePassword: String?, key: PrivateKey
    ) throws(CertificateError) -> CertificationRequest {
        let subject = try attributes.subject?.filled(from: subject) ?? subject
        let extensions = try extensions(names: names, hasSubject: !subject.isEmpty, attributes: attributes)
        var parts = [attribute(extensionRequest, DEREncoding.sequence(extensions.map(\.encoding)))]
        if let challengePassword { parts.append(attribute(challenge, try text(of: challengePassword))) }
        parts += attributes.attributes.map(\.encoding)
        let digest = RequestDigest(for: key.kind).map { attributes.digest ?? $0 }
        return try signed(subject, parts, digest, by: key)
    }

    /// The extensions of `attributes`, with the default usages if it has none, and the alternative names from both.
    private static func extensions(
        names: [[UInt8]], hasSubject: Bool, attributes: CSRAttributes
    ) throws(CertificateError) -> [RequestedExtension] {
        var extensions = attributes.extensions
        for own in [RequestedExtension.signing, .clientAuthentication]
        where !extensions.contains(where: { $0.name == own.name }) {
            extensions.append(own)
        }
        guard !names.isEmpty else { return extensions }
        var all = names
        var isCritical = !hasSubject
        if let index = extensions.firstIndex(where: { $0.name == RequestedExtension.subjectAlternativeName }) {
            let asked = extensions.remove(at: index)
            let askedNames = try DERItem.single(asked.value ?? [], tag: DERItem.sequence).items().map(\.encoding)
            all = askedNames + names.filter { !askedNames.contains($0) }
            isCritical = asked.isCritical
        }
        return extensions + [.alternativeNames(all, isCritical: isCritical)]
    }

    /// 1.2.840.113549.1.9.14.
    private static let extensionRequest: [UInt8] = [
        0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x0E,
    ]
    /// 1.2.840.113549.1.9.7.
    private static let challenge: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x07]

    private static func attribute(_ type: [UInt8], _ value: [UInt8]) -> [UInt8] {
        DEREncoding.sequence([type, DEREncoding.set([value])])
    }

    /// A DirectoryString.
    private static func text(of challenge: String) throws(CertificateError) -> [UInt8] {
        guard (1...maximumChallengeBytes).contains(challenge.utf8.count) else {
            throw CertificateError(
                .malformed,
                "a challenge password of \(challenge.utf8.count) bytes, expected 1 to \(maximumChallengeBytes)")
        }
        let tag = PrintableString.holds(challenge) ? DERItem.printableString : DERItem.utf8String
        return DEREncoding.string(tag: tag, challenge)
    }

    private static func signed(
        _ subject: SubjectName, _ attributes: [[UInt8]], _ digest: RequestDigest?, by key: PrivateKey
    ) throws(CertificateError) -> CertificationRequest {
        ERR_clear_error()
        guard let request = X509_REQ_new() else { throw .openSSL(.unavailable, "making a certification request") }
        defer { X509_REQ_free(request) }
        guard X509_REQ_set_version(request, 0) == 1,
            subject.withName({ X509_REQ_set_subject_name(request, $0) }) == 1,
            key.withPKEY({ X509_REQ_set_pubkey(request, $0) }) == 1,
            attributes.allSatisfy({ add($0, to: request) })
        else { throw .openSSL(.unavailable, "making a certification request") }
        guard key.withPKEY({ X509_REQ_sign(request, $0, digest?.function) }) > 0 else {
            throw .openSSL(.unavailable, "signing a certification request")
        }
        guard key.withPKEY({ X509_REQ_verify(request, $0) }) == 1 else {
            throw .openSSL(.unavailable, "the key's signature does not verify")
        }
        return CertificationRequest(der: derBytes { i2d_X509_REQ(request, $0) })
    }

    private static func add(_ attribute: [UInt8], to request: OpaquePointer) -> Bool {
        let made = attribute.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return d2i_X509_ATTRIBUTE(nil, &position, buffer.count)
        }
        guard let made else { return false }
        defer { X509_ATTRIBUTE_free(made) }
        return X509_REQ_add1_attr(request, made) == 1
    }
}

extension RequestDigest {
    fileprivate var function: OpaquePointer? {
        switch self {
        case .sha256: EVP_sha256()
        case .sha384: EVP_sha384()
        case .sha512: EVP_sha512()
        }
    }
}
