// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// One certificate (RFC 5280 §4.1), to be looked at, compared and shown to people.
public struct X509Certificate: Hashable, Sendable {
    let certificate: Certificate

    init(_ certificate: Certificate) {
        self.certificate = certificate
    }

    /// The certificate as it travels.
    public var der: [UInt8] { certificate.der }

    /// The certificate between `BEGIN CERTIFICATE` and `END CERTIFICATE` (RFC 7468 §5).
    public var pem: String { certificate.pem }

    /// `sha256:` and 64 lower-case digits, as `countersign trust allow --fingerprint` takes it.
    public var fingerprint: String { certificate.fingerprintText }

    /// The subject for people, most specific part first, escaped as in RFC 2253.
    public var subject: String { certificate.subject }

    /// The issuer for people, most specific part first, escaped as in RFC 2253.
    public var issuer: String { certificate.issuer }

    /// The first moment at which it is valid, in seconds since 1970.
    public var notBefore: Int64 { certificate.notBefore }

    /// The last moment at which it is valid, in seconds since 1970.
    public var notAfter: Int64 { certificate.notAfter }
}

extension X509Certificate: CustomStringConvertible {
    /// The subject, or the fingerprint of a certificate without one.
    public var description: String { certificate.description }
}
