// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// Receives the verdicts of origins on the client certificates presented to them. Neither function may block an event
/// loop.
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
