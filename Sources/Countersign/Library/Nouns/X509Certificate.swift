// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
public import FoundationEssentials

/// An X.509 certificate (RFC 5280 §4.1), for inspection, comparison and display.
public struct X509Certificate: Hashable, Sendable {
    let certificate: Certificate

    init(_ certificate: Certificate) {
        self.certificate = certificate
    }

    /// Parses one certificate in DER or PEM. Throws ``ChallengeError`` with the code `certificateFaulty`.
    public init(_ encoded: Data) throws(ChallengeError) {
        do throws(CertificateError) {
            let found = try IdentityFile.readCertificates(Array(encoded))
            guard let only = found.first, found.count == 1 else {
                throw CertificateError(.malformed, "\(found.count) certificates instead of one")
            }
            certificate = only
        } catch {
            throw ChallengeError(.certificateFaulty, error.detail, fault: .caller)
        }
    }

    /// The certificate in DER encoding.
    public var der: [UInt8] { certificate.der }

    /// The certificate in PEM encoding, from `BEGIN CERTIFICATE` to `END CERTIFICATE` (RFC 7468 §5).
    public var pem: String { certificate.pem }

    /// The SHA-256 fingerprint as `sha256:` and 64 lower-case hexadecimal digits, as accepted by `countersign trust
    /// allow --fingerprint`.
    public var fingerprint: String { certificate.fingerprintText }

    /// The subject for display, most specific part first, in the format of RFC 2253.
    public var subject: String { certificate.subject }

    /// The issuer for display, most specific part first, in the format of RFC 2253.
    public var issuer: String { certificate.issuer }

    /// The start of the validity period.
    public var notBefore: Date { Date(seconds: certificate.notBefore) }

    /// The end of the validity period, inclusive.
    public var notAfter: Date { Date(seconds: certificate.notAfter) }
}

extension X509Certificate: CustomStringConvertible {
    /// The subject, or the fingerprint if there is no subject.
    public var description: String { certificate.description }
}
