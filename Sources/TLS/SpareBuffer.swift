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
    private var spares = Spares()

    package init() {}

    /// An empty buffer with room for at least `bytes`.
    package func take(room bytes: Int) -> ByteBuffer {
        var taken = takeSpares()
        let buffer = taken.take(room: max(bytes, 2048))
        spares = taken
        return buffer
    }

    /// `buffer` has been handed on, to somebody who may hold it still.
    package func giveBack(_ buffer: ByteBuffer) {
        var taken = takeSpares()
        taken.giveBack(buffer)
        spares = taken
    }

    /// An access that ends at once needs no check at run time that there is no other.
    private func takeSpares() -> Spares {
        let taken = spares
        spares = Spares()
        return taken
    }

    /// Gives the memory back. Called once a second, so that what a burst took does not stay.
    package func release() { spares = Spares() }
}

private struct Spares {
    /// More, and larger ones, are not kept. A burst of ciphertext fits (``PendingWrites/burstBytes`` and a piece, to the next power
    /// of two): memory of that size, asked for anew each time, comes from the system as zeroed pages.
    private static let limit = (count: 4, bytes: 256 * 1024)

    /// A buffer's capacity is kept beside it, as it is dear to ask.
    private var buffers: [(bytes: ByteBuffer, capacity: Int)] = []

    /// The last one that fits, and is not so large that whoever keeps a few bytes in it would keep much more.
    mutating func take(room bytes: Int) -> ByteBuffer {
        var index = buffers.count - 1
        while index >= 0, !(bytes...bytes * 8).contains(buffers[index].capacity) { index -= 1 }
        var buffer = index < 0 ? ByteBuffer() : buffers.remove(at: index).bytes
        // Takes other memory where somebody holds what was in it.
        buffer.clear(minimumCapacity: bytes)
        return buffer
    }

    mutating func giveBack(_ buffer: ByteBuffer) {
        let capacity = buffer.capacity
        guard (1...Self.limit.bytes).contains(capacity) else { return }
        if buffers.count == Self.limit.count { buffers.removeFirst() }
        buffers.append((buffer, capacity))
    }
}
