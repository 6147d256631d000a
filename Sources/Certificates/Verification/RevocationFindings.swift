// SPDX-License-Identifier: Apache-2.0

/// Combines the stapled response and the local revocation lists.
enum RevocationFindings {
    /// The verdict on a path whose lists were consulted already, and the last second for which the stapled response
    /// stays the same. A revocation, or the lack of a response that the leaf requires (RFC 7633), is added as a reason.
    ///
    /// A response or list only counts if the path ends in an anchor.
    static func judge(
        _ path: ChainPath, staple: ChainVerifier.Staple, at time: Int64, into findings: ChainFindings
    ) -> (verdict: ServerTrust.Revocation, holdsUntil: Int64) {
        let (stapled, holdsUntil) = judge(staple, path, at: time)
        if case .unusable = stapled, staple != .awaited, path.whole.first?.demandsStapledResponse == true {
            findings.add(
                .other("certificate requires a stapled OCSP response, and none that is valid was sent"), depth: 0,
                isOfLeaf: staple == .absent)
        }
        if stapled == .revoked {
            findings.add(.revoked, depth: 0)
            return (.revoked(by: .stapledOCSP), holdsUntil)
        }
        if findings.reasons.contains(.revoked) { return (.revoked(by: .revocationList), holdsUntil) }
        guard path.reachesAnchor else { return (.unknown("certificate issuer not trusted"), holdsUntil) }
        guard case .unusable(let text) = stapled else { return (.good(by: .stapledOCSP), holdsUntil) }
        guard path.looksIntoLists else { return (.unknown("\(text), no revocation list"), holdsUntil) }
        guard let fault = findings.leafListFault else { return (.good(by: .revocationList), holdsUntil) }
        return (.unknown("\(text), \(fault)"), holdsUntil)
    }

    private static func judge(
        _ staple: ChainVerifier.Staple, _ path: ChainPath, at time: Int64
    ) -> (finding: StapledResponse.Finding, holdsUntil: Int64) {
        switch staple {
        case .absent, .awaited: return (.unusable("no stapled OCSP response"), .max)
        case .received(let response):
            guard path.reachesAnchor, path.whole.count > 1 else {
                return (.unusable("stapled OCSP response of an unknown issuer"), .max)
            }
            let (finding, holdsUntil) = StapledResponse.judge(
                response, leaf: path.whole[0], issuer: path.whole[1], at: time)
            guard case .unusable(let text) = finding else { return (finding, holdsUntil) }
            return (.unusable("stapled OCSP response not valid: \(text)"), holdsUntil)
        }
    }
}
