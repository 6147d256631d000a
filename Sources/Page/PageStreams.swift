// SPDX-License-Identifier: Apache-2.0

import CountersignEvents
import Synchronization

/// The event streams in progress. Each occupies a thread, so a new one ends the oldest if there are too many: a browser
/// that connects again and again, or tabs that nobody closes, keep nobody else out.
final class PageStreams: Sendable {
    final class Stream: Sendable {
        let reader: EventReader
        fileprivate let end: @Sendable () -> Void

        init(_ reader: EventReader, end: @escaping @Sendable () -> Void) {
            self.reader = reader
            self.end = end
        }
    }

    /// The most streams at a time.
    static let limit = 32

    private let events: EventBoard
    /// The oldest first.
    private let streams = Mutex<[Stream]>([])

    init(_ events: EventBoard) { self.events = events }

    /// A stream of all events from now on. `end` ends its connection, from any thread.
    func begin(end: @escaping @Sendable () -> Void) -> Stream {
        let stream = Stream(events.reader(), end: end)
        let oldest = streams.withLock { streams in
            streams.append(stream)
            return streams.count > Self.limit ? streams.removeFirst() : nil
        }
        if let oldest {
            events.remove(oldest.reader)
            oldest.end()
        }
        return stream
    }

    func end(_ stream: Stream) {
        streams.withLock { $0.removeAll { $0 === stream } }
        events.remove(stream.reader)
    }
}
