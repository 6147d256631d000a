// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

extension Certificate {
    /// All certificates of a PEM text (RFC 7468 §5), in their order. Ignores other blocks and text between blocks.
    /// Throws `malformed` if a certificate cannot be read, `noCertificate` without any.
    package static func readPEM(_ text: [UInt8]) throws(CertificateError) -> [Certificate] {
        ERR_clear_error()
        guard let count = Int32(exactly: text.count) else {
            throw CertificateError(.malformed, "\(text.count) bytes are too many for a PEM text")
        }
        let (certificates, complete) = text.withUnsafeBytes { bytes -> ([Certificate], Bool) in
            guard count > 0, let input = BIO_new_mem_buf(bytes.baseAddress, count) else { return ([], true) }
            defer { BIO_free(input) }
            var certificates: [Certificate] = []
            // Without a callback, OpenSSL asks the terminal for the pass phrase of a certificate that says it is
            // encrypted.
            while let x509 = PEM_read_bio_X509(input, nil, { _, _, _, _ in -1 }, nil) {
                certificates.append(Certificate(retaining: x509))
                X509_free(x509)
            }
            return (certificates, isEndOfPEM(ERR_peek_last_error()))
        }
        guard complete else {
            throw .openSSL(.malformed, "certificate \(certificates.count + 1) of the PEM text cannot be read")
        }
        ERR_clear_error()
        guard !certificates.isEmpty else { throw CertificateError(.noCertificate, "no certificate in the PEM text") }
        return certificates
    }

    /// The certificate as one PEM block with a final line break.
    package var pem: String {
        "-----BEGIN CERTIFICATE-----\n" + Base64.encodeLines(der) + "-----END CERTIFICATE-----\n"
    }
}

/// Whether OpenSSL's error code means that there is no further block, and nothing else.
func isEndOfPEM(_ code: UInt) -> Bool {
    code == 0 || (code >> 23 & 0xFF == UInt(ERR_LIB_PEM) && code & 0x7F_FFFF == UInt(PEM_R_NO_START_LINE))
}
