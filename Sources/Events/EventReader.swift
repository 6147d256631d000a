// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// A reader of an ``EventBoard``. One thread at a time reads.
package final class EventReader: Sendable {
    private let ring: EventRing
    private let arrival = DispatchSemaphore(value: 0)
    /// What was unread when the reader was removed.
    private let rest = Mutex<[Event]>([])

    /// An event wakes a reader at most once in this time: a wake-up costs the proxy more than the event.
    package static let pause = DispatchTimeInterval.milliseconds(20)

    init(_ ring: EventRing) { self.ring = ring }

    func wake() { arrival.signal() }

    func finish(_ unread: [Event]) {
        rest.withLock { $0 = unread }
        arrival.signal()
    }

    /// The unread events, the oldest first. Waits for the first one, at most for `timeout`; empty if there is none
    /// then. Nil after the last event of a board that has finished. Blocks the thread.
    package func next(timeout: DispatchTimeInterval) -> [Event]? {
        let deadline = DispatchTime.now() + timeout
        var (now, isWoken) = (DispatchTime.now(), false)
        while true {
            switch ring.take(self, now: now, isWoken: isWoken) {
            case .events(let events): return events
            case .removed: return takeRest()
            case .pause(let end):
                guard now < deadline else { return [] }
                _ = arrival.wait(timeout: min(end, deadline))
                isWoken = false
            case .wait:
                guard now < deadline else { return [] }
                isWoken = arrival.wait(timeout: deadline) == .success
            }
            now = DispatchTime.now()
        }
    }

    private func takeRest() -> [Event]? {
        rest.withLock { rest in
            defer { rest = [] }
            return rest.isEmpty ? nil : rest
        }
    }
}
