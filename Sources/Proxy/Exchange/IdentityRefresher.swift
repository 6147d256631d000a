// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignUpstream
import NIOCore

/// Receives reports on what origins make of the client certificates that they are shown. Neither function may block an
/// event loop.
package struct IdentityRefresher: Sendable {
    /// The origin ended the connection because of this identity. Returns whether another identity of the same name is
    /// in force now, so that the request may be tried once more.
    package let rejected: @Sendable (Identity) async -> Bool
    /// The origin has answered a request on a connection that shows this identity.
    package let accepted: @Sendable (Identity) -> Void

    package init(
        rejected: @escaping @Sendable (Identity) async -> Bool, accepted: @escaping @Sendable (Identity) -> Void
    ) {
        self.rejected = rejected
        self.accepted = accepted
    }
}

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
