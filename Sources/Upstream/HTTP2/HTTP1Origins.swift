// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import NIOConcurrencyHelpers
import Synchronization

/// The origins that answer some requests over HTTP/1.1 only. The pools of all event loops share it.
package final class HTTP1Origins: Sendable {
    /// Until when each is remembered, in seconds of the pools' clock.
    private let ends = NIOLockedValueBox<[Origin: UInt64]>([:])
    /// Nearly always true, so that the lock is not needed.
    private let isEmpty = Atomic(true)

    private static let capacity = 1000
    private static let seconds: UInt64 = 3600

    package init() {}

    /// `origin` has refused a request over HTTP/2, or has asked for the authentication of a connection, which HTTP/2
    /// does not have.
    package func insert(_ origin: Origin, now: UInt64) {
        ends.withLockedValue { ends in
            if ends.count >= Self.capacity { ends = [:] }
            ends[origin] = now + Self.seconds
        }
        isEmpty.store(false, ordering: .releasing)
    }

    /// A handshake without `h2` has failed: the origin may speak nothing else.
    package func remove(_ origin: Origin) {
        guard !isEmpty.load(ordering: .acquiring) else { return }
        ends.withLockedValue { $0[origin] = nil }
    }

    package func contains(_ origin: Origin, now: UInt64) -> Bool {
        guard !isEmpty.load(ordering: .acquiring) else { return false }
        return ends.withLockedValue { ends in
            guard let end = ends[origin] else { return false }
            if now < end { return true }
            ends[origin] = nil
            return false
        }
    }
}
