// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import TLS

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
