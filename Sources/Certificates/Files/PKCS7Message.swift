// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

/// The message in which an EST server sends certificates: CMS SignedData without content or signatures (RFC 5272 §4.1,
/// RFC 5652 §5), in DER or BER. The message itself is not authenticated.
package enum PKCS7Message {
    /// The maximum message size.
    package static let maximumBytes = 1 << 20
    /// The maximum number of certificates in a message.
    package static let maximumCertificates = 64

    /// The certificates in the order of the message. Throws `malformed` if it cannot be parsed or exceeds a limit,
    /// `noCertificate` if it is empty.
    package static func certificates(inPKCS7 der: [UInt8]) throws(CertificateError) -> [Certificate] {
        try withMessage(der) { message throws(CertificateError) in try certificates(in: message) }
    }

    /// Calls `body` with the CMS_ContentInfo of exactly one message.
    static func withMessage<Result>(
        _ der: [UInt8], _ body: (OpaquePointer) throws(CertificateError) -> Result
    ) throws(CertificateError) -> Result {
        guard der.count <= maximumBytes else {
            throw CertificateError(.malformed, "\(der.count) bytes are too many for a PKCS#7 message")
        }
        ERR_clear_error()
        let (parsed, rest) = der.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            let message = d2i_CMS_ContentInfo(nil, &position, buffer.count)
            let read = buffer.baseAddress.flatMap { start in position.map { $0 - start } } ?? 0
            return (message, buffer.count - read)
        }
        guard let message = parsed else { throw .openSSL(.malformed, "not a PKCS#7 message") }
        defer { CMS_ContentInfo_free(message) }
        guard rest == 0 else { throw CertificateError(.malformed, "\(rest) extra bytes after the PKCS#7 message") }
        return try body(message)
    }

    /// The labels of a PEM block (RFC 7468 §8, §9) with such a message.
    static let labels = ["PKCS7", "CMS"]

    /// The certificates of all messages in a PEM text, in their order. Ignores other blocks. Throws like
    /// ``certificates(inPKCS7:)``.
    static func certificates(inPEM text: [UInt8]) throws(CertificateError) -> [Certificate] {
        var certificates: [Certificate] = []
        var message: [UInt8]?
        for line in text.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            if labels.contains(where: { line.starts(with: "-----BEGIN \($0)-----".utf8) }) {
                message = []
            } else if line.starts(with: "-----END ".utf8), let base64 = message {
                message = nil
                guard let der = Base64.decode(String(decoding: base64, as: UTF8.self)) else {
                    throw CertificateError(.malformed, "a PKCS#7 block of the PEM text is not Base64")
                }
                certificates += try Self.certificates(inPKCS7: der)
            } else {
                message?.append(contentsOf: line.filter { $0 > 0x20 })
            }
        }
        return certificates
    }

    private static func certificates(in message: OpaquePointer) throws(CertificateError) -> [Certificate] {
        guard OBJ_obj2nid(CMS_get0_type(message)) == NID_pkcs7_signed else {
            throw CertificateError(.malformed, "the PKCS#7 message is not SignedData")
        }
        guard let found = CMS_get1_certs(message) else {
            ERR_clear_error()
            throw CertificateError(.noCertificate, "no certificate in the PKCS#7 message")
        }
        defer { OPENSSL_sk_pop_free(found) { $0.map { X509_free(OpaquePointer($0)) } } }
        let count = OPENSSL_sk_num(found)
        guard count > 0 else { throw CertificateError(.noCertificate, "no certificate in the PKCS#7 message") }
        guard count <= maximumCertificates else {
            throw CertificateError(
                .malformed, "\(count) certificates in the PKCS#7 message, the limit is \(maximumCertificates)")
        }
        var certificates: [Certificate] = []
        for index in 0..<count {
            guard let x509 = OPENSSL_sk_value(found, index).map({ OpaquePointer($0) }) else { continue }
            certificates.append(try Certificate(der: derBytes { i2d_X509(x509, $0) }))
        }
        return certificates
    }
}
