// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Plaintext on its way into records: small flushed writes are joined into one record, large ones go piece by piece,
/// and each write's promise waits for the ciphertext that holds its last byte.
struct PendingWrites {
    private struct Write {
        var bytes: ByteBuffer
        let promise: EventLoopPromise<Void>?
    }

    /// Ciphertext is handed on when there is this much of it.
    static let burstBytes = 128 * 1024
    /// The most that goes to the engine at a time; whole records of 16 KiB (RFC 8446 §5.1).
    static let pieceBytes = 64 * 1024
    private static let recordBytes = 16 * 1024
    /// Header, nonce or content type, and tag of an AEAD record under TLS 1.2 or 1.3, rounded up.
    private static let recordOverheadBytes = 32

    private var writes = MarkedCircularBuffer<Write>(initialCapacity: 2)
    private var flushedBytes = 0
    private var unflushedBytes = 0
    private var piece: (writes: Int, bytes: Int) = (0, 0)
    private var written: [EventLoopPromise<Void>] = []

    /// Nothing waits, neither to be encrypted nor to be told of.
    var isEmpty: Bool { writes.isEmpty && written.isEmpty }

    /// There is flushed plaintext.
    var isMarked: Bool { writes.hasMark }

    mutating func append(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>?) {
        unflushedBytes += bytes.readableBytes
        writes.append(Write(bytes: bytes, promise: promise))
    }

    /// All that was appended is flushed.
    mutating func mark() {
        flushedBytes += unflushedBytes
        unflushedBytes = 0
        writes.mark()
    }

    /// What the flushed plaintext will come to as ciphertext, or a burst of it.
    var ciphertextEstimateBytes: Int {
        Self.ciphertextBytes(min(flushedBytes, Self.burstBytes + Self.pieceBytes))
    }

    /// What `plaintext` will come to as ciphertext.
    static func ciphertextBytes(of plaintext: ByteBuffer) -> Int { ciphertextBytes(plaintext.readableBytes) }

    private static func ciphertextBytes(_ bytes: Int) -> Int {
        bytes + (bytes / recordBytes + 1) * recordOverheadBytes
    }

    /// The one write that was flushed, where there is no other and nobody waits for it: the common case, made cheap. The
    /// caller writes it whole, or puts it back.
    mutating func takeOnly() -> ByteBuffer? {
        guard writes.count == 1, writes.hasMark, written.isEmpty, flushedBytes <= Self.pieceBytes,
            writes[writes.startIndex].promise == nil
        else { return nil }
        flushedBytes = 0
        return writes.popFirst()?.bytes
    }

    /// Undoes ``takeOnly()``.
    mutating func putBack(_ bytes: ByteBuffer) {
        append(bytes, nil)
        mark()
    }

    /// The next flushed plaintext for the engine: the first write, or a piece of it, or several that fit one record
    /// together. The same again, or more, until ``pieceWritten()``. Nil: all is written.
    mutating func nextPiece(_ spare: SpareBuffer) -> ByteBuffer? {
        guard writes.hasMark, let first = writes.first, let marked = writes.markedElementIndex else { return nil }
        let start = first.bytes.readerIndex
        let length = first.bytes.readableBytes
        if writes.startIndex == marked, length <= Self.pieceBytes {
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
        for bytes in writes[...marked].lazy.map(\.bytes) {
            guard joined.readableBytes + bytes.readableBytes <= Self.recordBytes else { break }
            joined.writeImmutableBuffer(bytes)
            count += 1
        }
        piece = (count, joined.readableBytes)
        return joined
    }

    /// The engine took the piece.
    mutating func pieceWritten() {
        flushedBytes -= piece.bytes
        if piece.writes == 0 {
            writes[writes.startIndex].bytes.moveReaderIndex(forwardBy: piece.bytes)
        }
        for _ in 0..<piece.writes {
            if let promise = writes.popFirst()?.promise { written.append(promise) }
        }
        piece = (0, 0)
    }

    /// One promise for all writes whose ciphertext is handed on now.
    mutating func takeWrittenPromise() -> EventLoopPromise<Void>? {
        guard let first = written.first else { return nil }
        for other in written.dropFirst() { first.futureResult.cascade(to: other) }
        written.removeAll(keepingCapacity: true)
        return first
    }

    /// Fails every write that was not handed on.
    mutating func fail(_ error: any Error) {
        let promises = written + writes.compactMap(\.promise)
        self = PendingWrites()
        for promise in promises { promise.fail(error) }
    }
}
