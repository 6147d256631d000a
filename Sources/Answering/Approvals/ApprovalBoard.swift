// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The questions whether a client's requests to a site may get a credential, at lines with `approve=`.
///
/// Requests of one client to one site with the same method share a question. Nobody is waited for longer than
/// ``limitSeconds``. A person who agrees does so for the requests that wait, for a quarter of an hour, or until this
/// process ends.
package final class ApprovalBoard: Sendable {
    /// What the person is asked.
    package struct Question: Equatable, Sendable {
        package let id: UInt64
        /// `scheme://host:port`.
        package let site: String
        /// The list's `file:line`.
        package let rule: String
        /// That of the first request.
        package let method: String
        package let credential: String
        /// The path of the program, or `process 4711` if it is not known.
        package let client: String
        package let uid: UInt32?
        /// When the first request came, in seconds since 1970.
        package let since: Int64
        /// The requests that wait.
        package internal(set) var waiting: Int
        /// How long they wait at most, from when the question was read.
        package internal(set) var secondsLeft: Int64
    }

    /// Requests that share a question, and what was agreed about it.
    package struct Subject: Hashable, Sendable {
        let site: String
        let rule: String
        let method: String
        /// The path of the program, or a text in its place.
        let client: String
        let uid: UInt32?
        /// Whether ``client`` is the path of a program. What is agreed for another one counts once.
        let isKnown: Bool

        package init(site: String, rule: String, method: String, program: String?, otherwise: String, uid: UInt32?) {
            self.site = site
            self.rule = rule
            self.method = method
            client = program ?? otherwise
            self.uid = uid
            isKnown = program != nil
        }
    }

    package enum Answer: String, Sendable, CaseIterable {
        /// For the requests that wait.
        case once
        case quarter = "15-minutes"
        /// Until this process ends.
        case always
        case deny
    }

    package enum Outcome: Equatable, Sendable {
        case allowed, denied, timedOut
        /// There are too many questions.
        case crowded
        /// This process asks nobody.
        case nobody
        /// The list or the vault has changed meanwhile.
        case changed
        /// Another process has taken over, and the person answers there.
        case replaced
    }

    /// A request that waits.
    package struct Ticket: Sendable {
        fileprivate let subject: Subject
        fileprivate let number: UInt64
    }

    package enum Reply: Sendable {
        case allowed
        case waiting(Ticket)
    }

    private struct Pending {
        var question: Question
        let until: Int64
        var waiters: [UInt64: @Sendable (Outcome) -> Void] = [:]
    }

    private struct State {
        var lastID: UInt64 = 0
        var lastTicket: UInt64 = 0
        var pending: [Subject: Pending] = [:]
        /// Until when requests are allowed.
        var grants: [Subject: Int64] = [:]
        var isHandedOver = false
    }

    /// How long a request waits.
    package static let limitSeconds: Int64 = 60
    private static let quarterSeconds: Int64 = 15 * 60
    /// The most questions at a time, and the most agreements that are remembered.
    private static let limit = 64

    private let state = Mutex(State())
    private let asked: @Sendable (Question) -> Void
    private let ended: @Sendable (Question, Answer?) -> Void
    /// Monotonic and since 1970, both in seconds.
    private let now: @Sendable () -> (monotonic: Int64, wall: Int64)

    /// `asked` is called with each new question, `ended` with each that does not wait any more, and its answer, if it
    /// got one. Neither must block.
    package init(
        now: @escaping @Sendable () -> (monotonic: Int64, wall: Int64), asked: @escaping @Sendable (Question) -> Void,
        ended: @escaping @Sendable (Question, Answer?) -> Void
    ) {
        self.now = now
        self.asked = asked
        self.ended = ended
    }

    /// The questions that wait, the oldest first.
    package var questions: [Question] {
        let now = now().monotonic
        let questions = state.withLock { state in
            state.pending.values.map { pending in
                var question = pending.question
                question.secondsLeft = max(0, pending.until - now)
                return question
            }
        }
        return questions.sorted { $0.id < $1.id }
    }

    /// Asks whether a request may get a credential. `done` is called once, on any thread, unless the request is allowed
    /// already or is withdrawn.
    package func ask(
        _ subject: Subject, credential: String,
        done: @escaping @Sendable (Outcome) -> Void
    ) -> Reply {
        let now = now()
        var news: Question?
        var refusal = Outcome.crowded
        let reply = state.withLock { state -> Reply? in
            var isNew = false
            if let until = state.grants[subject] {
                if until > now.monotonic { return .allowed }
                state.grants[subject] = nil
            }
            guard !state.isHandedOver else {
                refusal = .replaced
                return nil
            }
            if state.pending[subject] == nil {
                guard state.pending.count < Self.limit else { return nil }
                state.lastID += 1
                let question = Question(
                    id: state.lastID, site: subject.site, rule: subject.rule, method: subject.method,
                    credential: credential,
                    client: subject.client, uid: subject.uid, since: now.wall, waiting: 0,
                    secondsLeft: Self.limitSeconds)
                state.pending[subject] = Pending(question: question, until: now.monotonic + Self.limitSeconds)
                isNew = true
            }
            state.lastTicket += 1
            state.pending[subject]?.waiters[state.lastTicket] = done
            state.pending[subject]?.question.waiting += 1
            if isNew { news = state.pending[subject]?.question }
            return .waiting(Ticket(subject: subject, number: state.lastTicket))
        }
        if let news { asked(news) }
        if let reply { return reply }
        done(refusal)
        return .waiting(Ticket(subject: subject, number: 0))
    }

    /// The client of a waiting request has gone. A question of nobody is not asked any more.
    package func withdraw(_ ticket: Ticket) {
        let question = state.withLock { state -> Question? in
            guard state.pending[ticket.subject]?.waiters.removeValue(forKey: ticket.number) != nil else { return nil }
            state.pending[ticket.subject]?.question.waiting -= 1
            guard state.pending[ticket.subject]?.waiters.isEmpty == true else { return nil }
            return state.pending.removeValue(forKey: ticket.subject)?.question
        }
        if let question { ended(question, nil) }
    }

    /// The person has answered. Returns the question; nil if it does not wait any more.
    package func answer(_ id: UInt64, _ answer: Answer) -> Question? {
        let now = now().monotonic
        let pending = state.withLock { state -> Pending? in
            guard let subject = state.pending.first(where: { $0.value.question.id == id })?.key else { return nil }
            if subject.isKnown, let until = Self.end(of: answer, now) {
                if state.grants.count >= Self.limit { state.grants = state.grants.filter { $0.value > now } }
                if state.grants.count < Self.limit { state.grants[subject] = until }
            }
            return state.pending.removeValue(forKey: subject)
        }
        guard let pending else { return nil }
        for done in pending.waiters.values { done(answer == .deny ? .denied : .allowed) }
        ended(pending.question, answer)
        return pending.question
    }

    /// Called every second, by any thread: ends the questions that have waited for too long.
    package func secondPassed() {
        let now = now().monotonic
        let late = state.withLock { state -> [Pending] in
            let late = state.pending.filter { $0.value.until <= now }
            for subject in late.keys { state.pending[subject] = nil }
            return Array(late.values)
        }
        end(late, .timedOut)
    }

    /// Nothing that was agreed before counts any more, and nobody waits: the list or the vault has changed.
    package func forgetAll() {
        let pending = state.withLock { state -> [Pending] in
            defer { (state.grants, state.pending) = ([:], [:]) }
            return Array(state.pending.values)
        }
        end(pending, .changed)
    }

    /// Another process has taken over. Nobody waits here any more, and later requests that this process still gets are
    /// refused, unless they were agreed to before.
    package func handOver() {
        let pending = state.withLock { state -> [Pending] in
            defer { (state.pending, state.isHandedOver) = ([:], true) }
            return Array(state.pending.values)
        }
        end(pending, .replaced)
    }

    private func end(_ questions: [Pending], _ outcome: Outcome) {
        for pending in questions {
            for done in pending.waiters.values { done(outcome) }
            ended(pending.question, nil)
        }
    }

    private static func end(of answer: Answer, _ now: Int64) -> Int64? {
        switch answer {
        case .once, .deny: nil
        case .quarter: now + quarterSeconds
        case .always: .max
        }
    }
}
