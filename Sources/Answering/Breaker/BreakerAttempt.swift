// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// An attempt that the breaker has permitted. It ends once: with its result, or when it is released. Others that want
/// to use the credential wait until then.
///
/// Belongs to the exchange that makes the attempt, and is used on the same event loop or thread.
package final class BreakerAttempt {
    package private(set) var key: Breaker.Key
    /// The answer was sent, and there is no response yet. If no exchange waits for one any longer, the attempt ends as
    /// unknown.
    package var awaitsVerdict = false

    private let request: Breaker.RequestTag
    private let board: BreakerBoard
    private var hasEnded = false

    /// `board` has just permitted the attempt.
    package init(_ key: Breaker.Key, for request: Breaker.RequestTag = .unknown, permittedBy board: BreakerBoard) {
        self.key = key
        self.request = request
        self.board = board
    }

    deinit {
        if !hasEnded { board.ended(key, for: request, awaitsVerdict ? .unknown : .inconclusive) }
    }

    /// Later calls have no effect.
    @discardableResult
    package func end(_ result: Breaker.Result) -> Breaker.Finding {
        guard !hasEnded else { return .unremarkable }
        hasEnded = true
        return board.ended(key, for: request, result)
    }

    /// Ends the attempt with a result that is about `other`, which may be the same credential in another space.
    package func end(_ result: Breaker.Result, of other: Breaker.Key) -> Breaker.Finding {
        guard other != key else { return end(result) }
        end(.inconclusive)
        return board.ended(other, for: request, result)
    }

    /// The connection ended without a response to the answer. Returns whether the attempt goes on, with the answer sent
    /// once more; if not, it has ended.
    package func wasUnanswered() -> Bool {
        awaitsVerdict = false
        guard !hasEnded else { return true }
        guard let repeated = board.wasUnanswered(key, for: request) else {
            hasEnded = true
            return false
        }
        key = repeated
        return true
    }
}
