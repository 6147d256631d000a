// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL

/// Enumerates the certification paths from a leaf to a trust anchor (RFC 4158), through the certificates that were sent
/// and those in the store.
///
/// In a path, the issuer of each certificate is the subject of the next one; OpenSSL then validates it. Sound
/// certificates are tried first. The number of paths in a mesh of cross-certificates is exponential, so a
/// ``VerificationBudget`` limits the work for the search and for the validation of the paths that it finds.
struct PathSearch {
    /// The trust anchors at which a path was found to end.
    private(set) var anchorsFound: [Certificate] = []

    private let leaf: Certificate
    private let chain: [Certificate]
    private let anchors: TrustAnchors
    private let time: Int64
    private let requirements: PathRequirements
    private let extraCost: ExtraCost
    /// The certificates that were sent, by the hash of the subject.
    private var sent: [UInt: [Candidate]] = [:]
    /// The certificates in the store, by the issuer's name for which they were looked up.
    private var stored: [[UInt8]: [Candidate]] = [:]
    /// The incomplete paths, the one to be continued first at the end.
    private var unfinished: [[Candidate]] = []
    private var hasStarted = false

    /// The work for a path besides its signatures: whether the lists of each issuer are checked, and for the stapled
    /// response.
    typealias ExtraCost = (isPerLink: Bool, perPath: Int)

    init(
        _ chain: [Certificate], leaf: Certificate, anchors: TrustAnchors, at time: Int64,
        requirements: PathRequirements = PathRequirements(), extraCost: ExtraCost = (false, 0)
    ) {
        self.leaf = leaf
        self.chain = chain
        self.anchors = anchors
        self.time = time
        self.requirements = requirements
        self.extraCost = extraCost
    }

    private var budget: VerificationBudget { requirements.budget }

    /// Counts a path that has been validated already.
    func charge(_ path: [Certificate]) {
        budget.charge(cost(of: path.dropFirst().map { $0.signatureCost ?? VerificationBudget.total / 4 }))
    }

    /// `issuers` are the costs of one signature by each.
    private func cost(of issuers: [Int]) -> Int {
        let signatures = issuers.reduce(0, +) * (extraCost.isPerLink ? 2 : 1)
        let response = extraCost.perPath == 0 ? 0 : extraCost.perPath + (issuers.first ?? 0)
        return signatures + response + (issuers.count + 1) * VerificationBudget.signatureOverhead
    }

    /// The certificates of the next path; nil if no path is left, or if the budget does not permit it.
    mutating func next() -> ChainPath.Material? {
        if !hasStarted {
            hasStarted = true
            sent = Dictionary(grouping: chain.dropFirst().map { Candidate($0, isStored: false) }) { candidate in
                candidate.certificate.withX509 { X509_subject_name_hash($0) }
            }
            unfinished = [[Candidate(leaf, isStored: false)]]
        }
        while let path = unfinished.popLast() {
            if path.count > 1, let end = path.last, end.isStored, end.isSelfSigned {
                guard budget.spend(cost(of: path.dropFirst().map(\.signatureCost))) else { return nil }
                if !anchorsFound.contains(end.certificate) { anchorsFound.append(end.certificate) }
                return ChainPath.Material(
                    chain: path.filter { !$0.isStored }.map(\.certificate),
                    trusted: path.filter(\.isStored).map(\.certificate))
            }
            // The leaf, the intermediate certificates and the anchor.
            guard path.count < Int(ChainVerifier.maximumDepth) + 2 else { continue }
            guard let longer = continuations(of: path) else { return nil }
            unfinished += longer
        }
        return nil
    }

    /// The paths that are longer by one certificate, the most promising one last. Nil if the budget does not permit to
    /// find them.
    private mutating func continuations(of path: [Candidate]) -> [[Candidate]]? {
        guard let end = path.last else { return [] }
        let named = storedIssuers(of: end) + (sent[end.certificate.withX509 { X509_issuer_name_hash($0) }] ?? [])
        guard budget.spend((named.count + 1) * VerificationBudget.examination) else { return nil }
        let issuers = named.filter { issuer in
            // A path has no two certificates of one CA (RFC 4158 §5.2).
            issuer.hasIssued(end) && !path.contains { $0.isOfSameAuthority(as: issuer) }
        }
        let ranked = issuers.enumerated().sorted { left, right in
            let (first, second) = (rank(of: left.element), rank(of: right.element))
            return first == second ? left.offset > right.offset : first < second
        }
        return ranked.map { path + [$0.element] }
    }

    /// Sound certificates before others, and among these anchors before others.
    private func rank(of candidate: Candidate) -> Int {
        (candidate.isSound(at: time, requirements) ? 2 : 0) + (candidate.isStored ? 1 : 0)
    }

    private mutating func storedIssuers(of candidate: Candidate) -> [Candidate] {
        let issuer = candidate.certificate.issuerDER
        if let known = stored[issuer] { return known }
        let found = anchors.issuers(of: candidate.certificate).map { Candidate($0, isStored: true) }
        stored[issuer] = found
        return found
    }
}

/// A certificate that may become part of a path.
private final class Candidate {
    let certificate: Certificate
    /// Whether it comes from the store of trust anchors.
    let isStored: Bool
    let isSelfSigned: Bool
    /// One that is not known is that of an anchor, which its owner has chosen.
    let signatureCost: Int
    private let key: [UInt8]
    private var soundness: Bool?

    init(_ certificate: Certificate, isStored: Bool) {
        self.certificate = certificate
        self.isStored = isStored
        key = certificate.publicKeyDER
        signatureCost = certificate.signatureCost ?? VerificationBudget.total / 4
        isSelfSigned = certificate.withX509 { X509_self_signed($0, 0) } == 1
    }

    /// Whether name and key are the same.
    func isOfSameAuthority(as other: Candidate) -> Bool {
        key == other.key
            && certificate.withX509 { own in
                other.certificate.withX509 { X509_NAME_cmp(X509_get_subject_name(own), X509_get_subject_name($0)) }
            } == 0
    }

    /// Whether names, key identifiers and key usage permit it. Does not check the signature.
    func hasIssued(_ other: Candidate) -> Bool {
        certificate.withX509 { issuer in other.certificate.withX509 { X509_check_issued(issuer, $0) } } == X509_V_OK
    }

    /// Whether there is no reason against the certificate that every path through it would have.
    func isSound(at time: Int64, _ requirements: PathRequirements) -> Bool {
        if let soundness { return soundness }
        let isSound =
            certificate.isValid(at: time) && certificate.isCertificateAuthority
            && requirements.reasons(against: certificate, as: isStored ? .anchor : .issuer).isEmpty
        soundness = isSound
        return isSound
    }
}
