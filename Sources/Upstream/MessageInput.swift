// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import NIOCore

/// What has come on one connection and was not read yet: heads, and the pieces of a body, over the memory in which they came.
///
/// The bytes are taken out while something is done with them: an access that ends at once needs no check at run time that there is
/// no other.
package final class MessageInput {
    package enum Piece {
        /// Transfer coding removed.
        case content(ByteBuffer)
        case needsMore
        /// The body is whole; the trailer section, if there was one with a field in it.
        case end(trailers: FieldLines?)
    }

    /// Nil in the place of an empty one, which would keep the memory of the last read.
    private var bytes: ByteBuffer?
    private var decoder: BodyDecoder
    /// The body has been read to its end, which may still have to be told.
    private var isAtEnd = false
    private let sender: MessageSender

    /// `sender` decides whose fault a malformed message is.
    package init(sentBy sender: MessageSender) {
        self.sender = sender
        decoder = BodyDecoder(.none, sentBy: sender)
    }

    package var byteCount: Int { bytes?.readableBytes ?? 0 }

    package var first: UInt8? {
        let taken = bytes
        return taken?.getInteger(at: taken?.readerIndex ?? 0)
    }

    package func append(_ buffer: ByteBuffer) {
        guard var all = take() else {
            bytes = buffer
            return
        }
        all.writeImmutableBuffer(buffer)
        bytes = all
    }

    /// Everything that is there, which is no message of HTTP.
    package func takeAll() -> ByteBuffer { take() ?? ByteBuffer() }

    private func take() -> ByteBuffer? {
        let taken = bytes
        bytes = nil
        return taken
    }

    private func putBack(_ rest: ByteBuffer) {
        if rest.readableBytes > 0 { bytes = rest }
    }

    // MARK: Heads

    /// Nil as long as the head is incomplete.
    package func nextRequest() throws(HTTP1Error) -> RequestHead? {
        guard var taken = take() else { return nil }
        defer { putBack(taken) }
        guard let parsed = try RequestHead.parse(taken.readableBytesSpan) else { return nil }
        taken.moveReaderIndex(forwardBy: parsed.consumedBytes)
        return parsed.head
    }

    /// Nil as long as the head is incomplete.
    package func nextResponse() throws(HTTP1Error) -> ResponseHead? {
        guard var taken = take() else { return nil }
        defer { putBack(taken) }
        guard let parsed = try ResponseHead.parse(taken.readableBytesSpan) else { return nil }
        taken.moveReaderIndex(forwardBy: parsed.consumedBytes)
        return parsed.head
    }

    // MARK: Bodies

    /// What follows is a body of that framing.
    package func beginBody(_ framing: BodyFraming) {
        decoder = BodyDecoder(framing, sentBy: sender)
        isAtEnd = false
    }

    /// One step through the body.
    package func nextPiece() throws(HTTP1Error) -> Piece {
        if isAtEnd { return .end(trailers: nil) }
        var taken = takeAll()
        defer { putBack(taken) }
        var offset = 0
        let (piece, isWhole) = try Self.step(&decoder, in: taken, from: &offset)
        isAtEnd = isWhole
        defer { taken.moveReaderIndex(forwardBy: offset) }
        switch piece {
        case .content(let range):
            let content = taken.getSlice(at: taken.readerIndex + range.lowerBound, length: range.count)
            return content.map { .content($0) } ?? .needsMore
        case .needsMore:
            return .needsMore
        case .end(let trailers):
            return .end(trailers: trailers)
        }
    }

    /// Apart, as the compiler sees a span of one part of a value as one of the whole.
    private static func step(
        _ decoder: inout BodyDecoder, in bytes: borrowing ByteBuffer, from offset: inout Int
    ) throws(HTTP1Error) -> (BodyPiece, isWhole: Bool) {
        (try decoder.next(bytes.readableBytesSpan, from: &offset), decoder.isComplete)
    }

    /// The connection ended. True: the body is whole; false: it was cut short.
    package func endsBody() -> Bool { decoder.inputEnded() }
}
