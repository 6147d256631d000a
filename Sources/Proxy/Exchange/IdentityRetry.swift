// SPDX-License-Identifier: Apache-2.0

import CountersignUpstream
import NIOCore

/// The one retry that each request or CONNECT gets after the origin rejects a client identity.
struct IdentityRetry {
    private var isSpent = false

    /// Returns false, and never calls `completion`, if `error` has another cause or the retry was used. Otherwise calls
    /// `completion` once, on the event loop, with whether another identity is in force now.
    mutating func begin(
        after error: UpstreamError, _ services: LoopServices, completion: @escaping (Bool) -> Void
    ) -> Bool {
        guard !isSpent, let identity = error.rejectedIdentity, let refresher = services.shared.identityRefresher else {
            return false
        }
        isSpent = true
        services.loop.makeFutureWithTask { await refresher.rejected(identity) }
            .assumeIsolated()
            .whenComplete { completion((try? $0.get()) ?? false) }
        return true
    }
}
