// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import NIOConcurrencyHelpers

/// A password for one protection space that replaces one that was rejected there.
package struct ReplacementCredential: Equatable, Sendable {
    /// Whether it is stored in the vault.
    package enum Storing: Equatable, Sendable {
        case no
        /// As soon as the origin has accepted it.
        case onceAccepted
        /// It is in the vault, and therefore in every later policy.
        case done
    }

    package let credential: PasswordCredential
    package let storing: Storing

    package init(_ credential: PasswordCredential, storing: Storing) {
        self.credential = credential
        self.storing = storing
    }
}

/// Supplies credentials for origins that reject the credential of their line.
package protocol CredentialSupplier: Sendable {
    /// The credential with which to answer `space` instead of `refused`, or nil.
    func credential(
        insteadOf refused: PasswordCredential, for space: AuthenticationSpace
    ) async -> ReplacementCredential?

    /// Stores a credential that `space` has accepted in the vault. Returns the stored one, or nil.
    func store(_ credential: PasswordCredential, for space: AuthenticationSpace) async -> PasswordCredential?
}

/// The questions to the delegate and its answers. All event loops share each question.
package final class ReplacementCredentials: Sendable {
    private enum Answer: Sendable {
        case awaited(Task<ReplacementCredential?, Never>)
        case given(ReplacementCredential?)
    }

    /// The maximum number of answers. Beyond it, the delegate gets no further questions.
    private static let capacity = 1024
    /// The largest number of successive replacements after rejections.
    private static let chainLength = 8

    private let delegate: any CredentialSupplier
    private let policy: CurrentPolicy
    private let breaker: BreakerBoard?
    private let limit: Duration

    private struct Question: Hashable {
        let space: AuthenticationSpace
        /// The credential to replace.
        let credential: CredentialReference
    }

    private struct State {
        var answers: [Question: Answer] = [:]
        var storing: [Task<Void, Never>] = []
        var isStopped = false
    }

    private let state = NIOLockedValueBox(State())

    /// A question that takes longer than `limit` is answered with nil, and its task is cancelled. An answer that
    /// `breaker` knows to be rejected counts as nil. A credential that is stored in the vault is used as long as
    /// `policy` contains it.
    package init(
        delegate: any CredentialSupplier, policy: CurrentPolicy, breaker: BreakerBoard?, limit: Duration = .seconds(120)
    ) {
        self.delegate = delegate
        self.policy = policy
        self.breaker = breaker
        self.limit = limit
    }

    /// The credential to use in `space` in place of `credential`; `credential` itself unless it was replaced.
    package func standIn(for credential: PasswordCredential, in space: AuthenticationSpace) -> PasswordCredential {
        state.withLockedValue { Self.standIn(for: credential, in: space, $0) }
    }

    /// The same for a request to `origin` that was not challenged yet: the replacement if there is one for one space
    /// only.
    package func standIn(for credential: PasswordCredential, at origin: Origin) -> PasswordCredential {
        state.withLockedValue { state in
            guard !state.answers.isEmpty else { return credential }
            let reference = credential.reference
            let spaces = state.answers.keys.filter { $0.space.origin == origin && $0.credential == reference }
            guard spaces.count == 1 else { return credential }
            return Self.standIn(for: credential, in: spaces[0].space, state)
        }
    }

    private static func standIn(
        for credential: PasswordCredential, in space: AuthenticationSpace, _ state: State
    ) -> PasswordCredential {
        var current = credential
        for _ in 0..<chainLength {
            guard case .given(let answer?)? = state.answers[Question(space: space, credential: current.reference)],
                answer.storing != .done
            else { break }
            current = answer.credential
        }
        return current
    }

    /// An origin has accepted a credential of the delegate, which is now stored in the vault if that was requested.
    func accepted(_ credential: CredentialReference, in space: AuthenticationSpace) {
        state.withLockedValue { state in
            for (question, answer) in state.answers where question.space == space {
                guard case .given(let given?) = answer, given.storing == .onceAccepted,
                    given.credential.reference == credential
                else { continue }
                // Another request must not store it again.
                state.answers[question] = .given(ReplacementCredential(given.credential, storing: .no))
                state.storing.append(
                    Task {
                        guard let stored = await self.delegate.store(given.credential, for: space) else { return }
                        self.state.withLockedValue {
                            $0.answers[question] = .given(ReplacementCredential(stored, storing: .done))
                        }
                    })
            }
        }
    }

    /// The delegate's answer, which may have been given earlier; nil if it has no credential.
    func ask(insteadOf refused: PasswordCredential, for space: AuthenticationSpace) async -> ReplacementCredential? {
        let key = Question(space: space, credential: refused.reference)
        let policy = policy.current
        let task = state.withLockedValue { state -> Task<ReplacementCredential?, Never>? in
            switch state.answers[key] {
            case .given(let answer) where Self.counts(answer, under: policy): return Task { answer }
            case .awaited(let task): return task
            case .given, nil:
                // If the user has removed the credential from the vault, it is removed here, too.
                state.answers[key] = nil
                guard !state.isStopped, state.answers.count < Self.capacity else { return nil }
                let task = Task { await self.put(refused, space) }
                state.answers[key] = .awaited(task)
                return task
            }
        }
        guard let task else { return nil }
        let answer = await task.value
        state.withLockedValue { state in
            if case .awaited(task)? = state.answers[key] { state.answers[key] = .given(answer) }
        }
        return answer
    }

    /// Whether an earlier answer is still valid. A stored credential may have been removed or changed since.
    private static func counts(_ answer: ReplacementCredential?, under policy: Policy) -> Bool {
        guard let answer, answer.storing == .done else { return true }
        return policy.credential(named: answer.credential.name)?.reference?.source == answer.credential.source
    }

    /// Returns when the credentials that were accepted so far are stored, or could not be.
    package func finishStoring() async {
        for task in state.withLockedValue({ $0.storing }) { await task.value }
    }

    /// Stops asking and cancels the open questions. Requests that wait for an answer continue without one. Returns when
    /// accepted credentials have been stored.
    package func stop() async {
        await finishStoring()
        let asked = state.withLockedValue { state in
            state.isStopped = true
            return state.answers.values.compactMap { answer in
                if case .awaited(let task) = answer { task } else { nil }
            }
        }
        for task in asked { task.cancel() }
        for task in asked { _ = await task.value }
    }

    private func put(_ refused: PasswordCredential, _ space: AuthenticationSpace) async -> ReplacementCredential? {
        let (answers, continuation) = AsyncStream.makeStream(of: ReplacementCredential?.self)
        let asking = Task { [delegate] in
            continuation.yield(await delegate.credential(insteadOf: refused, for: space))
        }
        let waiting = Task { [limit] in
            try? await Task.sleep(for: limit)
            continuation.yield(nil)
        }
        defer {
            asking.cancel()
            waiting.cancel()
        }
        for await answer in answers {
            guard let answer, let breaker else { return answer }
            let key = Breaker.Key(space: space, credential: answer.credential.reference)
            return breaker.isRejected(key) ? nil : answer
        }
        return nil
    }
}
