// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOConcurrencyHelpers

/// A password for one origin, in the place of one that the origin has refused.
package struct ReplacementCredential: Equatable, Sendable {
    package let credential: PasswordCredential
    /// The vault has it by now, so that every later policy has it too.
    package let isKept: Bool

    package init(_ credential: PasswordCredential, isKept: Bool) {
        self.credential = credential
        self.isKept = isKept
    }
}

/// The caller's word on origins that refuse the credential of their line.
package protocol CredentialSupplier: Sendable {
    /// What to answer `space` with instead of `refused`, or nil.
    func credential(
        insteadOf refused: PasswordCredential, for space: AuthenticationSpace
    ) async -> ReplacementCredential?
}

/// What the delegate has been asked, and what it said: each question once, for all event loops.
package final class ReplacementCredentials: Sendable {
    private enum Answer: Sendable {
        case awaited(Task<ReplacementCredential?, Never>)
        case given(ReplacementCredential?)
    }

    /// How many answers are remembered; beyond it nobody is asked any more.
    private static let capacity = 1024
    /// How many answers, each refused in its turn, are followed.
    private static let chainLength = 8

    private let delegate: any CredentialSupplier
    private let policy: CurrentPolicy
    private let limit: Duration
    private struct State {
        var answers: [Breaker.Key: Answer] = [:]
        var isStopped = false
    }

    private let state = NIOLockedValueBox(State())

    /// After `limit` a question's answer is nil, and its task is cancelled. What the vault keeps counts for as long as
    /// `policy` has it.
    package init(delegate: any CredentialSupplier, policy: CurrentPolicy, limit: Duration = .seconds(120)) {
        self.delegate = delegate
        self.policy = policy
        self.limit = limit
    }

    /// What is used at `origin` where its line says `credential`.
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

    /// What the delegate says, now or earlier; nil: nothing.
    func ask(insteadOf refused: PasswordCredential, for space: AuthenticationSpace) async -> ReplacementCredential? {
        let key = Self.key(refused, space.origin)
        let policy = policy.current
        let task = state.withLockedValue { state -> Task<ReplacementCredential?, Never>? in
            switch state.answers[key] {
            case .given(let answer) where Self.counts(answer, under: policy): return Task { answer }
            case .awaited(let task): return task
            case .given, nil:
                // What the person has taken out of the vault is forgotten here too.
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

    /// Whether an answer that was given earlier is still one: what is kept may have been removed or changed since.
    private static func counts(_ answer: ReplacementCredential?, under policy: Policy) -> Bool {
        guard let answer, answer.isKept else { return true }
        guard case .open(let credentials, _) = policy.enrollment else { return false }
        return credentials[answer.credential.name]?.source == answer.credential.source
    }

    /// Nobody is asked any more, and whoever is being asked is told so: what waits for them goes on without.
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

    private static func key(_ credential: PasswordCredential, _ origin: Origin) -> Breaker.Key {
        Breaker.Key(origin: origin, credential: credential.reference)
    }
}
