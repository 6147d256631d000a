// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// The local authority that vouches for intercepted sites towards this machine's own clients.
///
/// Its root signs nothing but issuing certificates; an issuing certificate carries critical name constraints, which all clients
/// obey there and some do not on a root, and signs leaves of a few days. Where the hosts are too many for one certificate, each
/// of several has a part of them, all with the same key: together they vouch for the hosts and for nothing else. The root's key is
/// no part of it: nothing but new issuing certificates needs that one. The keys are for the vault alone.
package final class InterceptionAuthority: Sendable {
    /// What clients are to trust.
    package let root: Certificate
    /// What signs leaves, one at least; each travels in the chains of its own leaves.
    package let issuing: [Certificate]
    /// The key of them all.
    package let issuingKey: PrivateKey
    /// Another one for other issuing certificates: 32 bytes.
    package let issuingFingerprint: [UInt8]
    /// The end of the issuing certificate that ends first, in seconds since 1970.
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
    /// How far dates are set back, for clients whose clock is behind: 24 hours, in seconds.
    package static let backdating: Int64 = day
    private static let day: Int64 = 86_400

    /// Of certificates and a key that were kept: `keyMismatch` when they do not belong together, `malformed` when an issuing
    /// certificate has not the constraints of this authority, or when there is none.
    package init(root: Certificate, issuing: [Certificate], issuingKey: PrivateKey) throws(CertificateError) {
        var constraints: [NameConstraints] = []
        for certificate in issuing {
            guard issuingKey.matches(certificate), certificate.isSigned(by: root) else {
                throw CertificateError(
                    .keyMismatch, "the issuing certificate is not of this interception authority's root")
            }
            guard let part = NameConstraints(of: certificate) else {
                throw CertificateError(
                    .malformed, "the issuing certificate has not the name constraints of this authority")
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

    /// A new root with its key, which is nowhere else, named for the first four bytes of its serial number. `time` is in
    /// seconds since 1970.
    package static func newRoot(at time: Int64) throws(CertificateError) -> (certificate: Certificate, key: PrivateKey)
    {
        let serial = newSerial()
        let name = "Countersign interception root \(Hex.encode(serial.prefix(4)))"
        return try makeRoot(commonName: name, at: time, serial: serial)
    }

    /// An authority of `root` with a new issuing key, and as many certificates of it as `hosts` need: host names, `*.name` and
    /// IP addresses, canonical. A name stands for everything below it too (RFC 5280 §4.2.1.10). `keyMismatch` when `rootKey` is
    /// not the root's.
    package static func issued(
        by root: Certificate, rootKey: PrivateKey, permitting hosts: [String], at time: Int64
    ) throws(CertificateError) -> InterceptionAuthority {
        guard rootKey.matches(root) else {
            throw CertificateError(.keyMismatch, "the interception authority's root key is not its certificate's")
        }
        let (issuing, issuingKey) = try makeIssuing(root: root, rootKey: rootKey, permitting: hosts, at: time)
        return try InterceptionAuthority(root: root, issuing: issuing, issuingKey: issuingKey)
    }

    /// A new authority whose root never signs again: its key is gone when this returns. `hosts` as in
    /// ``issued(by:rootKey:permitting:at:)``.
    package static func create(
        permitting hosts: [String] = [], at time: Int64
    ) throws(CertificateError) -> InterceptionAuthority {
        let (root, rootKey) = try newRoot(at: time)
        return try issued(by: root, rootKey: rootKey, permitting: hosts, at: time)
    }

    /// A leaf may be minted for the host.
    package func permits(_ host: String) -> Bool { index.place(of: host) != nil }

    /// The issuing certificates are for exactly `hosts`, and live for another leaf's lifetime.
    package func serves(_ hosts: [String], at time: Int64) -> Bool {
        let (end, overflow) = time.addingReportingOverflow(Self.leafLifetime)
        guard notBefore <= time, !overflow, end <= notAfter else { return false }
        return (try? NameConstraints.parts(permitting: hosts)) == constraints
    }

    /// A chain of a leaf for `host` alone and the issuing certificate that permits it. The leaf lives 7 days, of which one is
    /// past, and never outside the issuing certificate's dates. `notPermitted` when no constraints allow the host, or the
    /// issuing certificate is not valid at `time`.
    package func mintLeaf(host: String, key: PrivateKey, at time: Int64) throws(CertificateError) -> [Certificate] {
        guard let place = index.place(of: host) else {
            throw CertificateError(
                .notPermitted, "\"\(host)\" is outside the interception authority's name constraints")
        }
        return [try leaf(host: host, key: key, by: issuing[place], at: time), issuing[place]]
    }

    /// The leaf, whatever the constraints say of the host.
    func leaf(
        host: String, key: PrivateKey, by issuer: Certificate, at time: Int64
    ) throws(CertificateError) -> Certificate {
        guard issuer.isValid(at: time) else {
            throw CertificateError(.notPermitted, "the interception authority's issuing certificate is not valid now")
        }
        let notBefore = max(time - Self.backdating, issuer.notBefore)
        let template = CertificateTemplate(
            subject: .site(host), serial: Self.newSerial(),
            notBefore: notBefore, notAfter: min(notBefore + Self.leafLifetime - 1, issuer.notAfter),
            extensions: CertificateTemplate.Extension.server + [.alternativeName(host)])
        return try template.signed(for: key, issuer: issuer, signer: issuingKey)
    }
}
