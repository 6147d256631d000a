// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import CountersignChannelTLS
@testable import CountersignTLS

@Suite struct SpareBufferTests {
    /// The expected size and the actual one.
    @Test(arguments: [(10, 10), (10, 5000), (0, 1), (5000, 10)])
    func writeThatDoesNotFitIsRepeatedWithMoreMemory(about: Int, size: Int) {
        var buffer = ByteBuffer(string: "before ")
        var calls = 0
        buffer.write(about: about) { room in
            calls += 1
            room.copyBytes(from: [UInt8](repeating: 0x61, count: min(size, room.count)))
            return size
        }
        #expect(String(buffer: buffer) == "before " + String(repeating: "a", count: size))
        #expect(calls <= 2)
    }

    /// Sizes up to a burst of ciphertext.
    @Test(arguments: [2048, 64 * 1024 + 32, PendingWrites.burstBytes + 64 * 1024 + 384])
    func memoryIsReused(bytes: Int) {
        let spare = SpareBuffer()
        var buffer = spare.take(room: bytes)
        let address = buffer.withVeryUnsafeBytes(\.baseAddress)
        let capacity = buffer.capacity
        spare.giveBack(buffer)
        buffer = ByteBuffer()
        // Would get the memory if it had been freed.
        let others = (0..<8).map { _ in ByteBufferAllocator().buffer(capacity: capacity) }
        buffer = spare.take(room: bytes)
        #expect(buffer.withVeryUnsafeBytes(\.baseAddress) == address)
        #expect(others.count == 8)
    }

    /// A few bytes that are kept would hold the whole buffer.
    @Test func largeMemoryIsNotUsedForFewBytes() {
        let spare = SpareBuffer()
        var large = spare.take(room: PendingWrites.burstBytes)
        spare.giveBack(large)
        large = ByteBuffer()
        #expect(spare.take(room: 2048).capacity == 2048)
    }

    @Test func sharedMemoryIsReplacedByTheRequestedSize() {
        let spare = SpareBuffer()
        let held = spare.take(room: PendingWrites.burstBytes)
        spare.giveBack(held)
        #expect(spare.take(room: held.capacity / 8).capacity <= held.capacity / 4)
    }

    @Test func sharedMemoryIsNotOverwritten() {
        let spare = SpareBuffer()
        var first = spare.take(room: 10)
        first.writeString("of the first")
        spare.giveBack(first)
        var second = spare.take(room: 10)
        second.writeString("OF THE SECOND")
        #expect(String(buffer: first) == "of the first")
    }
}
