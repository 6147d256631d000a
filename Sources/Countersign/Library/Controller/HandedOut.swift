// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOConcurrencyHelpers

/// Which credentials were given for which sites, so that what is reported later can be laid at one's door.
final class HandedOut: Sendable {
    private struct Loan {
        var order: UInt64
        /// Who has it for the first time, where that is no dialogue.
        var attempt: BreakerPermit?
        /// Nobody has said that it failed for as long as others wait.
        var isUnopposed = false
    }

    private struct State {
        var next: UInt64 = 0
        var loans: [Breaker.Key: Loan] = [:]
    }

    /// How many are remembered; beyond it the one that was given longest ago is forgotten.
    private let capacity: Int
    private let state = NIOLockedValueBox(State())

    init(capacity: Int = 4096) {
        self.capacity = capacity
    }

    /// `attempt` is kept until it is ended or its time is over.
    func note(_ key: Breaker.Key, _ attempt: BreakerPermit?) {
        let forgotten = state.withLockedValue { state -> [BreakerPermit?] in
            var forgotten: [BreakerPermit?] = []
            if state.loans[key] == nil, state.loans.count >= capacity,
                let oldest = state.loans.min(by: { $0.value.order < $1.value.order })
            {
                forgotten.append(state.loans.removeValue(forKey: oldest.key)?.attempt)
            }
            state.next &+= 1
            var loan = state.loans[key] ?? Loan(order: 0)
            loan.order = state.next
            if let attempt {
                forgotten.append(loan.attempt)
                loan.attempt = attempt
            }
            state.loans[key] = loan
            return forgotten
        }
        // Their ends are told outside the lock.
        withExtendedLifetime(forgotten) {}
    }

    func contains(_ key: Breaker.Key) -> Bool { state.withLockedValue { $0.loans[key] != nil } }

    /// No failure was told in time: from now on nobody waits for a verdict on it that is not asked for.
    func wentUnopposed(_ key: Breaker.Key) { state.withLockedValue { $0.loans[key]?.isUnopposed = true } }

    func isUnopposed(_ key: Breaker.Key) -> Bool { state.withLockedValue { $0.loans[key]?.isUnopposed ?? false } }

    /// Who tries something at `origin` for the first time; only that of `key` where there is one.
    func attempts(at origin: Origin, of key: Breaker.Key?) -> [BreakerPermit] {
        state.withLockedValue { state in
            state.loans.filter { $0.key.origin == origin && (key == nil || $0.key == key) }.compactMap(\.value.attempt)
        }
    }
}
