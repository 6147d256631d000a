// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Puts the messages of a window's pages to the person, one after the other.
final class PageDialogue: Sendable {
    private struct State {
        /// Each waits for the previous one.
        var questions: [Task<Void, Never>] = []
        var hasEnded = false
    }

    /// How many messages a sign-in may have: the page can send them without end.
    static let maximumMessages = 100

    private let state = Mutex(State())

    /// Runs `question` after the previous ones; never, if the dialogue has ended. Returns false if there were too many.
    func ask(_ question: @escaping @Sendable () async -> Void) -> Bool {
        state.withLock { state in
            guard !state.hasEnded else { return true }
            guard state.questions.count < Self.maximumMessages else { return false }
            let former = state.questions.last
            state.questions.append(
                Task {
                    await former?.value
                    if !Task.isCancelled { await question() }
                })
            return true
        }
    }

    /// The asking page is gone: cancels the open question to the person, and those that wait.
    func forget() {
        for question in state.withLock({ $0.questions }) { question.cancel() }
    }

    /// Permits no further question.
    func end() {
        state.withLock { $0.hasEnded = true }
        forget()
    }

    /// Returns when no question is open. Call ``end()`` first.
    func hasEnded() async {
        await state.withLock { $0.questions.last }?.value
    }
}
