// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Dispatch
import Synchronization

/// The unread events of one reader of an ``EventBoard``.
package final class EventReader: Sendable {
    private let capacity: Int
    private let state = Mutex(State())
    /// Signalled when there is something to read and nobody was told yet.
    private let arrival = DispatchSemaphore(value: 0)

    private struct State {
        var events: [Event] = []
        var lost: UInt64 = 0
        var isFinished = false
        var isSignalled = false
    }

    init(capacity: Int) { self.capacity = max(1, capacity) }

    /// Returns false if there is no room.
    func receive(_ event: Event) -> Bool {
        let (isReceived, isNews) = state.withLock { state -> (Bool, Bool) in
            guard state.events.count < capacity else {
                state.lost += 1
                return (false, false)
            }
            state.events.append(event)
            defer { state.isSignalled = true }
            return (true, !state.isSignalled)
        }
        if isNews { arrival.signal() }
        return isReceived
    }

    func finish() {
        state.withLock { $0.isFinished = true }
        arrival.signal()
    }

    /// The unread events, the oldest first. Waits for the first one, at most for `timeout`; empty if there is none
    /// then. Nil after the last event of a board that has finished. Blocks the thread.
    package func next(timeout: DispatchTimeInterval) -> [Event]? {
        if let events = take() { return events }
        _ = arrival.wait(timeout: .now() + timeout)
        return take() ?? (state.withLock { $0.isFinished } ? nil : [])
    }

    /// Nil if there is none.
    private func take() -> [Event]? {
        state.withLock { state in
            guard !state.events.isEmpty else { return nil }
            defer {
                state.events.removeAll(keepingCapacity: true)
                (state.lost, state.isSignalled) = (0, false)
            }
            guard state.lost > 0, let last = state.events.last else { return state.events }
            return state.events + [Event(number: last.number, time: last.time, kind: .lost(count: state.lost))]
        }
    }
}
