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
    /// More, and larger ones, are not kept. A burst of ciphertext fits (``PendingWrites/burstBytes`` and a piece, to the next power
    /// of two): memory of that size, asked for anew each time, comes from the system as zeroed pages.
    private static let limit = (count: 4, bytes: 256 * 1024)

    private var spares: [ByteBuffer] = []

    package init() {}

    /// An empty buffer with room for at least `bytes`.
    package func take(room bytes: Int) -> ByteBuffer {
        let bytes = max(bytes, 2048)
        // The last one that fits, and is not so large that whoever keeps a few bytes in it would keep much more.
        let fitting = spares.lastIndex { $0.capacity >= bytes && $0.capacity / 8 <= bytes }
        var buffer = fitting.map { spares.remove(at: $0) } ?? ByteBuffer()
        // Takes other memory where somebody holds what was in it.
        buffer.clear(minimumCapacity: bytes)
        return buffer
    }

    /// Gives the memory back. Called once a second, so that what a burst took does not stay.
    package func release() { spares = [] }

    /// `buffer` has been handed on, to somebody who may hold it still.
    package func giveBack(_ buffer: ByteBuffer) {
        guard buffer.capacity <= Self.limit.bytes else { return }
        if spares.count == Self.limit.count { spares.removeFirst() }
        spares.append(buffer)
    }
}
