// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// An authority that issues client identities, for the demo's sites and for tests: a root on P-256, and leaves for
/// clientAuth.
package struct ClientAuthority: Sendable {
    package let certificate: Certificate
    private let key: PrivateKey

    /// A new root called `commonName`, valid for two years from a day before `time`, in seconds since 1970.
    package init(commonName: String, at time: Int64) throws(CertificateError) {
        (certificate, key) = try InterceptionAuthority.makeRoot(commonName: commonName, at: time)
    }

    /// An identity on P-256 whose leaf has the common name `commonName` and lives for `lifetime` seconds from `time`.
    package func issue(
        _ name: String, commonName: String, lifetime: Int64, at time: Int64
    ) throws(CertificateError) -> Identity {
        let leafKey = try PrivateKey.generateP256()
        let template = CertificateTemplate(
            subject: .parts(organization: "Countersign", commonName: commonName),
            serial: InterceptionAuthority.newSerial(), notBefore: time - InterceptionAuthority.backdating,
            notAfter: min(time + lifetime, certificate.notAfter), extensions: CertificateTemplate.Extension.client)
        let leaf = try template.signed(for: leafKey, issuer: certificate, signer: key)
        return try Identity(name: name, chain: [leaf, certificate], key: leafKey)
    }
}

extension CertificateTemplate.Extension {
    /// A TLS client's own: no authority, signs handshakes, id-kp-clientAuth (1.3.6.1.5.5.7.3.2).
    static var client: [Self] {
        [
            Self(identifier: NID_basic_constraints, isCritical: true, value: DEREncoding.sequence([])),
            Self(identifier: NID_key_usage, isCritical: true, value: DEREncoding.namedBits(0b1000_0000)),
            Self(
                identifier: NID_ext_key_usage,
                value: DEREncoding.sequence([[0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02]])),
        ]
    }
}
