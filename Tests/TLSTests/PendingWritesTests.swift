// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignChannelTLS
@testable import CountersignTLS

struct PendingWritesTests {
    private let spare = SpareBuffer()

    /// The sizes and bytes of the pieces in which flushed writes of `sizes` are passed to the engine.
    private func pieces(of sizes: [Int]) -> (sizes: [Int], bytes: [UInt8], sent: [UInt8]) {
        var writes = PendingWrites()
        var sent: [UInt8] = []
        for (index, size) in sizes.enumerated() {
            let bytes = Fixture.bytes(size, seed: UInt64(index))
            sent += bytes
            writes.append(ByteBuffer(bytes: bytes), nil)
        }
        writes.mark()
        var pieces: [Int] = []
        var bytes: [UInt8] = []
        while let piece = writes.nextPiece(spare) {
            pieces.append(piece.readableBytes)
            bytes += piece.readableBytesView
            writes.pieceWritten()
        }
        return (pieces, bytes, sent)
    }

    @Test(arguments: [
        ([5], [5]), ([0], [0]), ([16_384], [16_384]), ([100, 200, 300], [600]),
        ([16_000, 384, 1], [16_384, 1]), ([16_000, 385], [16_000, 385]),
        ([10, 16_384, 10], [10, 16_384, 10]), ([200_000], [65_536, 65_536, 65_536, 3392]),
        ([0, 70_000, 0, 1], [0, 65_536, 4465]),
    ])
    func smallWritesShareARecordAndLargeOnesAreSplit(sizes: [Int], expected: [Int]) {
        let result = pieces(of: sizes)
        #expect(result.sizes == expected)
        #expect(result.bytes == result.sent)
    }

    @Test func onlyFlushedWritesAreEncrypted() {
        var writes = PendingWrites()
        writes.append(ByteBuffer(string: "one"), nil)
        #expect(!writes.isMarked && writes.nextPiece(spare) == nil)
        writes.mark()
        writes.append(ByteBuffer(string: "two"), nil)
        #expect(writes.isMarked)
        #expect(writes.nextPiece(spare) == ByteBuffer(string: "one"))
        writes.pieceWritten()
        #expect(!writes.isMarked && writes.nextPiece(spare) == nil)
        writes.mark()
        #expect(writes.nextPiece(spare) == ByteBuffer(string: "two"))
    }

    @Test func estimateCoversTheRemainingFlushedWrites() {
        var writes = PendingWrites()
        writes.append(ByteBuffer(repeating: 0, count: 40_000), nil)
        #expect(writes.ciphertextEstimateBytes == 32)
        writes.mark()
        #expect(writes.ciphertextEstimateBytes == 40_000 + 3 * 32)
        _ = writes.nextPiece(spare)
        writes.pieceWritten()
        #expect(writes.ciphertextEstimateBytes == 32)
    }

    @Test func pieceThatWasNotEncryptedIsReturnedAgainWithLaterWrites() {
        var writes = PendingWrites()
        for text in ["one", "two"] { writes.append(ByteBuffer(string: text), nil) }
        writes.mark()
        #expect(writes.nextPiece(spare) == ByteBuffer(string: "onetwo"))
        writes.append(ByteBuffer(string: "three"), nil)
        writes.mark()
        #expect(writes.nextPiece(spare) == ByteBuffer(string: "onetwothree"))
    }

    @Test func promiseWaitsForItsLastByte() throws {
        let loop = EmbeddedEventLoop()
        var writes = PendingWrites()
        let promises = (0..<3).map { _ in loop.makePromise(of: Void.self) }
        for (promise, size) in zip(promises, [1, 70_000, 1]) {
            writes.append(ByteBuffer(repeating: 0, count: size), promise)
        }
        writes.mark()
        var handedOn: [Bool] = []
        while writes.nextPiece(spare) != nil {
            writes.pieceWritten()
            let promise = writes.takeWrittenPromise()
            handedOn.append(promise != nil)
            promise?.succeed()
        }
        #expect(handedOn == [true, false, true])
        for promise in promises { try promise.futureResult.wait() }

        let failed = (0..<2).map { _ in loop.makePromise(of: Void.self) }
        for promise in failed { writes.append(ByteBuffer(string: "x"), promise) }
        writes.mark()
        _ = writes.nextPiece(spare)
        writes.pieceWritten()
        writes.fail(ChannelError.ioOnClosedChannel)
        for promise in failed {
            #expect(throws: ChannelError.ioOnClosedChannel) { try promise.futureResult.wait() }
        }
    }
}
