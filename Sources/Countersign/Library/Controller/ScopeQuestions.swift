// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import Synchronization

/// The questions to a delegate: one for each lack.
final class ScopeQuestions: Sendable {
    /// What an access token lacks, according to a server.
    struct Lack: Equatable, Sendable {
        let token: CredentialReference
        let stepUp: StepUp
        /// The sentence for the person.
        let reason: String
        let target: String
        let metadata: String?

        /// The sentence is the server's choice, and may differ each time.
        static func == (left: Self, right: Self) -> Bool { left.token == right.token && left.stepUp == right.stepUp }
    }

    private final class Question: Sendable {
        let gate = Gate()
        let answer = Mutex(false)
    }

    private struct State {
        var delegate: (any ScopeDelegate)?
        /// In the order of asking, also those that are answered.
        var questions: [(lack: Lack, question: Question)] = []
    }

    private enum Place {
        /// The delegate has been asked about the same lack.
        case known(Question)
        /// The caller asks the delegate.
        case new(Question, any ScopeDelegate)
        case refused
    }

    /// How many questions are remembered.
    private static let capacity = 64
    /// How many of them are about one access token: a server can require other scopes each time.
    private static let questionsOfToken = 16
    private let state = Mutex(State())

    var delegate: (any ScopeDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    /// Asks the delegate without waiting for it. Returns whether it is deciding; also false without a delegate, if it
    /// has decided about the lack before, or if it is deciding about another lack of the sign-in.
    func begin(_ lack: Lack, at space: ProtectionSpace) -> Bool {
        switch place(for: lack) {
        case .known(let question): return !question.gate.isOpen
        case .new(let question, let delegate):
            put(question, about: lack, at: space, to: delegate)
            return true
        case .refused: return false
        }
    }

    /// Returns the delegate's answer; false if the delegate was released, it is deciding about another lack of the
    /// sign-in, or the task is cancelled.
    func ask(_ lack: Lack, at space: ProtectionSpace) async -> Bool {
        let asked: Question
        switch place(for: lack) {
        case .known(let question): asked = question
        case .new(let question, let delegate):
            put(question, about: lack, at: space, to: delegate)
            asked = question
        case .refused: return false
        }
        await asked.gate.wait()
        return asked.answer.withLock { $0 }
    }

    /// One question at a time is open for each sign-in, so that open ones need not be forgotten.
    private func place(for lack: Lack) -> Place {
        state.withLock { state in
            if let asked = state.questions.first(where: { $0.lack == lack }) { return .known(asked.question) }
            guard let delegate = state.delegate,
                !state.questions.contains(where: { $0.lack.token.name == lack.token.name && !$0.question.gate.isOpen }),
                state.questions.count(where: { $0.lack.token == lack.token }) < Self.questionsOfToken
            else { return .refused }
            if state.questions.count >= Self.capacity {
                let oldest = state.questions.firstIndex { $0.question.gate.isOpen && $0.lack.token != lack.token }
                guard let oldest else { return .refused }
                state.questions.remove(at: oldest)
            }
            let question = Question()
            state.questions.append((lack, question))
            return .new(question, delegate)
        }
    }

    private func put(
        _ question: Question, about lack: Lack, at space: ProtectionSpace, to delegate: any ScopeDelegate
    ) {
        let asked = ScopeQuestion(
            protectionSpace: space, signIn: lack.token.name, scopes: lack.stepUp.scopes,
            claims: lack.stepUp.claims, acrValues: lack.stepUp.acrValues,
            maximumAge: lack.stepUp.maxAge.map { Int($0) }, target: lack.target, resourceMetadata: lack.metadata)
        Task {
            let answer = await delegate.obtainScopes(asked)
            question.answer.withLock { $0 = answer }
            question.gate.open()
        }
    }
}

extension ScopeQuestion {
    var stepUp: StepUp {
        StepUp(scopes: scopes, claims: claims, acrValues: acrValues, maxAge: maximumAge.map { Int64($0) })
    }
}
