// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// Who is told what origins make of the client identities that they are shown. Neither verb blocks an event loop.
package struct IdentityRefresher: Sendable {
    /// The origin ended the connection because of this identity. Whether another one of its name is in force now, so that the
    /// request may be tried once more.
    package let rejected: @Sendable (Identity) async -> Bool
    /// The origin has answered a request behind this identity.
    package let accepted: @Sendable (Identity) -> Void

    package init(
        rejected: @escaping @Sendable (Identity) async -> Bool, accepted: @escaping @Sendable (Identity) -> Void
    ) {
        self.rejected = rejected
        self.accepted = accepted
    }
}
