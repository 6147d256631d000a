// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Synchronization

/// Where events are told, and where any number of readers receive them.
///
/// Telling never waits: a reader that is too slow loses its oldest events, and its next event says how many. Without a
/// reader, telling of a request costs one load of an atomic variable, and the event is not made.
package final class EventBoard: Sendable {
    private let ring = EventRing()
    private let readerCount = Atomic<Int>(0)

    private let listener: (@Sendable (Event.Kind) -> Void)?

    /// `listener` receives every event but those about requests, also without a reader. It must not block.
    package init(listener: (@Sendable (Event.Kind) -> Void)? = nil) { self.listener = listener }

    /// Whether somebody receives what is told.
    package var isWatched: Bool { readerCount.load(ordering: .relaxed) > 0 }

    /// The events that readers have lost since the start, added up.
    package var droppedCount: UInt64 { ring.lost }

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

    private func tellReaders(_ kind: consuming Event.Kind) {
        ring.append(Event(time: Timestamp(WallClock.now()), kind: kind))
    }

    /// A reader of all events from now on, which keeps at most `capacity` of them unread.
    package func reader(capacity: Int = 4096) -> EventReader {
        let reader = EventReader(ring)
        ring.add(reader, capacity: capacity)
        readerCount.add(1, ordering: .relaxed)
        return reader
    }

    /// The reader receives no more events, but those that it has not read.
    package func remove(_ reader: EventReader) {
        guard let unread = ring.remove(reader) else { return }
        readerCount.subtract(1, ordering: .relaxed)
        reader.finish(unread)
    }

    /// No reader receives any more.
    package func finish() {
        for reader in ring.readers { remove(reader) }
    }
}
