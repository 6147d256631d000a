// SPDX-License-Identifier: Apache-2.0

/// Writes a body whose length is not known in advance (RFC 9112 §7.1): for each run of content `header`, the content
/// and `lineEnd`, and `end` after the last one.
package enum ChunkedEncoding {
    /// Follows a chunk's content.
    package static let lineEnd: [UInt8] = [Octet.carriageReturn, Octet.lineFeed]

    /// Ends a body that has no trailers.
    package static let end: [UInt8] = Array("0\r\n\r\n".utf8)

    /// `1f4\r\n`. The count must not be 0, which would end the body.
    package static func header(byteCount: Int) -> [UInt8] {
        precondition(byteCount > 0, "an empty chunk ends the body")
        var header = Array(String(byteCount, radix: 16).utf8)
        header.append(contentsOf: lineEnd)
        return header
    }

    /// The last chunk and the trailer section, without the fields that frame, route, authenticate or describe the
    /// message, which are not allowed there (RFC 9110 §6.5.1), and without those that the Connection field of the
    /// message's `head` names.
    package static func end(trailers: FieldLines?, head: FieldLines? = nil) -> [UInt8] {
        guard let trailers else { return end }
        return HeadWriter.bytes(about: trailers.bytes.count + 8) { writer in
            writer.append("0\r\n")
            let options = head.map(ConnectionOptions.of)
            writer.lines(of: trailers) { mayFollow($0, of: trailers, options) }
            writer.append("\r\n")
        }
    }

    private static func mayFollow(_ line: FieldLine, of trailers: FieldLines, _ options: ConnectionOptions?) -> Bool {
        guard line.known == .other else { return false }
        if let options, options.name(line.name, in: trailers) { return false }
        let span = trailers.bytes.span.bytes
        let name = Range<Int>(line.name)
        return !forbidden.contains { span.matches($0, at: name) }
    }

    /// The lines that ``end(trailers:head:)`` writes, for a version of HTTP that has no chunks.
    package static func forwardedTrailers(_ trailers: FieldLines, head: FieldLines?) -> [FieldLine] {
        let options = head.map(ConnectionOptions.of)
        return trailers.lines.filter { mayFollow($0, of: trailers, options) }
    }

    /// No field of `FieldName` may be a trailer, nor any of these.
    private static let forbidden = [
        "accept-encoding", "age", "authentication-control", "cache-control", "content-encoding", "content-language",
        "content-location", "content-range", "content-type", "cookie2", "expires", "forwarded", "http2-settings",
        "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "location",
        "optional-www-authenticate", "origin", "pragma", "range", "retry-after", "set-cookie2", "vary",
        "warning", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
    ]
}
