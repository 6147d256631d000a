// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Synchronization

/// Whether a credential was accepted a short time ago, so that requests may carry it without a further check. A
/// ``BreakerBoard`` keeps it up to date; every request that is answered ahead of a challenge reads it.
package final class CredentialPulse: Sendable {
    /// In seconds since 1970; far in the past if it is not proven.
    private let provenAt = Atomic<Int64>(.min)

    func set(_ time: Int64?) { provenAt.store(time ?? .min, ordering: .releasing) }

    /// One atomic load. A clock that was set back proves nothing.
    func isProven(at now: Int64) -> Bool {
        (0..<Breaker.provenSeconds).contains(now &- provenAt.load(ordering: .acquiring))
    }
}
