// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

extension InterceptionAuthority {
    /// 128 random bits (RFC 5280 §4.1.2.2).
    package static func newSerial() -> [UInt8] { Randomness.bytes(16) }

    /// A root certificate on P-256, valid for two years from a day before `time`. `serial` is big-endian, positive and
    /// has at most 19 bytes.
    package static func makeRoot(
        commonName: String, at time: Int64, serial: [UInt8] = newSerial()
    ) throws(CertificateError) -> (certificate: Certificate, key: PrivateKey) {
        let key = try PrivateKey.generateP256()
        let notBefore = time - backdating
        let template = CertificateTemplate(
            subject: .parts(organization: "Countersign", commonName: commonName), serial: serial,
            notBefore: notBefore, notAfter: notBefore + rootLifetime - 1,
            extensions: CertificateTemplate.Extension.certificationAuthority(pathLength: 1))
        return (try template.signed(for: key, issuer: nil, signer: key), key)
    }

    /// Issuing certificates for one new key on P-256, valid for 30 days from a day before `time` and within the root's
    /// dates. Critical name constraints limit them, together, to `hosts`; they cannot issue CA certificates, and are
    /// for serverAuth. Throws `notPermitted` if the root is not valid at `time`.
    package static func makeIssuing(
        root: Certificate, rootKey: PrivateKey, permitting hosts: [String], at time: Int64
    ) throws(CertificateError) -> (certificates: [Certificate], key: PrivateKey) {
        guard root.isValid(at: time) else {
            throw CertificateError(.notPermitted, "the interception CA's root certificate is not valid now")
        }
        let parts = try NameConstraints.parts(permitting: hosts)
        let key = try PrivateKey.generateP256()
        let notBefore = max(time - backdating, root.notBefore)
        let firstSerial = newSerial()
        var certificates: [Certificate] = []
        for (place, constraints) in parts.enumerated() {
            // Each certificate has its own name, so that clients do not confuse them.
            let part = parts.count > 1 ? " part \(place + 1)" : ""
            let template = CertificateTemplate(
                subject: .parts(
                    organization: "Countersign",
                    commonName: "Countersign interception issuer \(Hex.encode(firstSerial.prefix(4)))\(part)"),
                serial: place == 0 ? firstSerial : newSerial(),
                notBefore: notBefore, notAfter: min(notBefore + issuingLifetime - 1, root.notAfter),
                extensions: CertificateTemplate.Extension.certificationAuthority(pathLength: 0) + [
                    .serverAuthentication,
                    .init(identifier: NID_name_constraints, isCritical: true, value: constraints.der),
                ])
            certificates.append(try template.signed(for: key, issuer: root, signer: rootKey))
        }
        return (certificates, key)
    }

    /// A chain that no client trusts, to present for an origin that is not trusted: a leaf for `key` with the names and
    /// dates of `origin`, or, if that is nil, for `host` and about a week around `time`; and a one-off issuer whose
    /// common name is the first 64 characters of `issuerName` and whose key is discarded.
    package static func throwaway(
        mirroring origin: Certificate?, host: String, key: PrivateKey, issuerName: String, at time: Int64
    ) throws(CertificateError) -> [Certificate] {
        let issuerKey = try PrivateKey.generateP256()
        let notBefore = origin?.notBefore ?? time - backdating
        let notAfter = origin?.notAfter ?? notBefore + leafLifetime - 1
        let issuerTemplate = CertificateTemplate(
            subject: .parts(organization: nil, commonName: issuerName), serial: newSerial(),
            notBefore: notBefore, notAfter: notAfter,
            extensions: CertificateTemplate.Extension.certificationAuthority(pathLength: 0))
        let issuer = try issuerTemplate.signed(for: issuerKey, issuer: nil, signer: issuerKey)
        var extensions = CertificateTemplate.Extension.server
        if let origin {
            if let names = origin.extensionValue(NID_subject_alt_name) {
                extensions.append(
                    .init(identifier: NID_subject_alt_name, isCritical: names.isCritical, value: names.bytes))
            }
        } else {
            extensions.append(.alternativeName(host))
        }
        let template = CertificateTemplate(
            subject: origin.map { .der($0.subjectDER) } ?? .site(host), serial: newSerial(),
            notBefore: notBefore, notAfter: notAfter, extensions: extensions)
        return [try template.signed(for: key, issuer: issuer, signer: issuerKey), issuer]
    }
}

extension Certificate {
    /// Whether the signature verifies with `issuer`'s key.
    func isSigned(by issuer: Certificate) -> Bool {
        defer { ERR_clear_error() }
        return issuer.withX509 { X509_get0_pubkey($0) }.map { key in withX509 { X509_verify($0, key) == 1 } } ?? false
    }
}
