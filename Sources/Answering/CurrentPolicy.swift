// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The policy in force. Threads that read it during a reload see either the old or the new policy as a whole.
package final class CurrentPolicy: Sendable {
    private let box: Mutex<Policy>
    private let replacements = Atomic<Int>(0)

    package init(_ policy: Policy) { box = Mutex(policy) }

    package var current: Policy { box.withLock { $0 } }

    /// Changes with each replacement. Every request reads it, on every event loop, without taking a lock. A reader that
    /// caches ``current`` must also store the version that it read before.
    package var version: Int { replacements.load(ordering: .acquiring) }

    package func replace(with policy: Policy) {
        box.withLock { $0 = policy }
        replacements.add(1, ordering: .releasing)
    }
}
