// SPDX-License-Identifier: Apache-2.0

package import CountersignAnswering
import CountersignChallenges
import Synchronization

/// A question to a ``ScopeDelegate``: a site needs more than a sign-in's access token permits.
public struct ScopeQuestion: Equatable, Sendable {
    /// The site.
    public let protectionSpace: ProtectionSpace
    /// The name of the sign-in.
    public let signIn: String
    /// The scopes that the site requires (RFC 6750 §3); empty if it does not name them. ``SignIns/scopes(lackedIn:)``
    /// looks in the metadata of the resource, too.
    public let scopes: [String]
    /// The claims that the token must have, a JSON object as in the parameter `claims` (OpenID Connect Core §5.5); nil
    /// if the site requires none.
    public let claims: String?
    /// The classes of authentication of which the site requires one (RFC 9470 §3); empty for any.
    public let acrValues: [String]
    /// How long ago the person may have signed in, in seconds (RFC 9470 §3); nil for any time.
    public let maximumAge: Int?
    /// The path and query of the request.
    public let target: String
    /// Where the metadata of the resource is, in the site's words (RFC 9728 §5.1); nil if it does not say.
    public let resourceMetadata: String?

    /// Creates a question, for the tests of a program.
    public init(
        protectionSpace: ProtectionSpace, signIn: String, scopes: [String], claims: String? = nil,
        acrValues: [String] = [], maximumAge: Int? = nil, target: String = "/", resourceMetadata: String? = nil
    ) {
        self.protectionSpace = protectionSpace
        self.signIn = signIn
        self.scopes = scopes
        self.claims = claims
        self.acrValues = acrValues
        self.maximumAge = maximumAge
        self.target = target
        self.resourceMetadata = resourceMetadata
    }
}

extension ScopeQuestion {
    var stepUp: StepUp {
        StepUp(scopes: scopes, claims: claims, acrValues: acrValues, maxAge: maximumAge.map { Int64($0) })
    }
}

/// Asks the person to sign in again when a site requires more of an access token: scopes (`insufficient_scope`, RFC
/// 6750 §3.1), claims (`insufficient_claims`), or another sign-in (`insufficient_user_authentication`, RFC 9470).
public protocol ScopeDelegate: Sendable {
    /// Returns whether the person has signed in again, for example with
    /// ``SignIns/enrollment(again:meeting:)``; the request is then sent once more, with the new token.
    ///
    /// The request of an exchange waits for the answer; a `ChallengeProxy` delivers the site's response meanwhile,
    /// and its next request gets the new token. Requests that lack the same scopes share one question. While it is
    /// open, the delegate gets no question about other scopes of the same sign-in: the site's response is delivered.
    /// After false, it gets no further question about these scopes until the token changes. Until then, it gets
    /// questions about at most 16 different sets of scopes.
    func obtainScopes(_ question: ScopeQuestion) async -> Bool
}

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

extension ChallengeController {
    /// Asks the delegate about requests of a proxy.
    package var scopeAsker: ScopeAsker {
        ScopeAsker { [scopeQuestions] lack in
            let space = ProtectionSpace(
                scheme: lack.origin.scheme.rawValue, host: lack.origin.host, port: Int(lack.origin.port),
                authenticationMethod: .bearer)
            let question = ScopeQuestions.Lack(
                token: lack.token, stepUp: lack.stepUp, reason: lack.reason, target: lack.target,
                metadata: lack.metadata)
            return scopeQuestions.begin(question, at: space) ? "the person is being asked for it" : nil
        }
    }
}
