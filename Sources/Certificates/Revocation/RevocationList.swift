// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// A certificate revocation list (RFC 5280 §5): a local one, or one that was fetched from a distribution point.
///
/// Unchecked because of the pointer: an X509_CRL is not modified after parsing, except for the sorting of its entries,
/// which OpenSSL locks.
package final class RevocationList: @unchecked Sendable {
    private let crl: OpaquePointer

    /// All lists in the bytes: one in DER, or the `X509 CRL` blocks of a PEM text (RFC 7468 §6) in their order,
    /// ignoring other blocks. Throws `malformed` if one cannot be read, or if the bytes contain none. Signature and
    /// dates are checked during verification of a chain.
    package static func read(_ bytes: [UInt8]) throws(CertificateError) -> [RevocationList] {
        ERR_clear_error()
        return bytes.first == 0x30 ? [try readDER(bytes)] : try readPEM(bytes)
    }

    /// Takes ownership of the X509_CRL.
    private init(adopting crl: OpaquePointer) { self.crl = crl }

    /// Retains an X509_CRL that was parsed elsewhere.
    init(retaining crl: OpaquePointer) {
        X509_CRL_up_ref(crl)
        self.crl = crl
    }

    deinit { X509_CRL_free(crl) }

    private static func readDER(_ bytes: [UInt8]) throws(CertificateError) -> RevocationList {
        let parsed = bytes.withUnsafeBufferPointer { buffer -> (OpaquePointer?, isWhole: Bool) in
            var position = buffer.baseAddress
            let crl = d2i_X509_CRL(nil, &position, buffer.count)
            return (crl, position == buffer.baseAddress.map { $0 + buffer.count })
        }
        guard let crl = parsed.0 else { throw .openSSL(.malformed, "not a revocation list") }
        let list = RevocationList(adopting: crl)
        guard parsed.isWhole else {
            throw CertificateError(.malformed, "not a revocation list: followed by something else")
        }
        return list
    }

    private static func readPEM(_ text: [UInt8]) throws(CertificateError) -> [RevocationList] {
        guard let count = Int32(exactly: text.count) else {
            throw CertificateError(.malformed, "\(text.count) bytes are too many for a PEM text")
        }
        let (lists, isComplete) = text.withUnsafeBytes { bytes -> ([RevocationList], Bool) in
            guard count > 0, let input = BIO_new_mem_buf(bytes.baseAddress, count) else { return ([], true) }
            defer { BIO_free(input) }
            var lists: [RevocationList] = []
            // Without a callback, OpenSSL asks the terminal for the pass phrase of a list that says it is encrypted.
            while let crl = PEM_read_bio_X509_CRL(input, nil, { _, _, _, _ in -1 }, nil) {
                lists.append(RevocationList(adopting: crl))
            }
            return (lists, isEndOfPEM(ERR_peek_last_error()))
        }
        guard isComplete else {
            throw .openSSL(.malformed, "revocation list \(lists.count + 1) of the PEM text cannot be read")
        }
        ERR_clear_error()
        guard !lists.isEmpty else { throw CertificateError(.malformed, "no revocation list in the PEM text") }
        return lists
    }

    /// Seconds since 1970; nil for a malformed date.
    package var thisUpdate: Int64? { Certificate.seconds(of: X509_CRL_get0_lastUpdate(crl)) }

    /// Seconds since 1970; nil if the list has no such date.
    package var nextUpdate: Int64? { Certificate.seconds(of: X509_CRL_get0_nextUpdate(crl)) }

    /// Whether the list has the certificate's issuer and serial number.
    func revokes(_ certificate: Certificate) -> Bool {
        certificate.withX509 { x509 in
            var entry: OpaquePointer?
            return X509_CRL_get0_by_cert(crl, &entry, x509) == 1
        }
    }

    /// Whether one of the certificates with the name of the list's issuer has signed the list, or no such certificate
    /// is known.
    func isGenuine(knowing certificates: some Sequence<Certificate>) -> Bool {
        defer { ERR_clear_error() }
        let issuers = certificates.filter { certificate in
            certificate.withX509 { X509_NAME_cmp(X509_get_subject_name($0), X509_CRL_get_issuer(crl)) } == 0
        }
        return issuers.isEmpty
            || issuers.contains { issuer in
                issuer.withX509 { x509 in
                    X509_get0_pubkey(x509).map { X509_CRL_verify(crl, $0) == 1 } ?? false
                }
            }
    }

    /// Calls `body` with the X509_CRL, which must not be modified.
    func withCRL<Result>(_ body: (OpaquePointer) -> Result) -> Result { body(crl) }
}
