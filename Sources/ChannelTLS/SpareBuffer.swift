// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import NIOCore

extension ByteBuffer {
    /// Appends the bytes that `write` produces in the memory it gets, initially `about` bytes. It returns their count
    /// and is called again with that much memory if they did not fit.
    package mutating func write(about size: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        var size = size
        var isWhole = false
        while !isWhole {
            writeWithUnsafeMutableBytes(minimumWritableBytes: size) { space in
                let count = write(space)
                isWhole = count <= space.count
                size = count
                return isWhole ? count : 0
            }
        }
    }
}

extension ByteBuffer {
    /// Overwrites the bytes written so far, which were a secret. Values that share the memory see it, so none may be in
    /// use.
    package func wipe() {
        withVeryUnsafeBytes { memory in
            OPENSSL_cleanse(UnsafeMutableRawPointer(mutating: memory.baseAddress), Swift.min(writerIndex, memory.count))
        }
    }

    /// Overwrites the next readable bytes, as ``wipe()`` does.
    package func wipe(next count: Int) {
        withUnsafeReadableBytes { bytes in
            OPENSSL_cleanse(UnsafeMutableRawPointer(mutating: bytes.baseAddress), Swift.min(count, bytes.count))
        }
    }
}

/// Recycles the buffers of an event loop's reads and writes: most are free again before the next one begins. Only that
/// loop may use it.
package final class SpareBuffer {
    /// A buffer with its capacity, which is expensive to query.
    fileprivate struct Spare {
        var bytes: ByteBuffer
        let capacity: Int

        /// The buffer has room for `bytes` and is not so large that keeping a few bytes in it would waste memory.
        func suits(_ bytes: Int) -> Bool { bytes <= capacity && capacity <= bytes * 8 }
    }

    /// The buffer given back last, which usually is the next one taken.
    @exclusivity(unchecked) private var last: Spare?
    @exclusivity(unchecked) private var others = Spares()

    package init() {}

    /// An empty buffer with room for at least `bytes`.
    package func take(room bytes: Int) -> ByteBuffer {
        let bytes = max(bytes, 2048)
        guard var spare = takeSpare(for: bytes) else { return ByteBufferAllocator().buffer(capacity: bytes) }
        // If the old contents are still in use, the buffer gets new memory: as much as before, which is faster, or
        // `bytes`.
        if spare.capacity <= 2 * bytes { spare.bytes.clear() } else { spare.bytes.clear(minimumCapacity: bytes) }
        return spare.bytes
    }

    private func takeSpare(for bytes: Int) -> Spare? {
        last?.suits(bytes) == true ? last.take() : others.take(room: bytes)
    }

    /// `buffer` may still be in use elsewhere. Memory that is shared is not reused.
    package func giveBack(_ buffer: ByteBuffer) {
        let capacity = buffer.capacity
        guard (1...Spares.limit.bytes).contains(capacity) else { return }
        if let last { others.giveBack(last) }
        last = Spare(bytes: buffer, capacity: capacity)
    }

    /// Releases the memory. Called once per second, so that the memory of a burst does not stay allocated.
    package func release() {
        last = nil
        others = Spares()
    }
}

private struct Spares {
    /// How many buffers are kept, including the last one, and how large. A burst of ciphertext fits
    /// (``PendingWrites/burstBytes`` plus a piece, rounded up to a power of two): if memory of that size were allocated
    /// each time, the system would zero its pages.
    static let limit = (count: 4, bytes: 256 * 1024)

    private var spares: [SpareBuffer.Spare] = []

    /// The most recent buffer that suits.
    mutating func take(room bytes: Int) -> SpareBuffer.Spare? {
        spares.lastIndex { $0.suits(bytes) }.map { spares.remove(at: $0) }
    }

    mutating func giveBack(_ spare: SpareBuffer.Spare) {
        if spares.count == Self.limit.count - 1 { spares.removeFirst() }
        spares.append(spare)
    }
}
