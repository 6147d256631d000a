// SPDX-License-Identifier: Apache-2.0

import HTTP1
import NIOCore

/// What has come on one connection and was not read yet: heads, and the pieces of a body, over the memory in which they came.
package struct MessageInput {
    package enum Piece {
        /// Transfer coding removed.
        case content(ByteBuffer)
        case needsMore
        /// The body is whole; the trailer section, if there was one with a field in it.
        case end(trailers: FieldLines?)
    }

    @usableFromInline package private(set) var bytes = ByteBuffer()
    private var decoder: BodyDecoder
    private let sender: MessageSender

    /// `sender` decides whose fault a malformed message is.
    package init(sentBy sender: MessageSender) {
        self.sender = sender
        decoder = BodyDecoder(.none, sentBy: sender)
    }

    @inlinable package var byteCount: Int { bytes.readableBytes }

    package var first: UInt8? { bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) }

    package mutating func append(_ buffer: ByteBuffer) {
        if bytes.readableBytes == 0 {
            bytes = buffer
        } else {
            bytes.writeImmutableBuffer(buffer)
        }
    }

    /// Everything that is there, which is no message of HTTP.
    package mutating func takeAll() -> ByteBuffer {
        let all = bytes
        bytes = ByteBuffer()
        return all
    }

    /// Empty, it would keep the memory of the last read.
    package mutating func releaseIfEmpty() {
        if bytes.readableBytes == 0 { bytes = ByteBuffer() }
    }

    // MARK: Heads

    /// Nil as long as the head is incomplete.
    package mutating func nextRequest() throws(HTTP1Error) -> RequestHead? {
        guard bytes.readableBytes > 0, let parsed = try RequestHead.parse(bytes.readableBytesSpan) else { return nil }
        bytes.moveReaderIndex(forwardBy: parsed.consumedBytes)
        return parsed.head
    }

    /// Nil as long as the head is incomplete.
    package mutating func nextResponse() throws(HTTP1Error) -> ResponseHead? {
        guard bytes.readableBytes > 0, let parsed = try ResponseHead.parse(bytes.readableBytesSpan) else { return nil }
        bytes.moveReaderIndex(forwardBy: parsed.consumedBytes)
        return parsed.head
    }

    // MARK: Bodies

    /// What follows is a body of that framing.
    package mutating func beginBody(_ framing: BodyFraming) {
        decoder = BodyDecoder(framing, sentBy: sender)
    }

    /// One step through the body.
    package mutating func nextPiece() throws(HTTP1Error) -> Piece {
        var offset = 0
        let start = bytes.readerIndex
        switch try Self.step(&decoder, in: bytes, from: &offset) {
        case .content(let range):
            let content = bytes.getSlice(at: start + range.lowerBound, length: range.count)
            bytes.moveReaderIndex(forwardBy: offset)
            return content.map { .content($0) } ?? .needsMore
        case .needsMore:
            bytes.moveReaderIndex(forwardBy: offset)
            return .needsMore
        case .end(let trailers):
            bytes.moveReaderIndex(forwardBy: offset)
            return .end(trailers: trailers)
        }
    }

    /// Apart, as the compiler sees a span of one part of a value as one of the whole.
    private static func step(
        _ decoder: inout BodyDecoder, in bytes: borrowing ByteBuffer, from offset: inout Int
    ) throws(HTTP1Error) -> BodyPiece {
        try decoder.next(bytes.readableBytesSpan, from: &offset)
    }

    /// The connection ended. True: the body is whole; false: it was cut short.
    package mutating func endsBody() -> Bool { decoder.inputEnded() }
}
