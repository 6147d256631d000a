// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The local interception CA, which issues certificates for intercepted sites to this machine's own clients.
///
/// The root signs issuing certificates only. The intermediate that issues leaf certificates carries critical name
/// constraints, which all clients enforce on an intermediate but some ignore on a root; its leaves are valid for a few
/// days. If there are too many hosts for one certificate, several issuing certificates with the same key each permit a
/// part of the hosts. This type does not hold the root's key, which is only needed for new issuing certificates. Both
/// keys are stored in the vault only.
package final class InterceptionAuthority: Sendable {
    /// The root certificate that clients have to trust.
    package let root: Certificate
    /// The issuing certificates, at least one. Each is part of the chains of its own leaves.
    package let issuing: [Certificate]
    /// The key of all issuing certificates.
    package let issuingKey: PrivateKey
    /// Identifies the set of issuing certificates: 32 bytes.
    package let issuingFingerprint: [UInt8]
    /// The earliest end of an issuing certificate, in seconds since 1970.
    package let notAfter: Int64
    private let notBefore: Int64
    private let constraints: [NameConstraints]
    private let index: IssuerIndex

    /// 730 days, in seconds.
    package static let rootLifetime: Int64 = 730 * day
    /// 30 days, in seconds.
    package static let issuingLifetime: Int64 = 30 * day
    /// 7 days, in seconds.
    package static let leafLifetime: Int64 = 7 * day
    /// Certificates begin 24 hours in the past, for clients whose clock is slow; in seconds.
    package static let backdating: Int64 = day
    private static let day: Int64 = 86_400

    /// From stored certificates and the issuing key. Throws `keyMismatch` if they do not belong together, `malformed`
    /// if there is no issuing certificate or one without the CA's name constraints.
    package init(root: Certificate, issuing: [Certificate], issuingKey: PrivateKey) throws(CertificateError) {
        var constraints: [NameConstraints] = []
        for certificate in issuing {
            guard issuingKey.matches(certificate), certificate.isSigned(by: root) else {
                throw CertificateError(
                    .keyMismatch, "the issuing certificate was not issued by the interception CA's root")
            }
            guard let part = NameConstraints(of: certificate) else {
                throw CertificateError(
                    .malformed, "the issuing certificate does not have the interception CA's name constraints")
            }
            constraints.append(part)
        }
        guard let notBefore = issuing.map(\.notBefore).max(), let notAfter = issuing.map(\.notAfter).min() else {
            throw CertificateError(.malformed, "there is no issuing certificate")
        }
        self.root = root
        self.issuing = issuing
        self.issuingKey = issuingKey
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.constraints = constraints
        issuingFingerprint = Digest.sha256.hash(issuing.flatMap(\.sha256Fingerprint))
        index = IssuerIndex(constraints)
    }

    /// A new root certificate and its key. Its name includes the first four bytes of the serial number. `time` is in
    /// seconds since 1970.
    package static func newRoot(at time: Int64) throws(CertificateError) -> (certificate: Certificate, key: PrivateKey)
    {
        let serial = newSerial()
        let name = "Countersign interception root \(Hex.encode(serial.prefix(4)))"
        return try makeRoot(commonName: name, at: time, serial: serial)
    }

    /// A CA under `root` with a new issuing key, and as many issuing certificates as `hosts` need. `hosts` are
    /// canonical host names, `*.name` and IP addresses; a name includes all its subdomains (RFC 5280 §4.2.1.10). Throws
    /// `keyMismatch` if `rootKey` is not the root's key.
    package static func issued(
        by root: Certificate, rootKey: PrivateKey, permitting hosts: [String], at time: Int64
    ) throws(CertificateError) -> InterceptionAuthority {
        guard rootKey.matches(root) else {
            throw CertificateError(.keyMismatch, "the interception CA's root key does not belong to its certificate")
        }
        let (issuing, issuingKey) = try makeIssuing(root: root, rootKey: rootKey, permitting: hosts, at: time)
        return try InterceptionAuthority(root: root, issuing: issuing, issuingKey: issuingKey)
    }

    /// A new CA whose root key is discarded, so that the root never signs again. `hosts` as in
    /// ``issued(by:rootKey:permitting:at:)``.
    package static func create(
        permitting hosts: [String] = [], at time: Int64
    ) throws(CertificateError) -> InterceptionAuthority {
        let (root, rootKey) = try newRoot(at: time)
        return try issued(by: root, rootKey: rootKey, permitting: hosts, at: time)
    }

    /// Whether a leaf certificate can be issued for the host.
    package func permits(_ host: String) -> Bool { index.place(of: host) != nil }

    /// The issuing certificate that permits the host.
    func issuing(for host: String) -> Certificate? { index.place(of: host).map { issuing[$0] } }

    /// Whether the issuing certificates are for exactly `hosts` and remain valid for the lifetime of a leaf.
    package func serves(_ hosts: [String], at time: Int64) -> Bool {
        let (end, overflow) = time.addingReportingOverflow(Self.leafLifetime)
        guard notBefore <= time, !overflow, end <= notAfter else { return false }
        return (try? NameConstraints.parts(permitting: hosts)) == constraints
    }

    /// A chain of a leaf for `host` and the issuing certificate that permits it. The leaf is valid for 7 days from a
    /// day before `time`, within the issuing certificate's dates. Throws `notPermitted` if no issuing certificate
    /// permits the host, or if it is not valid at `time`.
    package func mintLeaf(host: String, key: PrivateKey, at time: Int64) throws(CertificateError) -> [Certificate] {
        guard let issuer = issuing(for: host) else {
            throw CertificateError(
                .notPermitted, "\"\(host)\" is outside the interception CA's name constraints")
        }
        return [try leaf(host: host, key: key, by: issuer, at: time), issuer]
    }

    /// The leaf, without a check of the name constraints.
    func leaf(
        host: String, key: PrivateKey, by issuer: Certificate, at time: Int64
    ) throws(CertificateError) -> Certificate {
        guard issuer.isValid(at: time) else {
            throw CertificateError(.notPermitted, "the interception CA's issuing certificate is not valid now")
        }
        let notBefore = max(time - Self.backdating, issuer.notBefore)
        let template = CertificateTemplate(
            subject: .site(host), serial: Self.newSerial(),
            notBefore: notBefore, notAfter: min(notBefore + Self.leafLifetime - 1, issuer.notAfter),
            extensions: CertificateTemplate.Extension.server + [.alternativeName(host)])
        return try template.signed(for: key, issuer: issuer, signer: issuingKey)
    }
}
