// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// The CA certificates that an EST server returned from `/cacerts` (RFC 7030 §4.1.3), grouped by whether a trust anchor
/// vouches for them.
package struct ESTCertificationAuthorities: Equatable, Sendable {
    /// All certificates, in the server's order.
    package let certificates: [Certificate]
    /// The previous anchors, followed by ``newAnchors``.
    package let anchors: [Certificate]
    /// Self-signed CA certificates that are not anchors yet but that an anchor vouches for, by a certificate for the
    /// same name and key that chains to it (NewWithOld, RFC 4210 §4.4). They become anchors.
    package let newAnchors: [Certificate]
    /// Self-signed CA certificates that no anchor vouches for. They are not trusted.
    package let unvouched: [Certificate]

    /// Throws `authorityChanged` if `certificates` contains no anchor and no anchor vouches for any of them.
    package init(
        _ certificates: [Certificate], anchors: [Certificate], at time: Int64
    ) throws(EnrollmentError) {
        let store: TrustAnchors
        do {
            store = try TrustAnchors(system: false, additional: anchors)
        } catch {
            throw EnrollmentError(.unavailable, error.detail)
        }
        let vouchedFor = certificates.filter { certificate in
            guard certificate.isCertificateAuthority, !anchors.contains(certificate) else { return false }
            let path = try? CertificationPath(
                of: certificate, purpose: .certificationAuthority, through: certificates, to: store, at: time)
            return path != nil
        }
        let newcomers = certificates.filter {
            $0.isCertificateAuthority && !anchors.contains($0) && !vouchedFor.contains($0) && $0.isSelfSigned
        }
        self.certificates = certificates
        let vouchedAnchors = newcomers.filter { newcomer in
            newcomer.isValid(at: time)
                && vouchedFor.contains {
                    $0.subjectDER == newcomer.subjectDER && $0.publicKeyDER == newcomer.publicKeyDER
                }
        }
        newAnchors = vouchedAnchors
        unvouched = newcomers.filter { !vouchedAnchors.contains($0) }
        self.anchors = anchors + vouchedAnchors
        guard !vouchedFor.isEmpty || certificates.contains(where: anchors.contains) else {
            let names = certificates.map { "\"\($0)\" (\($0.fingerprintText))" }.joined(separator: ", ")
            throw EnrollmentError(
                .authorityChanged,
                "none of the server's CA certificates is a trust anchor or vouched for by one: \(names)",
                hint: "if the change is intended, enrol again with the new CA certificate as the trust anchor")
        }
    }

    /// The chain of the certificate that the server issued for `key`: the leaf and its issuers without the anchor.
    /// Throws `wrongCertificate` if none of `issued` qualifies.
    func chain(
        from issued: [Certificate], for key: PrivateKey, at time: Int64
    ) throws(EnrollmentError) -> [Certificate] {
        guard let leaf = issued.first(where: key.matches) else {
            let names = issued.prefix(3).map { "\"\($0)\" by \"\($0.issuer)\"" }.joined(separator: ", ")
            throw EnrollmentError(
                .wrongCertificate, "the server sent a certificate for a different key than the request's: \(names)")
        }
        let store: TrustAnchors
        let identity: Identity
        do {
            store = try TrustAnchors(system: false, additional: anchors)
            identity = try Identity(name: "", chain: [leaf], key: key)
        } catch {
            throw EnrollmentError(.unavailable, error.detail)
        }
        let name = "the server issued \"\(leaf)\" by \"\(leaf.issuer)\""
        if let obstacle = identity.obstacle(acceptableIssuers: [], at: time) {
            throw EnrollmentError(.wrongCertificate, "\(name), which is \(obstacle)")
        }
        do {
            let path = try CertificationPath(
                of: leaf, purpose: .client, through: issued + certificates, to: store, at: time)
            return Array(path.certificates.dropLast())
        } catch {
            throw EnrollmentError(
                .wrongCertificate, "\(name), which does not chain to a trust anchor: \(error.detail)",
                hint: unvouched.isEmpty
                    ? nil
                    : "the server also sends CA certificates that no anchor vouches for: its CA may have changed; to "
                        + "trust one, enrol again with --fingerprint "
                        + unvouched.map(\.fingerprintText).joined(separator: " or "))
        }
    }
}
