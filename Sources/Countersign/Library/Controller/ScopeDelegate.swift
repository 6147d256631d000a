// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Synchronization

/// A question to a ``ScopeDelegate``: a site needs more than a sign-in's access token permits.
public struct ScopeQuestion: Equatable, Sendable {
    /// The site.
    public let protectionSpace: ProtectionSpace
    /// The name of the sign-in.
    public let signIn: String
    /// The scopes that the site requires (RFC 6750 §3); empty if it does not name them.
    public let scopes: [String]
}

/// Asks the person for more scopes when a site requires them (`insufficient_scope`, RFC 6750 §3.1).
public protocol ScopeDelegate: Sendable {
    /// Returns whether the person has signed in again, for example with
    /// ``SignIns/enrollment(again:addingScopes:)``; the request is then sent once more, with the new token.
    ///
    /// The request waits for the answer. Requests that lack the same scopes share one question. After false, the
    /// delegate is not asked about these scopes again until the token changes.
    func obtainScopes(_ question: ScopeQuestion) async -> Bool
}

/// The questions to a delegate: one for each lack.
final class ScopeQuestions: Sendable {
    /// What an access token lacks, as a server says.
    struct Lack: Hashable, Sendable {
        let token: CredentialReference
        let scopes: [String]
        /// The sentence for the person.
        let reason: String
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

    /// How many answers are remembered.
    private static let capacity = 64
    private let state = Mutex(State())

    var delegate: (any ScopeDelegate)? {
        get { state.withLock { $0.delegate } }
        set { state.withLock { $0.delegate = newValue } }
    }

    /// Returns the delegate's answer; false if the task is cancelled.
    func ask(_ lack: Lack, at space: ProtectionSpace) async -> Bool {
        let (question, delegate) = state.withLock { state -> (Question, (any ScopeDelegate)?) in
            if let asked = state.questions.first(where: { $0.lack == lack }) { return (asked.question, nil) }
            if state.questions.count >= Self.capacity { state.questions.removeFirst() }
            let question = Question()
            state.questions.append((lack, question))
            return (question, state.delegate)
        }
        if let delegate {
            let asked = ScopeQuestion(protectionSpace: space, signIn: lack.token.name, scopes: lack.scopes)
            Task {
                let answer = await delegate.obtainScopes(asked)
                question.answer.withLock { $0 = answer }
                question.gate.open()
            }
        }
        await question.gate.wait()
        return question.answer.withLock { $0 }
    }
}
