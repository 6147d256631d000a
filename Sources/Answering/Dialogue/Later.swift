// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Synchronization

/// Something that a dialogue waits for. The driver starts it, and hands it back with its result:
/// ``AnswerDialogue/resumed(_:with:for:)``. A result that arrives while the dialogue waits for something else is
/// ignored.
package struct Later: Sendable {
    package enum Kind: Equatable, Sendable {
        /// Another request's attempt with the same credential.
        case turn
        /// Another look-up of a proof that is not enrolled, such as a Kerberos ticket.
        case look
        /// A new access token.
        case renewal
        /// A person, who may have another password.
        case question
        /// A token of a scheme, which is computed on another thread.
        case token
    }

    package enum Result: Sendable {
        /// It has ended, without a value.
        case over
        case renewed(TokenRenewer.Outcome)
        case supplied(PasswordCredential?)
        case token(Swift.Result<DialogueToken, AuthenticationError>)
    }

    /// Asks a person, and calls its argument once, on any thread.
    package typealias Question = @Sendable (_ done: @escaping @Sendable (PasswordCredential?) -> Void) -> Void

    package let kind: Kind
    /// The outcome that is delivered unless a better one follows; nil without one.
    package let outcome: ExchangeMachine.Outcome?
    let number: UInt64
    private let work: @Sendable (@escaping @Sendable (Result) -> Void) -> Void

    init(
        _ kind: Kind, _ number: UInt64, outcome: ExchangeMachine.Outcome? = nil,
        work: @escaping @Sendable (@escaping @Sendable (Result) -> Void) -> Void
    ) {
        self.kind = kind
        self.number = number
        self.outcome = outcome
        self.work = work
    }

    /// Whether its duration is due to a person or a provider, and does not count as the server's.
    package var isOthersTime: Bool {
        switch kind {
        case .renewal, .question: true
        case .turn, .look, .token: false
        }
    }

    /// Starts it. `done` is called once, on any thread, maybe before this call returns.
    package func start(done: @escaping @Sendable (Result) -> Void) { work(done) }
}

/// A turn at the breaker, which may come before the request waits for it.
final class Turn: Sendable {
    private enum State {
        case awaited
        case wanted(@Sendable () -> Void)
        case come
    }

    private let state = Mutex(State.awaited)

    func come() {
        let waiting = state.withLock { state -> (@Sendable () -> Void)? in
            defer { state = .come }
            if case .wanted(let done) = state { return done }
            return nil
        }
        waiting?()
    }

    func whenCome(_ done: @escaping @Sendable () -> Void) {
        let hasCome = state.withLock { state in
            if case .come = state { return true }
            state = .wanted(done)
            return false
        }
        if hasCome { done() }
    }
}
