// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import NIOCore
import CountersignTLS

/// The questions of an event loop's connections that the delegate has not answered yet. Only that loop may use it.
///
/// Connections with the same question share one answer. Every question ends: with the delegate's answer, with the time
/// limit, or when no connection waits for it.
final class TrustQuestions {
    /// Questions are the same if they are about the same origin, leaf and reasons.
    struct Key: Hashable {
        let origin: Origin
        let leaf: [UInt8]
        let reasons: Set<ServerTrust.Reason>
    }

    /// Identifies one caller that waits, so that it can withdraw.
    struct Ticket: Hashable {
        fileprivate let key: Key
        fileprivate let number: UInt64
    }

    private struct Open {
        let number: UInt64
        var waiting: [(number: UInt64, answer: (TrustAnswer) -> Void)]
        var task: Task<Void, Never>?
        var deadline: Scheduled<Void>?
    }

    private let loop: any EventLoop
    private let limit: TimeAmount
    private var open: [Key: Open] = [:]
    private var lastNumber: UInt64 = 0

    init(loop: any EventLoop, limit: TimeAmount) {
        self.loop = loop
        self.limit = limit
    }

    /// How many questions are open.
    var count: Int { open.count }

    /// `answer` is called once, on the loop and never from inside this call, unless the ticket is withdrawn.
    func ask(
        _ server: UntrustedServer, _ key: Key, of delegate: any ServerTrustDecider,
        answer: @escaping (TrustAnswer) -> Void
    ) -> Ticket {
        let ticket = Ticket(key: key, number: nextNumber())
        if open[key] != nil {
            open[key]?.waiting.append((ticket.number, answer))
            return ticket
        }
        let number = nextNumber()
        open[key] = Open(number: number, waiting: [(ticket.number, answer)])
        let bound = NIOLoopBound(self, eventLoop: loop)
        let loop = loop
        open[key]?.deadline = loop.assumeIsolated().scheduleTask(in: limit) { [weak self] in
            self?.answered(key, number, .refuse)
        }
        open[key]?.task = Task {
            let answer = await delegate.decide(server)
            loop.execute { bound.value.answered(key, number, answer) }
        }
        return ticket
    }

    /// The caller with `ticket` no longer wants the answer.
    func withdraw(_ ticket: Ticket) {
        open[ticket.key]?.waiting.removeAll { $0.number == ticket.number }
        guard let question = open[ticket.key], question.waiting.isEmpty else { return }
        close(ticket.key)
    }

    private func answered(_ key: Key, _ number: UInt64, _ answer: TrustAnswer) {
        guard let question = open[key], question.number == number else { return }
        close(key)
        for one in question.waiting { one.answer(answer) }
    }

    private func close(_ key: Key) {
        guard let question = open.removeValue(forKey: key) else { return }
        question.deadline?.cancel()
        question.task?.cancel()
    }

    private func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }
}
