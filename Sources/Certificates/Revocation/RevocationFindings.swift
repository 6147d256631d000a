// SPDX-License-Identifier: Apache-2.0

/// Combines the stapled response, the local revocation lists and the statuses that were learned from the issuers.
///
/// The status of the server's certificate is that of the chain. Its issuers are checked too (RFC 5280 §6.3): a revoked
/// one counts as much, but an unknown one is a reason only if statuses are required.
struct RevocationFindings {
    let verdict: ServerTrust.Revocation
    /// The certificate that is revoked.
    let revoked: RevokedCertificate?
    /// The certificates whose status can be learned.
    let questions: [RevocationQuestion]
    /// The last second for which the stapled response and the statuses stay the same.
    let holdsUntil: Int64

    /// The verdict on a path whose lists were consulted already. A revocation, the lack of a response that the leaf
    /// requires (RFC 7633), and an unknown status if they are required, are added as reasons.
    ///
    /// A response, list or status only counts if the path ends in an anchor.
    static func judge(
        _ path: ChainPath, staple: ChainVerifier.Staple, statuses: KnownStatuses, isOwnAnchor: (Certificate) -> Bool,
        at time: Int64, into findings: ChainFindings
    ) -> RevocationFindings {
        let (stapled, holdsUntil) = judge(staple, path, at: time)
        func found(_ verdict: ServerTrust.Revocation, revoked: RevokedCertificate? = nil) -> RevocationFindings {
            RevocationFindings(verdict: verdict, revoked: revoked, questions: [], holdsUntil: holdsUntil)
        }
        if case .unknown = stapled, staple != .awaited, path.whole.first?.demandsStapledResponse == true {
            findings.add(
                .other("certificate requires a stapled OCSP response, and none that is valid was sent"), depth: 0,
                isOfLeaf: staple == .absent)
        }
        if case .revoked(let entry) = stapled, let leaf = path.whole.first {
            findings.add(.revoked, depth: 0)
            return found(.revoked(by: .stapledOCSP), revoked: RevokedCertificate(leaf, isLeaf: true, entry))
        }
        if findings.reasons.contains(.revoked) {
            return found(.revoked(by: .revocationList), revoked: findings.revoked)
        }
        guard path.reachesAnchor else { return found(.unknown("certificate issuer not trusted")) }
        var links = PathStatuses(holdsUntil: holdsUntil)
        let isOwn = path.whole.last.map(isOwnAnchor) ?? false
        for depth in path.belowAnchor.indices {
            links.add(
                depth, of: path, stapled: depth == 0 ? stapled : nil, statuses, isBelowOwnAnchor: isOwn, at: time,
                findings)
        }
        return links.conclude(areRequired: statuses.areRequired, into: findings)
    }

    private static func judge(
        _ staple: ChainVerifier.Staple, _ path: ChainPath, at time: Int64
    ) -> (finding: CertificateStatus.Finding, holdsUntil: Int64) {
        switch staple {
        case .absent, .awaited: return (.unknown("no stapled OCSP response"), .max)
        case .received(let response):
            guard path.reachesAnchor, path.whole.count > 1 else {
                return (.unknown("stapled OCSP response of an unknown issuer"), .max)
            }
            let judged = OCSPResponse.judge(response, about: path.whole[0], by: path.whole[1], at: time)
            guard case .unknown(let text) = judged.finding else { return (judged.finding, judged.holdsUntil) }
            return (.unknown("stapled OCSP response not valid: \(text)"), judged.holdsUntil)
        }
    }
}

/// The statuses of the certificates of one path, from the leaf upwards.
private struct PathStatuses {
    var holdsUntil: Int64
    private var leaf = ServerTrust.Revocation.unknown("no certificate")
    /// Why the status of the first issuer without one is not known.
    private var issuerFault: String?
    private var revoked: (certificate: RevokedCertificate, depth: Int32, source: ServerTrust.RevocationSource)?
    private var questions: [RevocationQuestion] = []

    init(holdsUntil: Int64) { self.holdsUntil = holdsUntil }

    /// Adds the certificate at `depth`; `stapled` is the stapled response's finding, for the leaf.
    mutating func add(
        _ depth: Int, of path: ChainPath, stapled: CertificateStatus.Finding?, _ statuses: KnownStatuses,
        isBelowOwnAnchor: Bool, at time: Int64, _ findings: ChainFindings
    ) {
        let certificate = path.whole[depth]
        if stapled == .good { return leaf = .good(by: .stapledOCSP) }
        let listFault = path.looksIntoLists ? findings.listFault(at: Int32(depth)) : "no revocation list"
        guard let listFault else { return good(depth, by: .revocationList) }
        var faults = [stapled.flatMap(Self.text), listFault].compactMap(\.self)
        // An anchor that is its own leaf has no issuer.
        if depth + 1 < path.whole.count {
            let issuer = path.whole[depth + 1]
            if let status = statuses.status(of: certificate, by: issuer, at: time) {
                holdsUntil = min(holdsUntil, status.validity.upperBound)
                switch status.finding {
                case .good: return good(depth, by: status.source ?? .revocationList)
                case .revoked(let entry):
                    let found = RevokedCertificate(certificate, isLeaf: depth == 0, entry)
                    if revoked == nil { revoked = (found, Int32(depth), status.source ?? .revocationList) }
                    return
                case .unknown(let why): faults.append(why)
                }
            } else if statuses.canBeLearned {
                let points = certificate.revocationPoints
                if points.isEmpty {
                    faults.append("the certificate names no source over http")
                } else {
                    questions.append(
                        RevocationQuestion(
                            certificate: certificate, issuer: issuer, points: points, isOfLeaf: depth == 0,
                            isBelowOwnAnchor: isBelowOwnAnchor))
                    faults.append("no answer yet from \(points[0].url)")
                }
            }
        }
        let text = faults.joined(separator: ", ")
        if depth == 0 {
            leaf = .unknown(text)
        } else if issuerFault == nil {
            issuerFault = "of the issuer \"\(certificate)\": \(text)"
        }
    }

    private mutating func good(_ depth: Int, by source: ServerTrust.RevocationSource) {
        if depth == 0 { leaf = .good(by: source) }
    }

    private static func text(_ finding: CertificateStatus.Finding) -> String? {
        if case .unknown(let text) = finding { text } else { nil }
    }

    func conclude(areRequired: Bool, into findings: ChainFindings) -> RevocationFindings {
        if let revoked {
            findings.add(.revoked, depth: revoked.depth)
            return RevocationFindings(
                verdict: .revoked(by: revoked.source), revoked: revoked.certificate, questions: [],
                holdsUntil: holdsUntil)
        }
        var verdict = leaf
        if areRequired {
            if case .good = leaf, let issuerFault { verdict = .unknown(issuerFault) }
            if case .unknown = verdict { findings.add(.revocationUnknown, depth: 0) }
        }
        return RevocationFindings(verdict: verdict, revoked: nil, questions: questions, holdsUntil: holdsUntil)
    }
}
