// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import CountersignTLS
import Testing

@testable import CountersignProxy

/// A delegate that answers when the test tells it to.
final class SlowDelegate: ServerTrustDecider {
    private struct State {
        var questions: [UntrustedServer] = []
        var waiting: [CheckedContinuation<TrustAnswer, Never>] = []
        var cancellations = 0
        var heard: [(count: Int, hearer: CheckedContinuation<Void, Never>)] = []
    }

    private let state = NIOLockedValueBox(State())

    var questions: [UntrustedServer] { state.withLockedValue { $0.questions } }
    var cancellations: Int { state.withLockedValue { $0.cancellations } }

    func decide(_ question: UntrustedServer) async -> TrustAnswer {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let hearers = state.withLockedValue { state in
                    state.questions.append(question)
                    state.waiting.append(continuation)
                    let ready = state.heard.filter { $0.count <= state.questions.count }
                    state.heard.removeAll { $0.count <= state.questions.count }
                    return ready
                }
                for hearer in hearers { hearer.hearer.resume() }
            }
        } onCancel: {
            state.withLockedValue { $0.cancellations += 1 }
        }
    }

    /// Returns as soon as this many questions have been asked.
    func hear(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLockedValue { state in
                guard state.questions.count < count else { return true }
                state.heard.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Answers all open questions.
    func answer(_ answer: TrustAnswer) {
        let waiting = state.withLockedValue { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: answer) }
    }
}

@Suite struct TrustQuestionsTests {
    /// Questions on an event loop whose time the test advances. Only used on that loop.
    private final class Setting: Sendable {
        let loop = NIOAsyncTestingEventLoop()
        let delegate = SlowDelegate()
        let answers = NIOLockedValueBox<[TrustAnswer]>([])
        private let questions: NIOLoopBound<TrustQuestions>

        init() async throws {
            let loop = loop
            questions = try await loop.executeInContext {
                NIOLoopBound(TrustQuestions(loop: loop, limit: .seconds(30)), eventLoop: loop)
            }
        }

        @discardableResult
        func ask(
            _ host: String = "a.example", leaf: UInt8 = 1, reasons: [ServerTrust.Reason] = [.selfSigned]
        ) async throws -> TrustQuestions.Ticket {
            try await loop.executeInContext { [questions, answers, delegate] in
                let question = UntrustedServer(
                    host: host, port: 443, trust: ServerTrust(chain: [], reasons: reasons), address: "", tlsVersion: "")
                let key = TrustQuestions.Key(
                    origin: Origin(scheme: .https, host: host, port: 443), leaf: [leaf], reasons: Set(reasons))
                return questions.value.ask(question, key, of: delegate) { answer in
                    answers.withLockedValue { $0.append(answer) }
                }
            }
        }

        func withdraw(_ ticket: TrustQuestions.Ticket) async throws {
            try await loop.executeInContext { [questions] in questions.value.withdraw(ticket) }
        }

        var open: Int {
            get async throws { try await loop.executeInContext { [questions] in questions.value.count } }
        }

        /// Runs the loop until this many answers have arrived.
        func wait(for count: Int) async -> [TrustAnswer] {
            while answers.withLockedValue({ $0.count }) < count {
                await loop.run()
                await Task.yield()
            }
            return answers.withLockedValue { $0 }
        }

        func end() async {
            delegate.answer(.refuse)
            await loop.run()
            await loop.shutdownGracefully()
        }
    }

    @Test(.timeLimit(.minutes(15)), arguments: [TrustAnswer.undecided, .proceed(answering: false), .refuse])
    func theDelegatesWordIsPassedOn(_ answer: TrustAnswer) async throws {
        let setting = try await Setting()
        try await setting.ask()
        await setting.delegate.hear(1)
        #expect(setting.answers.withLockedValue { $0.isEmpty })
        setting.delegate.answer(answer)
        #expect(await setting.wait(for: 1) == [answer])
        #expect(try await setting.open == 0)
        await setting.end()
    }

    @Test(.timeLimit(.minutes(15))) func theSameQuestionIsAskedOnce() async throws {
        let setting = try await Setting()
        for _ in 0..<5 { try await setting.ask() }
        await setting.delegate.hear(1)
        #expect(try await setting.open == 1)
        setting.delegate.answer(.proceed(answering: false))
        #expect(await setting.wait(for: 5).count == 5)
        #expect(setting.delegate.questions.count == 1)
        // A later one is a new question.
        try await setting.ask()
        await setting.delegate.hear(2)
        await setting.end()
    }

    @Test(.timeLimit(.minutes(15))) func anotherHostLeafOrReasonIsAnotherQuestion() async throws {
        let setting = try await Setting()
        try await setting.ask()
        try await setting.ask("b.example")
        try await setting.ask(leaf: 2)
        try await setting.ask(reasons: [.selfSigned, .revoked])
        await setting.delegate.hear(4)
        #expect(try await setting.open == 4)
        await setting.end()
    }

    @Test(.timeLimit(.minutes(15))) func afterThirtySecondsTheServerIsRefused() async throws {
        let setting = try await Setting()
        try await setting.ask()
        try await setting.ask()
        await setting.delegate.hear(1)
        await setting.loop.advanceTime(by: .milliseconds(29_999))
        #expect(setting.answers.withLockedValue { $0.isEmpty })
        await setting.loop.advanceTime(by: .milliseconds(1))
        #expect(setting.answers.withLockedValue { $0 } == [.refuse, .refuse])
        #expect(setting.delegate.cancellations == 1)
        // An answer that comes too late is ignored.
        setting.delegate.answer(.proceed(answering: false))
        await setting.loop.run()
        #expect(setting.answers.withLockedValue { $0.count } == 2)
        await setting.end()
    }

    @Test(.timeLimit(.minutes(15))) func aWithdrawnTicketGetsNoAnswerAndTheLastOneEndsTheQuestion() async throws {
        let setting = try await Setting()
        let first = try await setting.ask()
        let second = try await setting.ask()
        await setting.delegate.hear(1)
        try await setting.withdraw(first)
        #expect(try await setting.open == 1)
        #expect(setting.delegate.cancellations == 0)
        try await setting.withdraw(first)
        try await setting.withdraw(second)
        #expect(try await setting.open == 0)
        #expect(setting.delegate.cancellations == 1)
        setting.delegate.answer(.proceed(answering: false))
        await setting.loop.advanceTime(by: .seconds(60))
        #expect(setting.answers.withLockedValue { $0.isEmpty })
        await setting.end()
    }
}
