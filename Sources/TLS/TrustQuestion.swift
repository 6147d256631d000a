// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// The dialogue with the caller about a server that is not trusted: what it was asked, and what it said.
///
/// An answer is for the reasons that were asked about: a reason that is found later is asked about anew.
struct TrustQuestion {
    /// The caller wants to be asked.
    let isWanted: Bool
    /// The verdict that waits for an answer.
    private(set) var pending: ServerTrust?
    var isPending: Bool { pending != nil }
    /// The last answer.
    private(set) var answer: TrustAnswer?
    private var reasonsAskedAbout: Set<ServerTrust.Reason> = []

    init(isWanted: Bool) { self.isWanted = isWanted }

    /// True when the verdict is to be asked about, and the handshake to wait.
    mutating func verdictFound(_ trust: ServerTrust) -> Bool {
        guard isWanted, !trust.isTrusted, !covers(trust) else { return false }
        reasonsAskedAbout.formUnion(trust.reasons)
        pending = trust
        return true
    }

    /// Takes the answer to what is pending; anything else is ignored.
    mutating func answered(_ answer: TrustAnswer) {
        guard pending != nil else { return }
        pending = nil
        self.answer = answer
    }

    /// A client certificate may be shown to a server of this verdict.
    func permitsIdentity(for trust: ServerTrust) -> Bool {
        trust.isTrusted || (pending == nil && answer == .proceed(answering: true) && covers(trust))
    }

    private func covers(_ trust: ServerTrust) -> Bool { reasonsAskedAbout.isSuperset(of: trust.reasons) }
}
