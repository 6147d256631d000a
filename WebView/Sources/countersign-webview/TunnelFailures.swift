// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Why servers have no tunnel, by `host:port`. Each has the outcome of its last CONNECT request.
final class TunnelFailures: Sendable {
    private let reasons = Mutex<[String: String]>([:])

    subscript(authority: String) -> String? {
        get { reasons.withLock { $0[authority] } }
        set { reasons.withLock { $0[authority] = newValue } }
    }
}
