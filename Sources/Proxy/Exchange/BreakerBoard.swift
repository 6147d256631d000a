// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOConcurrencyHelpers
import Synchronization

/// The ``Breaker`` of all event loops, and who waits for the first attempt of another to end.
package final class BreakerBoard: Sendable {
    private struct State {
        var breaker = Breaker()
        var waiting: [Breaker.Key: [@Sendable () -> Void]] = [:]
    }

    private let state = NIOLockedValueBox(State())
    /// Something has been rejected in this run: until then no request need ask about its own.
    private let hasRejections = Atomic<Bool>(false)

    package init() {}

    /// May the credential be tried? On `.wait`, `again` is called (on any thread) when it is worth asking once more.
    package func request(_ key: Breaker.Key, again: @escaping @Sendable () -> Void) -> Breaker.Permission {
        state.withLockedValue { state in
            let permission = state.breaker.attemptRequested(key)
            if permission == .wait { state.waiting[key, default: []].append(again) }
            return permission
        }
    }

    /// Whether the credential has been rejected there and must not be sent.
    package func isRejected(_ key: @autoclosure () -> Breaker.Key) -> Bool {
        guard hasRejections.load(ordering: .acquiring) else { return false }
        let key = key()
        return state.withLockedValue { $0.breaker.isRejected(key) }
    }

    /// Whether somebody is trying the credential there for the first time, so that others wait.
    package func isTried(_ key: Breaker.Key) -> Bool { state.withLockedValue { $0.breaker.isTried(key) } }

    /// How many attempts are known.
    package var count: Int { state.withLockedValue { $0.breaker.count } }

    /// How many wait for somebody's first attempt.
    package func waiting(for key: Breaker.Key) -> Int { state.withLockedValue { $0.waiting[key]?.count ?? 0 } }

    /// An attempt that was permitted is over.
    package func ended(_ key: Breaker.Key, _ result: Breaker.Result) {
        if result == .rejected { hasRejections.store(true, ordering: .releasing) }
        let waiting = state.withLockedValue { state in
            state.breaker.attemptEnded(key, result) ? state.waiting.removeValue(forKey: key) ?? [] : []
        }
        for again in waiting { again() }
    }
}
