// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOConcurrencyHelpers
import Synchronization

/// The ``Breaker`` that all event loops share, with the requests that wait for another request's first attempt.
package final class BreakerBoard: Sendable {
    private struct State {
        var breaker = Breaker()
        var waiting: [Breaker.Key: [@Sendable () -> Void]] = [:]
    }

    private let state = NIOLockedValueBox(State())
    /// Whether any credential has been rejected in this run. If not, ``isRejected(_:)`` takes no lock.
    private let hasRejections = Atomic<Bool>(false)

    package init() {}

    /// Requests permission to try the credential. On `.wait`, `again` is called on any thread when the caller should
    /// request again.
    package func request(_ key: Breaker.Key, again: @escaping @Sendable () -> Void) -> Breaker.Permission {
        state.withLockedValue { state in
            let permission = state.breaker.attemptRequested(key)
            if permission == .wait { state.waiting[key, default: []].append(again) }
            return permission
        }
    }

    /// Whether the credential was rejected there and must not be sent.
    package func isRejected(_ key: @autoclosure () -> Breaker.Key) -> Bool {
        guard hasRejections.load(ordering: .acquiring) else { return false }
        let key = key()
        return state.withLockedValue { $0.breaker.isRejected(key) }
    }

    /// Whether a request is trying the credential there for the first time, so that others must wait.
    package func isTried(_ key: Breaker.Key) -> Bool { state.withLockedValue { $0.breaker.isTried(key) } }

    /// The number of stored keys.
    package var count: Int { state.withLockedValue { $0.breaker.count } }

    /// The number of requests that wait for another request's first attempt.
    package func waiting(for key: Breaker.Key) -> Int { state.withLockedValue { $0.waiting[key]?.count ?? 0 } }

    /// Ends an attempt that was permitted.
    package func ended(_ key: Breaker.Key, _ result: Breaker.Result) {
        if result == .rejected { hasRejections.store(true, ordering: .releasing) }
        let waiting = state.withLockedValue { state in
            state.breaker.attemptEnded(key, result) ? state.waiting.removeValue(forKey: key) ?? [] : []
        }
        for again in waiting { again() }
    }
}
