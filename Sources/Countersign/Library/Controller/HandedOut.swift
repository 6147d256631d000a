// SPDX-License-Identifier: Apache-2.0

import Challenges
import NIOConcurrencyHelpers

/// Which credentials were given for which sites, so that a failure that is reported later can be laid at one's door.
final class HandedOut: Sendable {
    private struct State {
        var next: UInt64 = 0
        var keys: [Breaker.Key: UInt64] = [:]
    }

    /// How many are remembered; beyond it the one that was given longest ago is forgotten.
    private let capacity: Int
    private let state = NIOLockedValueBox(State())

    init(capacity: Int = 4096) {
        self.capacity = capacity
    }

    func note(_ key: Breaker.Key) {
        state.withLockedValue { state in
            if state.keys[key] == nil, state.keys.count >= capacity,
                let oldest = state.keys.min(by: { $0.value < $1.value })
            {
                state.keys[oldest.key] = nil
            }
            state.next &+= 1
            state.keys[key] = state.next
        }
    }

    func contains(_ key: Breaker.Key) -> Bool { state.withLockedValue { $0.keys[key] != nil } }
}
