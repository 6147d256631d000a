// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignProxy
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
    /// The request of an exchange waits for the answer; a ``ChallengeProxy`` delivers the site's response meanwhile,
    /// and its next request gets the new token. Requests that lack the same scopes share one question. After false, the
    /// delegate is not asked about these scopes again until the token changes.
    func obtainScopes(_ question: ScopeQuestion) async -> Bool
}

/// The questions to a delegate: one for each lack.
final class ScopeQuestions: Sendable {
    /// What an access token lacks, as a server says.
    struct Lack: Equatable, Sendable {
        let token: CredentialReference
        let scopes: [String]
        /// The sentence for the person.
        let reason: String

        /// The order of the scopes and the sentence are the server's choice, and may differ each time.
        static func == (left: Self, right: Self) -> Bool {
            left.token == right.token && Set(left.scopes) == Set(right.scopes)
        }
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

    /// Asks the delegate, and waits for nothing. Returns whether it is deciding; false also if there is none, or it has
    /// decided about the lack before.
    func begin(_ lack: Lack, at space: ProtectionSpace) -> Bool {
        let isOpen = state.withLock { state in
            guard state.delegate != nil else { return false }
            return state.questions.first { $0.lack == lack }.map { !$0.question.gate.isOpen } ?? true
        }
        if isOpen { Task { await ask(lack, at: space) } }
        return isOpen
    }

    /// Returns the delegate's answer; false if there is none any more, or the task is cancelled.
    @discardableResult
    func ask(_ lack: Lack, at space: ProtectionSpace) async -> Bool {
        let asking = state.withLock { state -> (question: Question, delegate: (any ScopeDelegate)?)? in
            if let asked = state.questions.first(where: { $0.lack == lack }) { return (asked.question, nil) }
            guard let delegate = state.delegate else { return nil }
            if state.questions.count >= Self.capacity { state.questions.removeFirst() }
            let question = Question()
            state.questions.append((lack, question))
            return (question, delegate)
        }
        guard let (question, delegate) = asking else { return false }
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

extension ChallengeController {
    /// Asks the delegate about requests of a proxy.
    var scopeAsker: ScopeAsker {
        ScopeAsker { [scopeQuestions] lack in
            let space = ProtectionSpace(
                scheme: lack.origin.scheme.rawValue, host: lack.origin.host, port: Int(lack.origin.port),
                authenticationMethod: .bearer)
            let question = ScopeQuestions.Lack(token: lack.token, scopes: lack.scopes, reason: lack.reason)
            return scopeQuestions.begin(question, at: space) ? "the person is being asked for it" : nil
        }
    }
}
