// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCOpenSSL

/// A CA that issues client identities for the demo's sites and for tests: a P-256 root, and leaves for client
/// authentication.
package struct ClientCA: Sendable {
    package let certificate: Certificate
    private let key: PrivateKey

    /// Creates a root named `commonName`, valid for two years starting one day before `time` (seconds since 1970).
    package init(commonName: String, at time: Int64) throws(CertificateError) {
        (certificate, key) = try InterceptionAuthority.makeRoot(commonName: commonName, at: time)
    }

    /// Issues a P-256 identity whose leaf has the common name `commonName` and expires `lifetime` seconds after `time`.
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
    /// The extensions of a TLS client's leaf: not a CA, digitalSignature, id-kp-clientAuth (1.3.6.1.5.5.7.3.2).
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
