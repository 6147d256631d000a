// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// The authorities of an EST server as `/cacerts` gave them (RFC 7030 §4.1.3), sorted by what the trust anchors make of
/// them.
package struct ESTCertificationAuthorities: Equatable, Sendable {
    /// Everything that was sent, in its order.
    package let certificates: [Certificate]
    /// The anchors as they were, and ``newAnchors`` behind them.
    package let anchors: [Certificate]
    /// Self-signed authorities that were not anchors and that an anchor vouches for, by a certificate for the same name
    /// and key that ends in it (NewWithOld, RFC 4210 §4.4): to be kept as anchors from now on.
    package let newAnchors: [Certificate]
    /// Self-signed authorities that nobody vouches for: not trusted.
    package let strangers: [Certificate]

    /// `authorityChanged` when no anchor is among `certificates` and none vouches for any of them.
    init(
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
                of: certificate, purpose: .authority, through: certificates, to: store, at: time)
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
        strangers = newcomers.filter { !vouchedAnchors.contains($0) }
        self.anchors = anchors + vouchedAnchors
        guard !vouchedFor.isEmpty || certificates.contains(where: anchors.contains) else {
            let names = certificates.map { "\"\($0)\" (\($0.fingerprintText))" }.joined(separator: ", ")
            throw EnrollmentError(
                .authorityChanged,
                "the server's authorities are neither a trust anchor nor vouched for by one: \(names)",
                hint: "if the change is right, enroll again with the new authority as the anchor")
        }
    }

    /// The chain of a certificate that the server issued for `key`: the leaf and its issuers without the anchor.
    /// `wrongCertificate` when none of `issued` is good for that.
    func chain(
        from issued: [Certificate], for key: PrivateKey, at time: Int64
    ) throws(EnrollmentError) -> [Certificate] {
        guard let leaf = issued.first(where: key.matches) else {
            let names = issued.prefix(3).map { "\"\($0)\" by \"\($0.issuer)\"" }.joined(separator: ", ")
            throw EnrollmentError(
                .wrongCertificate, "the server sent a certificate for another key than the request's: \(names)")
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
                .wrongCertificate, "\(name), which does not end in a trust anchor: \(error.detail)",
                hint: strangers.isEmpty
                    ? nil : "the server also gives authorities that no anchor vouches for: it may have changed its own")
        }
    }
}
