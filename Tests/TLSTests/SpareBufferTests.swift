// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import CountersignTLS

@Suite struct SpareBufferTests {
    /// How much room was expected to do, and how much it is.
    @Test(arguments: [(10, 10), (10, 5000), (0, 1), (5000, 10)])
    func whatTakesMoreRoomThanExpectedIsWrittenOnceMore(about: Int, size: Int) {
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

    /// Up to a burst of ciphertext.
    @Test(arguments: [2048, 64 * 1024 + 32, PendingWrites.burstBytes + 64 * 1024 + 384])
    func memoryIsUsedAgain(bytes: Int) {
        let spare = SpareBuffer()
        var buffer = spare.take(room: bytes)
        let address = buffer.withVeryUnsafeBytes(\.baseAddress)
        let capacity = buffer.capacity
        spare.giveBack(buffer)
        buffer = ByteBuffer()
        // Takes what was given back to the system, if it was.
        let others = (0..<8).map { _ in ByteBufferAllocator().buffer(capacity: capacity) }
        buffer = spare.take(room: bytes)
        #expect(buffer.withVeryUnsafeBytes(\.baseAddress) == address)
        #expect(others.count == 8)
    }

    /// Whoever keeps a few bytes would keep all of it.
    @Test func largeMemoryIsForLargeThings() {
        let spare = SpareBuffer()
        var large = spare.take(room: PendingWrites.burstBytes)
        spare.giveBack(large)
        large = ByteBuffer()
        #expect(spare.take(room: 2048).capacity == 2048)
    }

    @Test func memoryThatSomebodyHoldsIsReplacedByAsMuchAsIsAskedFor() {
        let spare = SpareBuffer()
        let held = spare.take(room: PendingWrites.burstBytes)
        spare.giveBack(held)
        #expect(spare.take(room: held.capacity / 8).capacity <= held.capacity / 4)
    }

    @Test func memoryThatSomebodyHoldsIsNotWrittenAgain() {
        let spare = SpareBuffer()
        var first = spare.take(room: 10)
        first.writeString("of the first")
        spare.giveBack(first)
        var second = spare.take(room: 10)
        second.writeString("OF THE SECOND")
        #expect(String(buffer: first) == "of the first")
    }
}
