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
    package func take(room bytes: Int) -> ByteBuffer { spares.take(room: max(bytes, 2048)) }

    /// `buffer` has been handed on, to somebody who may hold it still.
    package func giveBack(_ buffer: ByteBuffer) { spares.giveBack(buffer) }

    /// Gives the memory back. Called once a second, so that what a burst took does not stay.
    package func release() { spares = Spares() }
}

/// A value of its own, so that each of the above is one access to it.
private struct Spares {
    /// More, and larger ones, are not kept. A burst of ciphertext fits (``PendingWrites/burstBytes`` and a piece, to the next power
    /// of two): memory of that size, asked for anew each time, comes from the system as zeroed pages.
    private static let limit = (count: 4, bytes: 256 * 1024)

    private var buffers: [ByteBuffer] = []

    /// The last one that fits, and is not so large that whoever keeps a few bytes in it would keep much more.
    mutating func take(room bytes: Int) -> ByteBuffer {
        var index = buffers.count - 1
        while index >= 0, buffers[index].capacity < bytes || buffers[index].capacity / 8 > bytes { index -= 1 }
        var buffer = index < 0 ? ByteBuffer() : buffers.remove(at: index)
        // Takes other memory where somebody holds what was in it.
        buffer.clear(minimumCapacity: bytes)
        return buffer
    }

    mutating func giveBack(_ buffer: ByteBuffer) {
        guard buffer.capacity <= Self.limit.bytes else { return }
        if buffers.count == Self.limit.count { buffers.removeFirst() }
        buffers.append(buffer)
    }
}
