// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A document in CMS SignedData with its signatures (RFC 5652 §5), in DER or BER. Each signature is verified; whether
/// the signers are trusted is up to the caller, who gets the reason against each.
package struct SignedMessage: Sendable {
    package struct Signer: Equatable, Sendable {
        package let certificate: Certificate
        /// Why the signer's certificate does not lead to an anchor; nil if it does.
        package let reason: String?
    }

    /// The signed document.
    package let content: [UInt8]
    /// At least one.
    package let signers: [Signer]

    /// Whether `bytes` can be SignedData: a SEQUENCE with the object identifier of that.
    package static func isSigned(_ bytes: [UInt8]) -> Bool {
        bytes.first == 0x30
            && bytes.prefix(32).containsSequence([
                0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02,
            ])
    }

    /// - Parameters:
    ///   - anchors: In which the signers' chains may end.
    ///   - time: In seconds since 1970.
    ///
    /// Throws `malformed` for a message that cannot be parsed, has no content or no signature, and `notPermitted` if a
    /// signature does not fit the content: the document was altered.
    package init(_ bytes: [UInt8], anchors: TrustAnchors, at time: Int64) throws(CertificateError) {
        (content, signers) = try PKCS7Message.withMessage(bytes) { message throws(CertificateError) in
            guard OBJ_obj2nid(CMS_get0_type(message)) == NID_pkcs7_signed else {
                throw CertificateError(.malformed, "the message is not signed")
            }
            let content = try Self.verifiedContent(of: message)
            return (content, try Self.signers(of: message, anchors, time))
        }
    }

    private static func verifiedContent(of message: OpaquePointer) throws(CertificateError) -> [UInt8] {
        guard CMS_get0_content(message)?.pointee != nil else {
            throw CertificateError(.malformed, "the message does not contain what it signs")
        }
        guard OPENSSL_sk_num(CMS_get0_SignerInfos(message)) > 0 else {
            throw CertificateError(.malformed, "the message has no signature")
        }
        guard let output = BIO_new(BIO_s_mem()) else { throw .openSSL(.unavailable, "a buffer in memory") }
        defer { BIO_free(output) }
        ERR_clear_error()
        // Whether the signers are trusted is reported separately.
        let flags = UInt32(CMS_BINARY | CMS_NO_SIGNER_CERT_VERIFY)
        guard CMS_verify(message, nil, nil, nil, output, flags) == 1 else {
            throw .openSSL(.notPermitted, "the signature is wrong, so the document was altered or not signed so")
        }
        let count = BIO_ctrl_pending(output)
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = max(0, Int(BIO_read(output, buffer.baseAddress, Int32(count))))
        }
    }

    private static func signers(
        of message: OpaquePointer, _ anchors: TrustAnchors, _ time: Int64
    ) throws(CertificateError) -> [Signer] {
        guard let found = CMS_get0_signers(message) else { throw .openSSL(.malformed, "the message names no signer") }
        defer { OPENSSL_sk_free(found) }
        let others = CMS_get1_certs(message)
        defer { OPENSSL_sk_pop_free(others) { $0.map { X509_free(OpaquePointer($0)) } } }
        guard OPENSSL_sk_num(others) <= PKCS7Message.maximumCertificates else {
            throw CertificateError(
                .malformed, "the message has more than \(PKCS7Message.maximumCertificates) certificates")
        }
        return (0..<max(0, OPENSSL_sk_num(found))).compactMap { index in
            OPENSSL_sk_value(found, index).map { pointer in
                let x509 = OpaquePointer(pointer)
                return Signer(
                    certificate: Certificate(retaining: x509), reason: reason(against: x509, others, anchors, time))
            }
        }
    }

    private static func reason(
        against signer: OpaquePointer, _ others: OpaquePointer?, _ anchors: TrustAnchors, _ time: Int64
    ) -> String? {
        anchors.withStore { store in
            guard let context = X509_STORE_CTX_new() else { return "out of memory" }
            defer { X509_STORE_CTX_free(context) }
            guard X509_STORE_CTX_init(context, store, signer, others) == 1 else { return "it cannot be checked" }
            let parameters = X509_STORE_CTX_get0_param(context)
            X509_VERIFY_PARAM_set_time(parameters, Int(time))
            // Profiles are signed with certificates for servers, for e-mail and for code alike.
            X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_ANY)
            X509_VERIFY_PARAM_set_auth_level(parameters, 2)
            ERR_clear_error()
            guard X509_verify_cert(context) != 1 else { return nil }
            ERR_clear_error()
            return String(cString: X509_verify_cert_error_string(Int(X509_STORE_CTX_get_error(context))))
        }
    }
}

extension RandomAccessCollection<UInt8> where Index == Int {
    fileprivate func containsSequence(_ other: [UInt8]) -> Bool {
        indices.contains { index in self[index...].starts(with: other) }
    }
}
