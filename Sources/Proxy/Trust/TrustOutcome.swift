// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignCertificates
import CountersignUpstream

/// Why an origin's certificate is accepted, and whether challenges may be answered.
struct TrustOutcome: Equatable {
    /// Who accepted a certificate that does not verify. The raw values are those of the access log.
    enum Decider: String {
        /// A trust exception, made by `countersign trust allow`.
        case exception = "standing"
        /// The client: it continued in a tunnel whose certificate does not verify, or sent `Countersign-Trust`.
        case client
        case delegate
    }

    let key: UpstreamKey.Trust
    /// Nil if the certificate verifies.
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

    /// False if the outcome is based on a trust exception that no longer exists, has expired or permits less than
    /// before.
    func isInForce(at origin: Origin, _ policy: CurrentPolicy, now: () -> Int64) -> Bool {
        guard decider == .exception, case .accepted(let leaf, let answering) = key else { return true }
        let exception = policy.current.trustException(for: origin, leaf: leaf, now: now())
        return exception.map { $0.answers || !answering } ?? false
    }

    /// Challenges may be answered.
    var answers: Bool { key.answers }

    /// Whether connections may be shared with other clients: not if the certificate was accepted for a single client.
    var isShared: Bool { decider == nil || decider == .exception }
}

/// A leaf certificate that the delegate has accepted for one client connection, with the reasons against it.
///
/// Connections of an event loop that meet the same leaf with the same reasons at the same time share one question to
/// the delegate. A positive answer applies to the client connections that waited for it: each may open further
/// connections to that leaf until there is another reason, and does not share them with other clients. A negative
/// answer is not kept.
struct DelegateConsent: Equatable {
    let leaf: [UInt8]
    let reasons: Set<ServerTrust.Reason>

    func covers(_ trust: ServerTrust) -> Bool {
        trust.leaf?.sha256Fingerprint == leaf && reasons.isSuperset(of: trust.reasons)
    }
}
