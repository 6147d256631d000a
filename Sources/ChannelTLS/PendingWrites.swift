// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Plaintext that waits to be encrypted. Small flushed writes are joined into one record, large ones are encrypted in
/// pieces. The promise of a write succeeds with the ciphertext of its last byte.
struct PendingWrites {
    private struct Write {
        var bytes: ByteBuffer
        let promise: EventLoopPromise<Void>?
        /// Not joined with others, and overwritten once it is encrypted or dropped.
        let isSecret: Bool
    }

    /// Ciphertext is passed on in bursts of at least this size.
    static let burstBytes = 128 * 1024
    /// The largest piece for the engine; a multiple of the record size of 16 KiB (RFC 8446 §5.1).
    static let pieceBytes = 64 * 1024
    private static let recordBytes = 16 * 1024
    /// Header, nonce or content type, and tag of an AEAD record in TLS 1.2 or 1.3, rounded up.
    private static let recordOverheadBytes = 32

    private var writes = MarkedCircularBuffer<Write>(initialCapacity: 2)
    private var flushedBytes = 0
    private var unflushedBytes = 0
    private var piece: (writes: Int, bytes: Int) = (0, 0)
    private var written: [EventLoopPromise<Void>] = []

    /// No plaintext waits to be encrypted, and no promise waits for its ciphertext.
    var isEmpty: Bool { writes.isEmpty && written.isEmpty }

    /// There is flushed plaintext.
    var isMarked: Bool { writes.hasMark }

    mutating func append(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>?, isSecret: Bool = false) {
        unflushedBytes += bytes.readableBytes
        writes.append(Write(bytes: bytes, promise: promise, isSecret: isSecret))
    }

    /// Marks everything appended so far as flushed.
    mutating func mark() {
        flushedBytes += unflushedBytes
        unflushedBytes = 0
        writes.mark()
    }

    /// The expected size of the flushed plaintext as ciphertext, at most about a burst.
    var ciphertextEstimateBytes: Int {
        Self.ciphertextBytes(min(flushedBytes, Self.burstBytes + Self.pieceBytes))
    }

    /// The expected size of `plaintext` as ciphertext.
    static func ciphertextBytes(of plaintext: ByteBuffer) -> Int { ciphertextBytes(plaintext.readableBytes) }

    private static func ciphertextBytes(_ bytes: Int) -> Int {
        bytes + (bytes / recordBytes + 1) * recordOverheadBytes
    }

    /// The next piece of flushed plaintext for the engine: a write, a part of one, or several writes that fit into one
    /// record. Until ``pieceWritten()`` it returns the same plaintext again, possibly with more after it. Nil at the
    /// end.
    mutating func nextPiece(_ spare: SpareBuffer) -> ByteBuffer? {
        guard writes.hasMark, let first = writes.first, let marked = writes.markedElementIndex else { return nil }
        let start = first.bytes.readerIndex
        let length = first.bytes.readableBytes
        if writes.startIndex == marked || first.isSecret, length <= Self.pieceBytes {
            piece = (1, length)
            return first.bytes
        }
        if length >= Self.recordBytes || writes.startIndex == marked {
            let count = min(length, Self.pieceBytes)
            piece = (count == length ? 1 : 0, count)
            return first.bytes.getSlice(at: start, length: count)
        }
        var joined = spare.take(room: min(flushedBytes, Self.recordBytes))
        var count = 0
        for write in writes[...marked] {
            guard !write.isSecret, joined.readableBytes + write.bytes.readableBytes <= Self.recordBytes else { break }
            joined.writeImmutableBuffer(write.bytes)
            count += 1
        }
        piece = (count, joined.readableBytes)
        return joined
    }

    /// The engine has encrypted the piece.
    mutating func pieceWritten() {
        flushedBytes -= piece.bytes
        if piece.writes == 0 {
            writes[writes.startIndex].bytes.moveReaderIndex(forwardBy: piece.bytes)
        }
        for _ in 0..<piece.writes {
            guard let write = writes.popFirst() else { break }
            if write.isSecret { write.bytes.wipe() }
            if let promise = write.promise { written.append(promise) }
        }
        piece = (0, 0)
    }

    /// One promise for all writes whose ciphertext is passed on now.
    mutating func takeWrittenPromise() -> EventLoopPromise<Void>? {
        guard let first = written.first else { return nil }
        for other in written.dropFirst() { first.futureResult.cascade(to: other) }
        written.removeAll(keepingCapacity: true)
        return first
    }

    /// Fails every write whose ciphertext was not passed on.
    mutating func fail(_ error: any Error) {
        let promises = written + writes.compactMap(\.promise)
        for write in writes where write.isSecret { write.bytes.wipe() }
        self = PendingWrites()
        for promise in promises { promise.fail(error) }
    }
}
