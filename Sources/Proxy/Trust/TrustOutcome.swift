// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignUpstream

/// A decision of the person's that stands until it is forgotten or ends: for the origin that it is kept under, and one leaf.
package struct TrustException: Hashable, Sendable {
    /// SHA-256 of the leaf's DER.
    package let leaf: [UInt8]
    /// The last second at which it counts, since 1970; nil: no end.
    package let until: Int64?
    /// Whether challenges may be answered there as on an origin that verifies.
    package let answers: Bool

    package init(leaf: [UInt8], until: Int64?, answers: Bool) {
        self.leaf = leaf
        self.until = until
        self.answers = answers
    }

    /// `now` is in seconds since 1970.
    package func counts(at now: Int64) -> Bool { until.map { now <= $0 } ?? true }
}

/// On whose word an origin's certificate is taken, and for what.
struct TrustOutcome: Equatable {
    /// Who decided to go on to an origin that does not verify.
    enum Decider: String {
        /// `countersign trust allow`.
        case exception = "standing"
        /// The client: inside a tunnel whose certificate fails, or by `Countersign-Trust`.
        case client
        case delegate
    }

    let key: UpstreamKey.Trust
    /// Nil where nobody had to.
    let decider: Decider?

    static let verified = TrustOutcome(key: .verified, decider: nil)

    static func exception(_ exception: TrustException) -> TrustOutcome {
        TrustOutcome(key: .accepted(leaf: exception.leaf, answering: exception.answers), decider: .exception)
    }

    static func client(leaf: [UInt8]) -> TrustOutcome {
        TrustOutcome(key: .accepted(leaf: leaf, answering: false), decider: .client)
    }

    static func delegate(leaf: [UInt8]) -> TrustOutcome {
        TrustOutcome(key: .accepted(leaf: leaf, answering: false), decider: .delegate)
    }

    /// A standing decision counts only for as long as it is kept, and to what it permits now.
    func isInForce(at origin: Origin, _ shared: ProxyServices) -> Bool {
        guard decider == .exception, case .accepted(let leaf, let answering) = key else { return true }
        let decision = shared.policy.current.trustException(for: origin, leaf: leaf, now: shared.wallClock())
        return decision.map { $0.answers || !answering } ?? false
    }

    /// Challenges may be answered.
    var answers: Bool { key.answers }

    /// Connections may serve other clients: the decision was not one client's.
    var isShared: Bool { decider == nil || decider == .exception }
}

/// What a caller's delegate said yes to, for as long as one client connection lives: a leaf, in spite of these reasons.
///
/// The rule: a delegate is asked once for all connections of an event loop that meet the same leaf for the same reasons at the
/// same time. Its yes holds for the clients that asked, each for all connections to that leaf that it still makes, until another
/// reason turns up; those connections serve no other client. A no is not kept.
struct DelegateConsent: Equatable {
    let leaf: [UInt8]
    let reasons: Set<ServerTrust.Reason>

    func covers(_ trust: ServerTrust) -> Bool {
        trust.leaf?.sha256Fingerprint == leaf && reasons.isSuperset(of: trust.reasons)
    }
}
