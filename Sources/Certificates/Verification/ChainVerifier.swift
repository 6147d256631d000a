// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Verifies an origin's chain (RFC 5280 §6, RFC 9525) and reports all reasons against it.
///
/// OpenSSL builds and validates the path with its strict flags: server purpose, no common name, no partial chains.
/// ``CertificateRequirements`` adds the checks that OpenSSL lacks, and ``RevocationFindings`` evaluates stapled
/// responses, local lists and statuses from earlier fetches. OpenSSL builds one path without going back; if that path
/// fails, ``PathSearch`` finds the others. Nothing is fetched: no list, no response, no missing issuer. The verdict
/// names the statuses that a caller could fetch.
package struct ChainVerifier: Sendable {
    /// The trust anchors.
    package let anchors: TrustAnchors
    /// CAs that must not occur in a chain even if an anchor vouches for them: this proxy's own.
    package let refused: [Certificate]
    /// The local revocation lists.
    package let revocationLists: [RevocationList]
    private let isPublicSuffix: @Sendable (String) -> Bool

    /// The maximum number of intermediate certificates.
    package static let maximumDepth: Int32 = 10

    /// `refusing` are CAs whose keys must not occur in a chain. `revocationLists` determine the revoked certificates;
    /// without a current list signed by the issuer, revocation is unknown. `isPublicSuffix` returns whether a wildcard
    /// directly below a lower-case name is too wide; below a single label it always is.
    package init(
        anchors: TrustAnchors, refusing refused: [Certificate] = [], revocationLists: [RevocationList] = [],
        isPublicSuffix: @escaping @Sendable (String) -> Bool = { _ in false }
    ) {
        self.anchors = anchors
        self.refused = refused
        // A delta list would be taken for a whole one.
        self.revocationLists = revocationLists.filter { !$0.isDelta }
        self.isPublicSuffix = isPublicSuffix
    }

    /// The state of the stapled OCSP response (RFC 6066 §8).
    package enum Staple: Hashable, Sendable {
        case absent
        /// It may arrive later in the handshake, so its absence is not a reason yet.
        case awaited
        /// In DER.
        case received([UInt8])

        fileprivate var isReceived: Bool { if case .received = self { true } else { false } }
    }

    /// A verdict and the time until which it stays the same.
    package struct Appraisal: Sendable {
        package let trust: ServerTrust
        /// The last second before the next date of a certificate, list, response or status; in seconds since 1970.
        package let holdsUntil: Int64
        /// The certificates whose status is not known but can be learned. None if there is a reason against the chain,
        /// or if statuses cannot be learned.
        package let questions: [RevocationQuestion]

        package init(trust: ServerTrust, holdsUntil: Int64, questions: [RevocationQuestion] = []) {
            self.trust = trust
            self.holdsUntil = holdsUntil
            self.questions = questions
        }
    }

    /// The verdict on `chain`, leaf first and as sent, for `host`: a canonical name or an IP address' text. `time` is
    /// in seconds since 1970; `stapledOCSP` is the response received with the chain, in DER.
    package func evaluate(
        chain: [Certificate], host: String, at time: Int64, stapledOCSP: [UInt8]? = nil
    ) -> ServerTrust {
        appraise(chain: chain, host: host, at: time, staple: stapledOCSP.map { .received($0) } ?? .absent).trust
    }

    /// The verdict of ``evaluate(chain:host:at:stapledOCSP:)``, how long it holds, and the statuses that could be
    /// fetched. `statuses` are those from earlier fetches.
    package func appraise(
        chain: [Certificate], host: String, at time: Int64, staple: Staple, statuses: KnownStatuses = .none
    ) -> Appraisal {
        guard let leaf = chain.first else {
            let trust = ServerTrust(
                chain: [], reasons: [.other("no certificate was sent")], revocation: .unknown("no certificate"))
            return Appraisal(trust: trust, holdsUntil: .max)
        }
        ERR_clear_error()
        defer { ERR_clear_error() }
        let question = Question(
            leaf: leaf, host: host, time: time, staple: staple, statuses: statuses, requirements: PathRequirements())
        let unusable = chain.dropFirst().filter { $0.signatureCost == nil }
        let usable = unusable.isEmpty ? chain : [leaf] + chain.dropFirst().filter { $0.signatureCost != nil }
        var best = judge(ChainPath.Material(chain: usable), question)
        var anchorsFound: [Certificate] = []
        if best.findings.dependOnPath {
            var search = PathSearch(
                usable, leaf: leaf, anchors: anchors, at: time, requirements: question.requirements,
                extraCost: (!revocationLists.isEmpty, staple.isReceived ? OCSPResponse.cost : 0))
            search.charge(best.path.whole)
            while best.findings.dependOnPath, let other = search.next() {
                let found = judge(other, question)
                if found.isBetter(than: best) { best = found }
            }
            anchorsFound = search.anchorsFound
        }
        if !best.path.reachesAnchor {
            for issuer in unusable { best.findings.add(.unusableKey(of: issuer), depth: 1) }
        }
        let revocation = best.revocation
        let trust = ServerTrust(
            chain: chain, reasons: best.findings.reasons, revocation: revocation.verdict, revoked: revocation.revoked)
        let isOnlyUnknown = trust.reasons.allSatisfy { $0 == .revocationUnknown }
        return Appraisal(
            trust: trust,
            holdsUntil: min(revocation.holdsUntil, lastSecond(of: chain + best.path.whole + anchorsFound, at: time)),
            questions: isOnlyUnknown ? revocation.questions : [])
    }

    private struct Question {
        let leaf: Certificate
        let host: String
        let time: Int64
        let staple: Staple
        let statuses: KnownStatuses
        let requirements: PathRequirements
    }

    /// The judgement on one path.
    private struct Judgement {
        let path: ChainPath
        let findings: ChainFindings
        let revocation: RevocationFindings

        func isBetter(than other: Judgement) -> Bool {
            if path.reachesAnchor != other.path.reachesAnchor { return path.reachesAnchor }
            return findings.reasons.count < other.findings.reasons.count
        }
    }

    private func judge(_ material: ChainPath.Material, _ question: Question) -> Judgement {
        let findings = ChainFindings()
        let path = ChainPath.build(
            material, leaf: question.leaf, host: question.host, at: question.time, verifier: self, into: findings)
        if !accepts(question.host, in: question.leaf) { findings.add(.hostMismatch, depth: 0) }
        for (depth, certificate) in path.whole.enumerated() {
            let role: CertificateRequirements.Role =
                depth == 0 ? .leaf : depth < path.belowAnchor.count ? .issuer : .anchor
            for reason in question.requirements.reasons(against: certificate, as: role) {
                findings.add(reason, depth: Int32(depth), isOfLeaf: role == .leaf)
            }
        }
        if NameConstraints.exclude(wildcardsOf: question.leaf, issuers: path.whole.dropFirst()) {
            findings.add(.nameConstraint, depth: 0)
        }
        let refusedKeys = Set(refused.map(\.publicKeyDER))
        if !refusedKeys.isEmpty, path.whole.contains(where: { refusedKeys.contains($0.publicKeyDER) }) {
            findings.add(.other("certificate issued by this proxy's interception CA"), depth: 0)
        }
        let revocation = RevocationFindings.judge(
            path, staple: question.staple, statuses: question.statuses, isOwnAnchor: anchors.additional.contains,
            at: question.time, into: findings)
        return Judgement(path: path, findings: findings, revocation: revocation)
    }

    /// Whether the leaf is for `host`: the only part of a verdict that depends on the host.
    package func isNamed(_ host: String, in leaf: Certificate) -> Bool {
        defer { ERR_clear_error() }
        return accepts(host, in: leaf) && ChainPath.accepts(host, in: leaf)
    }

    private func accepts(_ host: String, in leaf: Certificate) -> Bool {
        HostMatch(host: host, isPublicSuffix: isPublicSuffix).accepts(leaf)
    }

    /// The last second before the next date of a certificate or list, when the result may change.
    private func lastSecond(of certificates: [Certificate], at time: Int64) -> Int64 {
        let turningPoints =
            certificates.flatMap { [$0.notBefore, $0.notAfter &+ 1] }
            + revocationLists.flatMap { [$0.thisUpdate, $0.nextUpdate] }.compactMap(\.self)
        return turningPoints.filter { $0 > time }.map { $0 - 1 }.min() ?? .max
    }
}

extension ServerTrust.Reason {
    /// ``Certificate/signatureCost`` has the limits.
    fileprivate static func unusableKey(of issuer: Certificate) -> Self {
        .other("issuer not accepted: checking signatures by its key (\(issuer.keyDescription)) takes too long")
    }
}
