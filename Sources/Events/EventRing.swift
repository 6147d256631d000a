// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// The last events, once for all readers. Each reader has a cursor. The ring goes on without a reader that is too slow:
/// it loses its oldest events.
///
/// Appending is a store under a lock, however many read. Readers release the events that all of them have.
final class EventRing: Sendable {
    fileprivate struct Reader {
        let reader: EventReader
        /// The number of the next event that it gets.
        var next: UInt64
        let capacity: UInt64
        /// Events that were overwritten before it had them.
        var lost: UInt64 = 0
        /// The next event must wake it.
        var isWaiting = false
        /// Until then, it looks by itself.
        var quietUntil = DispatchTime(uptimeNanoseconds: 0)
    }

    fileprivate struct State {
        /// That of the last event.
        var number: UInt64 = 0
        /// A power of two, and at least as many as any reader may have unread; empty without a reader.
        var slots: [Event?] = []
        /// All before are released.
        var oldest: UInt64 = 1
        var readers: [Reader] = []
        var waiting = 0
        /// Of readers that were removed.
        var lost: UInt64 = 0
    }

    enum Taken {
        /// The first is ``Event/Kind/lost(count:)`` if events are missing.
        case events([Event])
        /// There is none. None wakes the reader before this time.
        case pause(until: DispatchTime)
        /// There is none. The next one wakes the reader.
        case wait
        case removed
    }

    private let state = Mutex(State())

    /// The events that readers have lost, added up.
    var lost: UInt64 {
        state.withLock { state in
            state.readers.reduce(state.lost) { $0 + $1.lost + $1.overtaken(at: state.number) }
        }
    }

    /// Appends `event`, which gets its number, and wakes the readers that wait.
    func append(_ event: Event) {
        let (replaced, waiting) = state.withLock { state -> (Event?, [EventReader]) in
            guard !state.slots.isEmpty else { return (nil, []) }
            state.number += 1
            event.sequence.store(state.number, ordering: .relaxed)
            let slot = Int(truncatingIfNeeded: state.number) & (state.slots.count - 1)
            // Released outside the lock.
            var replaced: Event? = event
            swap(&replaced, &state.slots[slot])
            return (replaced, state.waiting == 0 ? [] : state.takeWaiting())
        }
        for reader in waiting { reader.wake() }
        withExtendedLifetime(replaced) {}
    }

    func add(_ reader: EventReader, capacity: Int) {
        let capacity = UInt64(max(1, capacity))
        state.withLock { state in
            state.grow(to: capacity)
            state.readers.append(Reader(reader: reader, next: state.number + 1, capacity: capacity))
        }
    }

    /// Returns the unread events of `reader`; nil if it was not there.
    func remove(_ reader: EventReader) -> [Event]? {
        let (rest, released) = state.withLock { state -> ([Event]?, [Event?]) in
            guard let index = state.index(of: reader) else { return (nil, []) }
            let rest = state.unread(of: index)
            state.lost += state.readers.remove(at: index).lost
            guard state.readers.isEmpty else { return (rest, state.release()) }
            defer { (state.slots, state.oldest) = ([], state.number + 1) }
            return (rest, state.slots)
        }
        withExtendedLifetime(released) {}
        return rest
    }

    var readers: [EventReader] { state.withLock { $0.readers.map(\.reader) } }

    /// The unread events of `reader`. `isWoken`: an event has woken it.
    func take(_ reader: EventReader, now: DispatchTime, isWoken: Bool) -> Taken {
        let (taken, released) = state.withLock { state -> (Taken, [Event?]) in
            guard let index = state.index(of: reader) else { return (.removed, []) }
            if isWoken { state.readers[index].quietUntil = now + EventReader.pause }
            guard state.readers[index].next <= state.number else {
                let quietUntil = state.readers[index].quietUntil
                if now < quietUntil { return (.pause(until: quietUntil), []) }
                if !state.readers[index].isWaiting { state.waiting += 1 }
                state.readers[index].isWaiting = true
                return (.wait, [])
            }
            let events = state.unread(of: index)
            return (.events(events), state.release())
        }
        withExtendedLifetime(released) {}
        return taken
    }
}

extension EventRing.Reader {
    /// The events that it has lost, and does not know of.
    fileprivate func overtaken(at number: UInt64) -> UInt64 {
        let unread = number + 1 - next
        return unread > capacity ? unread - capacity : 0
    }
}

extension EventRing.State {
    fileprivate func index(of reader: EventReader) -> Int? { readers.firstIndex { $0.reader === reader } }

    fileprivate func event(_ number: UInt64) -> Event? { slots[slot(number)] }

    private func slot(_ number: UInt64) -> Int { Int(truncatingIfNeeded: number) & (slots.count - 1) }

    fileprivate mutating func takeWaiting() -> [EventReader] {
        var waiting: [EventReader] = []
        for index in readers.indices where readers[index].isWaiting {
            readers[index].isWaiting = false
            waiting.append(readers[index].reader)
        }
        self.waiting = 0
        return waiting
    }

    /// Moves the cursor of a reader to the end.
    fileprivate mutating func unread(of index: Int) -> [Event] {
        let lost = readers[index].overtaken(at: number)
        let first = readers[index].next + lost
        if readers[index].isWaiting { waiting -= 1 }
        readers[index].isWaiting = false
        readers[index].lost += lost
        readers[index].next = number + 1
        var events: [Event] = []
        events.reserveCapacity(Int(number + 1 - first) + 1)
        if lost > 0, let next = event(first) {
            events.append(Event(number: first - 1, time: next.time, kind: .lost(count: lost)))
        }
        for number in first..<(number + 1) { if let event = event(number) { events.append(event) } }
        return events
    }

    /// Takes the events out that no reader can get any more.
    fileprivate mutating func release() -> [Event?] {
        let begin = max(oldest, number + 1 - min(number, UInt64(slots.count)))
        oldest = readers.reduce(number + 1) { min($0, $1.next + $1.overtaken(at: number)) }
        guard begin < oldest else { return [] }
        var released: [Event?] = []
        released.reserveCapacity(Int(oldest - begin))
        for number in begin..<oldest {
            var event: Event?
            swap(&event, &slots[slot(number)])
            released.append(event)
        }
        return released
    }

    fileprivate mutating func grow(to capacity: UInt64) {
        guard capacity > UInt64(slots.count) else { return }
        let size = UInt64(1) << UInt64(UInt64.bitWidth - (capacity - 1).leadingZeroBitCount)
        let old = self
        slots = Array(repeating: nil, count: Int(size))
        guard !old.slots.isEmpty else { return }
        for number in max(oldest, number + 1 - min(number, UInt64(old.slots.count)))..<(number + 1) {
            slots[slot(number)] = old.event(number)
        }
    }
}
