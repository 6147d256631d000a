// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Synchronization

/// Records which credentials were given out for which sites, so that outcomes reported later can be attributed to them.
final class AnswersInUse: Sendable {
    private struct Loan {
        var order: UInt64
        /// The permit of the first use, if that is not part of an exchange.
        var permit: BreakerPermit?
        /// Whether the permit expired without a failure being reported.
        var isUnopposed = false
    }

    private struct State {
        var next: UInt64 = 0
        var loans: [Breaker.Key: Loan] = [:]
    }

    /// The largest number of entries. Beyond it, the least recently given one is removed.
    private let capacity: Int
    private let state = Mutex(State())

    init(capacity: Int = 4096) {
        self.capacity = capacity
    }

    /// Records that a credential was given out. Retains `permit` until it ends or expires.
    func note(_ key: Breaker.Key, _ permit: BreakerPermit?) {
        let forgotten = state.withLock { state -> [BreakerPermit?] in
            var forgotten: [BreakerPermit?] = []
            if state.loans[key] == nil, state.loans.count >= capacity,
                let oldest = state.loans.min(by: { $0.value.order < $1.value.order })
            {
                forgotten.append(state.loans.removeValue(forKey: oldest.key)?.permit)
            }
            state.next &+= 1
            var loan = state.loans[key] ?? Loan(order: 0)
            loan.order = state.next
            if let permit {
                forgotten.append(loan.permit)
                loan.permit = permit
            }
            state.loans[key] = loan
            return forgotten
        }
        // Released outside the lock, because their `deinit` calls the breaker.
        withExtendedLifetime(forgotten) {}
    }

    func contains(_ key: Breaker.Key) -> Bool { state.withLock { $0.loans[key] != nil } }

    /// Records that no failure was reported in time. From now on, answers outside an exchange need not wait.
    func wentUnopposed(_ key: Breaker.Key) { state.withLock { $0.loans[key]?.isUnopposed = true } }

    func isUnopposed(_ key: Breaker.Key) -> Bool { state.withLock { $0.loans[key]?.isUnopposed ?? false } }

    /// The permits for first uses in `space`, or only that of `key` if it is given.
    func permits(in space: AuthenticationSpace, of key: Breaker.Key?) -> [BreakerPermit] {
        state.withLock { state in
            state.loans.filter { $0.key.space == space && (key == nil || $0.key == key) }.compactMap(\.value.permit)
        }
    }
}
