// SPDX-License-Identifier: Apache-2.0

/// What a stapled response and the lists kept here come to together.
enum RevocationFindings {
    /// The verdict on a path whose lists were looked into already; with it, the last second for which the stapled
    /// response says the same. A revocation, and the lack of a response that the leaf demands (RFC 7633), become
    /// reasons.
    ///
    /// Only a path that ends in an anchor has an issuer whose word counts.
    static func judge(
        _ path: ChainPath, staple: ChainVerifier.Staple, at time: Int64, into findings: ChainFindings
    ) -> (verdict: ServerTrust.Revocation, holdsUntil: Int64) {
        let (stapled, holdsUntil) = judge(staple, path, at: time)
        if case .unusable = stapled, staple != .awaited, path.whole.first?.demandsStapledResponse == true {
            findings.add(
                .other("certificate demands a stapled OCSP response, and none that is valid came"), depth: 0)
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
