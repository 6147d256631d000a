// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Synchronization

/// Where events are told, and where any number of readers receive them.
///
/// Telling never waits: a reader that is too slow loses events, and its next event says how many. Without a reader,
/// telling of a request costs one load of an atomic variable, and the event is not made.
package final class EventBoard: Sendable {
    private let state = Mutex(State())
    private let readerCount = Atomic<Int>(0)
    private let dropped = Atomic<UInt64>(0)

    private struct State {
        var number: UInt64 = 0
        var readers: [ObjectIdentifier: EventReader] = [:]
    }

    private let listener: (@Sendable (Event.Kind) -> Void)?

    /// `listener` receives every event but those about requests, also without a reader. It must not block.
    package init(listener: (@Sendable (Event.Kind) -> Void)? = nil) { self.listener = listener }

    /// Whether somebody receives what is told.
    package var isWatched: Bool { readerCount.load(ordering: .relaxed) > 0 }

    /// The events that readers have lost since the start, added up.
    package var droppedCount: UInt64 { dropped.load(ordering: .relaxed) }

    /// Gives an event to every reader, and to the listener.
    package func tell(_ kind: @autoclosure () -> Event.Kind) {
        guard listener != nil || isWatched else { return }
        let kind = kind()
        listener?(kind)
        if isWatched { tellReaders(kind) }
    }

    /// Gives an event about a request to every reader. `request` is not evaluated without one.
    package func tell(ofRequest request: @autoclosure () -> RequestEvent) {
        if isWatched { tellReaders(.request(request())) }
    }

    private func tellReaders(_ kind: Event.Kind) {
        let time = EventTime(WallClock.now())
        let lost = state.withLock { state -> UInt64 in
            state.number += 1
            let event = Event(number: state.number, time: time, kind: kind)
            return state.readers.values.reduce(into: 0) { if !$1.receive(event) { $0 += 1 } }
        }
        if lost > 0 { dropped.add(lost, ordering: .relaxed) }
    }

    /// A reader of all events from now on, which keeps at most `capacity` of them unread.
    package func reader(capacity: Int = 4096) -> EventReader {
        let reader = EventReader(capacity: capacity)
        state.withLock { $0.readers[ObjectIdentifier(reader)] = reader }
        readerCount.add(1, ordering: .relaxed)
        return reader
    }

    /// The reader receives no more events.
    package func remove(_ reader: EventReader) {
        let wasThere = state.withLock { $0.readers.removeValue(forKey: ObjectIdentifier(reader)) != nil }
        if wasThere { readerCount.subtract(1, ordering: .relaxed) }
        reader.finish()
    }

    /// No reader receives any more.
    package func finish() {
        for reader in state.withLock({ Array($0.readers.values) }) { remove(reader) }
    }
}
