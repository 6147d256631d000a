// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import NIOCore

/// The unread input of one connection, parsed into heads and parts of content without copying the bytes.
///
/// Each function takes the buffer out of its property, works on the local and puts the rest back. The property is then
/// only accessed at single points in time, for which the compiler needs no dynamic exclusivity check.
package final class MessageInput {
    package enum Piece {
        /// Transfer coding removed.
        case content(ByteBuffer)
        case needsMore
        /// The content is complete. `trailers` is nil if the trailer section is empty or missing.
        case end(trailers: FieldLines?)
    }

    /// Nil instead of an empty buffer, which would keep the memory of the last read alive.
    private var bytes: ByteBuffer?
    private var decoder: BodyDecoder
    /// The content has been read to its end, which may not have been reported yet.
    private var isAtEnd = false
    private let sender: MessageSender

    /// `sender` says whose fault a malformed message is.
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

    /// Takes all bytes, which are not HTTP messages.
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

    /// The next bytes are content with this framing.
    package func beginBody(_ framing: BodyFraming) {
        decoder = BodyDecoder(framing, sentBy: sender)
        isAtEnd = false
    }

    /// Reads the next part of the content.
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

    /// Separate, because the compiler extends the lifetime of a span of one stored property to the whole value.
    private static func step(
        _ decoder: inout BodyDecoder, in bytes: borrowing ByteBuffer, from offset: inout Int
    ) throws(HTTP1Error) -> (BodyPiece, isWhole: Bool) {
        (try decoder.next(bytes.readableBytesSpan, from: &offset), decoder.isComplete)
    }

    /// The connection ended. Whether the content is complete.
    package func endsBody() -> Bool { decoder.inputEnded() }
}
