// SPDX-License-Identifier: Apache-2.0

import CountersignEvents
import Synchronization

/// Asks the person the questions that wait, in one more way beside the page and `countersign approve`. Nothing here
/// blocks the caller: each asker has a thread of its own.
package protocol QuestionAsker: Sendable {
    /// There is a new question.
    func questionAsked()
    /// A question does not wait any more. `answer` is the word of the answer; nil without one.
    func questionEnded(_ id: UInt64, answer: String?)
    /// Asks nothing more, and leaves nothing behind. Waits for that, for at most a second.
    func stop()
    /// Whether the person sees the questions now where the log is, which need not have them, too.
    var isInPlaceOfLog: Bool { get }
}

/// Where the questions are, and where the answers go.
package struct QuestionDesk: Sendable {
    /// The questions that wait, the oldest first.
    package let waiting: @Sendable () -> [QuestionEvent]
    /// Returns false if the question does not wait any more.
    package let answer: @Sendable (UInt64, QuestionAnswer) -> Bool

    package init(
        waiting: @escaping @Sendable () -> [QuestionEvent],
        answer: @escaping @Sendable (UInt64, QuestionAnswer) -> Bool
    ) {
        self.waiting = waiting
        self.answer = answer
    }
}

/// The answers that a key or a button gives. The raw values are those of `countersign approve`.
package enum QuestionAnswer: String, Sendable, CaseIterable {
    case once
    /// For the program, for 15 minutes.
    case quarter = "15-minutes"
    case deny
}

/// What has happened since an asker's thread looked last.
final class QuestionInbox: Sendable {
    struct Ending: Equatable {
        let id: UInt64
        let answer: String?
    }

    private let state = Mutex((endings: [Ending](), isStopped: false))
    /// Wakes the thread.
    let bell: Bell

    init?() {
        guard let bell = Bell() else { return nil }
        self.bell = bell
    }

    func tell(_ ending: Ending) {
        state.withLock { $0.endings.append(ending) }
        bell.ring()
    }

    func stop() {
        state.withLock { $0.isStopped = true }
        bell.ring()
    }

    var isStopped: Bool { state.withLock { $0.isStopped } }

    func takeEndings() -> [Ending] {
        state.withLock { state in
            defer { state.endings = [] }
            return state.endings
        }
    }
}
