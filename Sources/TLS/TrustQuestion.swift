// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// The question to the caller whether to proceed with a server that is not trusted, and its answer.
///
/// An answer covers the reasons that the question contained. A reason that is found later makes another question.
struct TrustQuestion {
    /// Whether the caller answers questions.
    let isWanted: Bool
    /// The verdict in question, while the answer is outstanding.
    private(set) var pending: ServerTrust?
    var isPending: Bool { pending != nil }
    /// The last answer.
    private(set) var answer: TrustAnswer?
    private var reasonsAskedAbout: Set<ServerTrust.Reason> = []

    init(isWanted: Bool) { self.isWanted = isWanted }

    /// Whether the caller must decide about the verdict, and the handshake must wait for the answer.
    mutating func verdictFound(_ trust: ServerTrust) -> Bool {
        guard isWanted, !trust.isTrusted, !covers(trust) else { return false }
        reasonsAskedAbout.formUnion(trust.reasons)
        pending = trust
        return true
    }

    /// Records the answer to the pending question. Without a question it is ignored.
    mutating func answered(_ answer: TrustAnswer) {
        guard pending != nil else { return }
        pending = nil
        self.answer = answer
    }

    /// Whether a server with this verdict may get a client certificate.
    func permitsIdentity(for trust: ServerTrust) -> Bool {
        trust.isTrusted || (pending == nil && answer == .proceed(answering: true) && covers(trust))
    }

    private func covers(_ trust: ServerTrust) -> Bool { reasonsAskedAbout.isSuperset(of: trust.reasons) }
}
