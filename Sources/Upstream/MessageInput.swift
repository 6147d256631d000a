// SPDX-License-Identifier: Apache-2.0

import CountersignChannelTLS
import CountersignHTTP1
import NIOCore

/// The unread input of one connection, parsed into heads and parts of content without copying the bytes.
package final class MessageInput {
    package enum Piece {
        /// Transfer coding removed.
        case content(ByteBuffer)
        case needsMore
        /// The content is complete. `trailers` is nil if the trailer section is empty or missing.
        case end(trailers: FieldLines?)
    }

    // No call on these values re-enters this object. To check that at run time would cost up to 110 instructions for
    // each access.

    /// Nil instead of an empty buffer, which would keep the memory of the last read alive.
    @exclusivity(unchecked) private var bytes: ByteBuffer?
    @exclusivity(unchecked) private var decoder: BodyDecoder
    @exclusivity(unchecked) private var search = LongHeadSearch()
    /// The content has been read to its end, which may not have been reported yet.
    private var isAtEnd = false
    private let sender: MessageSender
    /// The heads may contain secrets, and are overwritten here as soon as they have been parsed.
    @exclusivity(unchecked) package var wipesHeads = false

    /// `sender` is the peer that errors are attributed to.
    package init(sentBy sender: MessageSender) {
        self.sender = sender
        decoder = BodyDecoder(.none, sentBy: sender)
    }

    package var byteCount: Int { bytes?.readableBytes ?? 0 }

    package var first: UInt8? { bytes.flatMap { $0.getInteger(at: $0.readerIndex) } }

    /// The protocol of the unread bytes, at the start of a tunnel.
    package var tunnelStart: TunnelStart { bytes.map { TunnelStart($0.readableBytesSpan) } ?? .undecided }

    package func append(_ buffer: ByteBuffer) {
        if bytes == nil { return bytes = buffer }
        guard wipesHeads, let unread = bytes else {
            bytes?.writeImmutableBuffer(buffer)
            return
        }
        // Copied, because the memory of a read is used again.
        var joined = ByteBufferAllocator().buffer(capacity: unread.readableBytes + buffer.readableBytes)
        for part in [unread, buffer] {
            joined.writeImmutableBuffer(part)
            part.wipe(next: part.readableBytes)
        }
        bytes = joined
    }

    /// Takes all bytes, which are not HTTP messages.
    package func takeAll() -> ByteBuffer {
        defer { bytes = nil }
        return bytes ?? ByteBuffer()
    }

    private func skip(_ count: Int) {
        bytes?.moveReaderIndex(forwardBy: count)
        if byteCount == 0 { bytes = nil }
    }

    // MARK: Heads

    /// Nil as long as the head is incomplete.
    package func nextRequest() throws(HTTP1Error) -> RequestHead? {
        guard let bytes, let parsed = try RequestHead.parse(bytes.readableBytesSpan) else { return nil }
        if wipesHeads { bytes.wipe(next: parsed.consumedBytes) }
        skip(parsed.consumedBytes)
        return parsed.head
    }

    /// Nil as long as the head is incomplete.
    package func nextResponse() throws(HTTP1Error) -> ResponseHead? {
        guard let bytes, search.mayEnd(in: bytes.readableBytesSpan),
            let parsed = try ResponseHead.parse(bytes.readableBytesSpan)
        else { return nil }
        search = LongHeadSearch()
        if wipesHeads { bytes.wipe(next: parsed.consumedBytes) }
        skip(parsed.consumedBytes)
        return parsed.head
    }

    /// The status of a response whose head is incomplete or refused, if it can be read.
    package var statusOfUnreadHead: Int? { bytes.flatMap { ResponseHead.status(atStartOf: $0.readableBytesSpan) } }

    // MARK: Bodies

    /// The next bytes are content with this framing.
    package func beginBody(_ framing: BodyFraming) {
        decoder = BodyDecoder(framing, sentBy: sender)
        isAtEnd = false
    }

    /// Reads the next part of the content.
    package func nextPiece() throws(HTTP1Error) -> Piece {
        if isAtEnd { return .end(trailers: nil) }
        let unread = bytes ?? ByteBuffer()
        var offset = 0
        let (piece, isWhole) = try Self.step(&decoder, in: unread, from: &offset)
        isAtEnd = isWhole
        defer { skip(offset) }
        switch piece {
        case .content(let range):
            let content = unread.getSlice(at: unread.readerIndex + range.lowerBound, length: range.count)
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

    /// The tolerated fault in the framing of the content.
    package var repair: HTTP1Error.Code? { decoder.repair }

    /// The connection ended. Whether the content is complete.
    package func endsBody() -> Bool { decoder.inputEnded() }
}
