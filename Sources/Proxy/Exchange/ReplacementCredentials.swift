// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOConcurrencyHelpers

/// A password for one origin that replaces one that the origin has rejected.
package struct ReplacementCredential: Equatable, Sendable {
    package let credential: PasswordCredential
    /// Whether it is already in the vault, and therefore in every later policy.
    package let isKept: Bool

    package init(_ credential: PasswordCredential, isKept: Bool) {
        self.credential = credential
        self.isKept = isKept
    }
}

/// Supplies credentials for origins that reject the credential of their line.
package protocol CredentialSupplier: Sendable {
    /// The credential with which to answer `space` instead of `refused`, or nil.
    func credential(
        insteadOf refused: PasswordCredential, for space: AuthenticationSpace
    ) async -> ReplacementCredential?
}

/// The questions to the delegate and its answers. Each question is asked once for all event loops.
package final class ReplacementCredentials: Sendable {
    private enum Answer: Sendable {
        case awaited(Task<ReplacementCredential?, Never>)
        case given(ReplacementCredential?)
    }

    /// The maximum number of answers. Beyond it, no more questions are asked.
    private static let capacity = 1024
    /// How many successive replacements are followed, each of which was rejected in turn.
    private static let chainLength = 8

    private let delegate: any CredentialSupplier
    private let policy: CurrentPolicy
    private let limit: Duration
    private struct Question: Hashable {
        let origin: Origin
        let credential: CredentialReference
    }

    private struct State {
        var answers: [Question: Answer] = [:]
        var isStopped = false
    }

    private let state = NIOLockedValueBox(State())

    /// A question that takes longer than `limit` is answered with nil, and its task is cancelled. A credential that is
    /// stored in the vault is used as long as `policy` contains it.
    package init(delegate: any CredentialSupplier, policy: CurrentPolicy, limit: Duration = .seconds(120)) {
        self.delegate = delegate
        self.policy = policy
        self.limit = limit
    }

    /// The credential to use at `origin` in place of `credential`, which its line names; `credential` itself unless it
    /// was replaced.
    package func standIn(for credential: PasswordCredential, at origin: Origin) -> PasswordCredential {
        state.withLockedValue { state in
            var current = credential
            for _ in 0..<Self.chainLength {
                guard case .given(let answer?)? = state.answers[Self.key(current, origin)], !answer.isKept else {
                    break
                }
                current = answer.credential
            }
            return current
        }
    }

    /// The delegate's answer, which may have been given earlier; nil if it has no credential.
    func ask(insteadOf refused: PasswordCredential, for space: AuthenticationSpace) async -> ReplacementCredential? {
        let key = Self.key(refused, space.origin)
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
        guard let answer, answer.isKept else { return true }
        guard case .open(let credentials, _) = policy.enrolled else { return false }
        return credentials[answer.credential.name]?.source == answer.credential.source
    }

    /// Stops asking and cancels the open questions. Requests that wait for an answer continue without one.
    package func stop() async {
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
        for await answer in answers { return answer }
        return nil
    }

    private static func key(_ credential: PasswordCredential, _ origin: Origin) -> Question {
        Question(origin: origin, credential: credential.reference)
    }
}
