// SPDX-License-Identifier: Apache-2.0

import Challenges
import Proxy
import NIOConcurrencyHelpers

/// The breaker's permission for one dialogue. A dialogue that ends without a verdict gives it back.
final class Attempt: Sendable {
    private struct Claim {
        let key: Breaker.Key
        let board: BreakerBoard
    }

    private let claim = NIOLockedValueBox<Claim?>(nil)

    /// What became of asking for permission.
    enum Permission: Equatable {
        case go
        case refused(reason: String)
        case cancelled
    }

    /// Waits while another dialogue tries the same credential at the same site for the first time, as long as the task
    /// is not cancelled.
    func request(_ key: Breaker.Key, of board: BreakerBoard) async -> Permission {
        if claim.withLockedValue({ $0?.key == key }) { return .go }
        end(.inconclusive)
        while !Task.isCancelled {
            let turn = Gate()
            switch board.request(key, again: { turn.open() }) {
            case .go:
                claim.withLockedValue { $0 = Claim(key: key, board: board) }
                return .go
            case .refused(let reason):
                return .refused(reason: reason)
            case .wait:
                await turn.wait()
            }
        }
        return .cancelled
    }

    /// How the dialogue ended; the first word counts.
    func end(_ result: Breaker.Result) {
        let claimed = claim.withLockedValue { claim in
            defer { claim = nil }
            return claim
        }
        if let claimed { claimed.board.ended(claimed.key, result) }
    }

    deinit { end(.inconclusive) }
}
