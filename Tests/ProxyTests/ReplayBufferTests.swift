// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import CountersignProxy

@Suite struct ReplayBufferTests {
    private static func piece(_ count: Int) -> ByteBuffer { ByteBuffer(repeating: 0x61, count: count) }

    @Test func exactlyTheLimitIsKeptAndOneByteMoreIsLost() {
        var buffer = ReplayBuffer(keeps: true, limitBytes: 10)
        buffer.append(Self.piece(4), sent: true)
        buffer.append(Self.piece(6), sent: true)
        #expect(buffer.heldBytes == 10)
        #expect(!buffer.hasLostItsStart)
        buffer.append(Self.piece(1), sent: true)
        #expect(buffer.hasLostItsStart)
        #expect(buffer.pieces.isEmpty)
    }

    @Test func unsentContentIsNeverLost() {
        var buffer = ReplayBuffer(keeps: true, limitBytes: 10)
        buffer.append(Self.piece(30), sent: false)
        #expect(buffer.isFull)
        #expect(buffer.heldBytes == 30)
        #expect(!buffer.hasLostItsStart)
        buffer.allSent()
        #expect(buffer.hasLostItsStart)
        #expect(buffer.heldBytes == 0)
    }

    @Test func onlyUnsentContentIsKeptIfNoRepeatIsExpected() {
        var buffer = ReplayBuffer(keeps: false, limitBytes: 10)
        buffer.append(Self.piece(20), sent: false)
        #expect(!buffer.hasLostItsStart)
        buffer.allSent()
        #expect(buffer.hasLostItsStart)
        var other = ReplayBuffer(keeps: false, limitBytes: 10)
        other.append(Self.piece(1), sent: true)
        #expect(other.hasLostItsStart)
    }

    @Test func contentThatIsNotRepeatedIsStillSentOnce() {
        var buffer = ReplayBuffer(keeps: true, limitBytes: 10)
        buffer.append(Self.piece(4), sent: false)
        buffer.wantNoRepeat()
        #expect(buffer.pieces.count == 1)
        buffer.allSent()
        #expect(buffer.pieces.isEmpty && buffer.hasLostItsStart)
    }

    @Test func emptyContentCanBeSentFromItsStart() {
        var buffer = ReplayBuffer(keeps: false, limitBytes: 10)
        buffer.allSent()
        #expect(!buffer.hasLostItsStart)
    }
}
