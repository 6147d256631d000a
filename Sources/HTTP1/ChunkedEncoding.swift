// SPDX-License-Identifier: Apache-2.0

/// Writes a body whose length is not known beforehand (RFC 9112 §7.1). Around each run of content: `header`, content,
/// `lineEnd`; after the last: `end`.
package enum ChunkedEncoding {
    /// What follows a chunk's content.
    package static let lineEnd: [UInt8] = [Octet.carriageReturn, Octet.lineFeed]

    /// What ends a body without trailers.
    package static let end: [UInt8] = Array("0\r\n\r\n".utf8)

    /// `1f4\r\n`. A count of 0 would end the body and is not for this.
    package static func header(byteCount: Int) -> [UInt8] {
        precondition(byteCount > 0, "an empty chunk ends the body")
        var header = Array(String(byteCount, radix: 16).utf8)
        header.append(contentsOf: lineEnd)
        return header
    }

    /// The last chunk and the trailer section. Fields that frame, route, authenticate or describe the message are
    /// dropped, as they mean nothing there (RFC 9110 §6.5.1), and so are those which the Connection field of the
    /// message's `head` names.
    package static func end(trailers: FieldLines?, head: FieldLines? = nil) -> [UInt8] {
        guard let trailers else { return end }
        return HeadWriter.bytes(about: trailers.bytes.count + 8) { writer in
            writer.append("0\r\n")
            let options = head.map(ConnectionOptions.of)
            let span = trailers.bytes.span.bytes
            writer.lines(of: trailers) { line in
                guard line.known == .other else { return false }
                if let options, options.name(line.name, in: trailers) { return false }
                let name = Range<Int>(line.name)
                return !forbidden.contains { span.matches($0, at: name) }
            }
            writer.append("\r\n")
        }
    }

    /// Beside those of `FieldName`, of which none may be a trailer.
    private static let forbidden = [
        "accept-encoding", "age", "authentication-control", "cache-control", "content-encoding", "content-language",
        "content-location", "content-range", "content-type", "cookie2", "expires", "forwarded", "http2-settings",
        "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "location",
        "optional-www-authenticate", "origin", "pragma", "proxy-status", "range", "retry-after", "set-cookie2", "vary",
        "warning", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
    ]
}
