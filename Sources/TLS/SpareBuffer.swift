// SPDX-License-Identifier: Apache-2.0

import NIOCore

extension ByteBuffer {
    /// Appends what `write` writes into the room that it is given. `about` is as much as it will likely be; where it says that it is
    /// more, it is asked again with as much.
    package mutating func write(about size: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        var size = size
        var isWhole = false
        while !isWhole {
            writeWithUnsafeMutableBytes(minimumWritableBytes: size) { room in
                let count = write(room)
                isWhole = count <= room.count
                size = count
                return isWhole ? count : 0
            }
        }
    }
}

/// Buffers that one read or write after another of an event loop uses, as most are done with before the next one begins. Only that
/// loop may use it.
package final class SpareBuffer {
    /// A buffer's capacity is kept beside it, as it is dear to ask.
    fileprivate struct Spare {
        var bytes: ByteBuffer
        let capacity: Int

        /// It has room for `bytes`, and is not so large that whoever keeps a few in it would keep much more.
        func suits(_ bytes: Int) -> Bool { bytes <= capacity && capacity <= bytes * 8 }
    }

    /// The one that came back last, which mostly goes out next.
    private var last: Spare?
    private var others = Spares()

    package init() {}

    /// An empty buffer with room for at least `bytes`.
    package func take(room bytes: Int) -> ByteBuffer {
        let bytes = max(bytes, 2048)
        guard var spare = takeSpare(for: bytes) else { return ByteBufferAllocator().buffer(capacity: bytes) }
        // Takes other memory where somebody holds what was in it: as much as there was, or as is asked for. The former is quicker.
        if spare.capacity <= 2 * bytes { spare.bytes.clear() } else { spare.bytes.clear(minimumCapacity: bytes) }
        return spare.bytes
    }

    private func takeSpare(for bytes: Int) -> Spare? {
        if let spare = takeLast() {
            if spare.suits(bytes) { return spare }
            last = spare
        }
        var taken = takeOthers()
        let spare = taken.take(room: bytes)
        others = taken
        return spare
    }

    /// `buffer` has been handed on, to somebody who may hold it still.
    package func giveBack(_ buffer: ByteBuffer) {
        let capacity = buffer.capacity
        guard (1...Spares.limit.bytes).contains(capacity) else { return }
        if let spare = takeLast() {
            var taken = takeOthers()
            taken.giveBack(spare)
            others = taken
        }
        last = Spare(bytes: buffer, capacity: capacity)
    }

    // An access that ends at once needs no check at run time that there is no other.

    private func takeLast() -> Spare? {
        let taken = last
        last = nil
        return taken
    }

    private func takeOthers() -> Spares {
        let taken = others
        others = Spares()
        return taken
    }

    /// Gives the memory back. Called once a second, so that what a burst took does not stay.
    package func release() {
        last = nil
        others = Spares()
    }
}

private struct Spares {
    /// More, the last one among them, and larger ones are not kept. A burst of ciphertext fits (``PendingWrites/burstBytes`` and a
    /// piece, to the next power of two): memory of that size, asked for anew each time, comes from the system as zeroed pages.
    static let limit = (count: 4, bytes: 256 * 1024)

    private var spares: [SpareBuffer.Spare] = []

    /// The last one that suits.
    mutating func take(room bytes: Int) -> SpareBuffer.Spare? {
        spares.lastIndex { $0.suits(bytes) }.map { spares.remove(at: $0) }
    }

    mutating func giveBack(_ spare: SpareBuffer.Spare) {
        if spares.count == Self.limit.count - 1 { spares.removeFirst() }
        spares.append(spare)
    }
}
