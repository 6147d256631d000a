// SPDX-License-Identifier: Apache-2.0

extension InterceptionAuthority {
    /// Stands for the names of a certificate that is for another host: it is inside the name constraints because it is
    /// below the host, and no name that the origin chose.
    static let otherHostLabel = "certificate-is-for-another-host"

    /// A chain under the root that clients reject for exactly the reasons against `trust`, so that a browser names
    /// them: the leaf has expired, is not valid yet, or is for another host. Nil for any other reason, for which a
    /// client must not see a chain that ends in a root that it trusts.
    ///
    /// The leaf's subject says why it is not trusted. It has the origin's dates if they are the reason. It is never
    /// valid for `host`: a chain that would verify at `time`, or that would be rejected for other reasons, is not
    /// returned.
    package func mirror(
        _ trust: ServerTrust, host: String, key: PrivateKey, at time: Int64
    ) throws(CertificateError) -> [Certificate]? {
        guard let origin = trust.leaf, !trust.reasons.isEmpty, let issuer = issuing(for: host), issuer.isValid(at: time)
        else { return nil }
        var dates = (from: max(time - Self.backdating, issuer.notBefore), to: min(origin.notAfter, issuer.notAfter))
        var name = host
        for reason in trust.reasons {
            switch reason {
            case .expired(origin.notAfter), .notYetValid(origin.notBefore):
                dates = (origin.notBefore, origin.notAfter)
            case .hostMismatch where IPAddress(text: host) == nil:
                name = "\(Self.otherHostLabel).\(host)"
                guard NameConstraints.isHostName(name) else { return nil }
            default:
                return nil
            }
        }
        let template = CertificateTemplate(
            subject: .parts(organization: "Not trusted by Countersign: \(trust.reasons[0])", commonName: nil),
            serial: Self.newSerial(), notBefore: dates.from, notAfter: dates.to,
            extensions: CertificateTemplate.Extension.server + [.alternativeName(name)])
        let chain = [try template.signed(for: key, issuer: issuer, signer: issuingKey), issuer]
        let anchors = try TrustAnchors(system: false, additional: [root])
        let verdict = ChainVerifier(anchors: anchors).evaluate(chain: chain, host: host, at: time)
        return Set(verdict.reasons) == Set(trust.reasons) ? chain : nil
    }
}
