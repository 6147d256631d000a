// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCryptography

extension InterceptionAuthority {
    /// 128 random bits (RFC 5280 §4.1.2.2).
    package static func newSerial() -> [UInt8] { Randomness.bytes(16) }

    /// A root on P-256 for two years, of which a day is past; `serial` is big-endian, positive, 19 bytes at most.
    package static func makeRoot(
        commonName: String, at time: Int64, serial: [UInt8] = newSerial()
    ) throws(CertificateError) -> (certificate: Certificate, key: PrivateKey) {
        let key = try PrivateKey.generateP256()
        let notBefore = time - backdating
        let template = CertificateTemplate(
            subject: .parts(organization: "Countersign", commonName: commonName), serial: serial,
            notBefore: notBefore, notAfter: notBefore + rootLifetime - 1,
            extensions: CertificateTemplate.Extension.authority(pathLength: 1))
        return (try template.signed(for: key, issuer: nil, signer: key), key)
    }

    /// Issuing certificates of one key on P-256 for 30 days, of which a day is past, within the root's dates and together for
    /// `hosts` only: critical name constraints, no authority below them, serverAuth. `notPermitted` when the root is not valid
    /// at `time`.
    package static func makeIssuing(
        root: Certificate, rootKey: PrivateKey, permitting hosts: [String], at time: Int64
    ) throws(CertificateError) -> (certificates: [Certificate], key: PrivateKey) {
        guard root.isValid(at: time) else {
            throw CertificateError(.notPermitted, "the interception authority's root is not valid now")
        }
        let parts = try NameConstraints.parts(permitting: hosts)
        let key = try PrivateKey.generateP256()
        let notBefore = max(time - backdating, root.notBefore)
        let firstSerial = newSerial()
        var certificates: [Certificate] = []
        for (place, constraints) in parts.enumerated() {
            // A name for each, so that no client takes one part's certificate for another's.
            let part = parts.count > 1 ? " part \(place + 1)" : ""
            let template = CertificateTemplate(
                subject: .parts(
                    organization: "Countersign",
                    commonName: "Countersign interception issuer \(Hex.encode(firstSerial.prefix(4)))\(part)"),
                serial: place == 0 ? firstSerial : newSerial(),
                notBefore: notBefore, notAfter: min(notBefore + issuingLifetime - 1, root.notAfter),
                extensions: CertificateTemplate.Extension.authority(pathLength: 0) + [
                    .serverAuthentication,
                    .init(identifier: NID_name_constraints, isCritical: true, value: constraints.der),
                ])
            certificates.append(try template.signed(for: key, issuer: root, signer: rootKey))
        }
        return (certificates, key)
    }

    /// A chain that nobody trusts, to show for an origin that is not trusted: a leaf for `key` with the names and dates of
    /// `origin`, or for `host` alone and a week around `time` when that is nil, and its one-off issuer, whose common name is
    /// the first 64 characters of `issuerName` and whose key is gone.
    package static func throwaway(
        mirroring origin: Certificate?, host: String, key: PrivateKey, issuerName: String, at time: Int64
    ) throws(CertificateError) -> [Certificate] {
        let issuerKey = try PrivateKey.generateP256()
        let notBefore = origin?.notBefore ?? time - backdating
        let notAfter = origin?.notAfter ?? notBefore + leafLifetime - 1
        let issuerTemplate = CertificateTemplate(
            subject: .parts(organization: nil, commonName: issuerName), serial: newSerial(),
            notBefore: notBefore, notAfter: notAfter,
            extensions: CertificateTemplate.Extension.authority(pathLength: 0))
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
    /// The signature is that of `issuer`'s key.
    func isSigned(by issuer: Certificate) -> Bool {
        defer { ERR_clear_error() }
        return issuer.withX509 { X509_get0_pubkey($0) }.map { key in withX509 { X509_verify($0, key) == 1 } } ?? false
    }
}
