// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

/// An X.509 certificate (RFC 5280 §4.1). Certificates are equal if their DER is.
///
/// Unchecked because of the pointer: an X509 is not modified after parsing, except for OpenSSL's cache of the decoded
/// extensions, which OpenSSL locks.
package final class Certificate: @unchecked Sendable {
    private let x509: OpaquePointer
    /// The certificate's DER.
    package let der: [UInt8]

    /// Parses exactly one certificate. Throws `malformed` for missing or extra bytes and for any encoding other than
    /// DER.
    package init(der: [UInt8]) throws(CertificateError) {
        ERR_clear_error()
        let parsed = der.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            return d2i_X509(nil, &position, buffer.count)
        }
        guard let x509 = parsed else { throw .openSSL(.malformed, "not a certificate") }
        guard encoding(of: x509) == der else {
            X509_free(x509)
            throw CertificateError(.malformed, "not a certificate: not in DER, or followed by something else")
        }
        self.x509 = x509
        self.der = der
    }

    /// Retains an X509 that was parsed elsewhere.
    package init(retaining x509: OpaquePointer) {
        X509_up_ref(x509)
        self.x509 = x509
        self.der = encoding(of: x509)
    }

    deinit { X509_free(x509) }

    /// Calls `body` with the X509, which must not be modified.
    package func withX509<Result, Failure: Error>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(x509)
    }
}

/// The DER of an X509.
private func encoding(of x509: OpaquePointer) -> [UInt8] {
    derBytes { i2d_X509(x509, $0) }
}

/// The output of one of OpenSSL's i2d functions; empty if it fails.
func derBytes(_ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> [UInt8] {
    let length = write(nil)
    guard length > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, count in
        var position = buffer.baseAddress
        count = max(0, Int(write(&position)))
    }
}

extension Certificate: Hashable {
    package static func == (left: Certificate, right: Certificate) -> Bool { left.der == right.der }

    package func hash(into hasher: inout Hasher) { hasher.combine(der) }
}

extension Certificate {
    /// Whether this certificate may have issued `other`, judged by name, key identifier and key usage. Does not verify
    /// the signature.
    func issued(_ other: Certificate) -> Bool {
        defer { ERR_clear_error() }
        return other.withX509 { X509_check_issued(x509, $0) } == X509_V_OK
    }
}

extension Certificate: CustomStringConvertible {
    /// The subject, or the fingerprint of a certificate without one.
    package var description: String { subject.isEmpty ? fingerprintText : subject }
}

// MARK: Fields

extension Certificate {
    /// SHA-256 of the DER.
    package var sha256Fingerprint: [UInt8] { Digest.sha256.hash(der) }

    /// `sha256:` and 64 lower-case digits.
    package var fingerprintText: String { CertificateFingerprint.text(sha256Fingerprint) }

    /// The subject as text, most specific part first, escaped as in RFC 2253.
    package var subject: String { Self.text(of: X509_get_subject_name(x509)) }

    /// The issuer as text, most specific part first, escaped as in RFC 2253.
    package var issuer: String { Self.text(of: X509_get_issuer_name(x509)) }

    /// The subject's DER, which is the form of names in a CertificateRequest (RFC 8446 §4.2.4).
    package var subjectDER: [UInt8] { derBytes { i2d_X509_NAME(X509_get_subject_name(x509), $0) } }

    /// The issuer's DER.
    package var issuerDER: [UInt8] { derBytes { i2d_X509_NAME(X509_get_issuer_name(x509), $0) } }

    /// The serial number's magnitude in lower-case digits, with `-` before a negative one.
    package var serialNumberHex: String {
        guard let serial = X509_get0_serialNumber(x509) else { return "" }
        let digits = Hex.encode(Self.bytes(of: serial))
        return ASN1_STRING_type(serial) == V_ASN1_NEG_INTEGER ? "-" + digits : digits
    }

    /// Seconds since 1970.
    package var notBefore: Int64 { Self.seconds(of: X509_get0_notBefore(x509)) ?? .max }

    /// Seconds since 1970.
    package var notAfter: Int64 { Self.seconds(of: X509_get0_notAfter(x509)) ?? .min }

    /// Whether `time` is between the dates, inclusive (RFC 5280 §4.1.2.5).
    package func isValid(at time: Int64) -> Bool { notBefore <= time && time <= notAfter }

    static func text(of name: OpaquePointer?) -> String {
        guard let name, let output = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(output) }
        guard X509_NAME_print_ex(output, name, 0, csn_XN_FLAG_RFC2253_UTF8()) >= 0 else { return "" }
        return String(decoding: contents(ofMemory: output), as: UTF8.self)
    }

    /// Seconds since 1970; nil for a malformed time.
    static func seconds(of time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        guard let time, let epoch = ASN1_TIME_set(nil, 0) else { return nil }
        defer { ASN1_STRING_free(epoch) }
        var days: Int32 = 0
        var seconds: Int32 = 0
        guard ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
        return Int64(days) * 86_400 + Int64(seconds)
    }

    /// The content octets of an ASN.1 string or integer.
    static func bytes(of string: UnsafePointer<ASN1_STRING>) -> [UInt8] {
        Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(string), count: max(0, Int(ASN1_STRING_length(string)))))
    }
}

/// The bytes in a memory BIO.
func contents(ofMemory bio: OpaquePointer) -> [UInt8] {
    var start: UnsafeMutableRawPointer?
    let length = BIO_ctrl(bio, BIO_CTRL_INFO, 0, &start)
    return Array(UnsafeRawBufferPointer(start: start, count: max(0, length)))
}
