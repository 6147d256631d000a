// SPDX-License-Identifier: Apache-2.0

/// A response's status-line and field lines over the bytes that came (RFC 9112 §4, §5).
package struct ResponseHead: Sendable {
    /// 100–999.
    package let status: Int
    package let version: HTTPVersion
    package let fields: FieldLines
    /// Whether the origin keeps the connection: HTTP/1.1 without `close`, HTTP/1.0 with `keep-alive` (RFC 9112 §9.3). A
    /// body that ends with the connection ends it all the same.
    package let keepsAlive: Bool
    private let reasonRange: Range<Int>

    /// The three digits of the status.
    var statusBytes: ArraySlice<UInt8> { fields.bytes[9..<12] }
    /// It may be missing where the reason is empty.
    var hasSpaceBeforeReason: Bool { reasonRange.lowerBound == 13 }
    /// Past the CRLF.
    var statusLineEnd: Int { reasonRange.upperBound + 2 }
    package var reason: String { String(decoding: fields.bytes[reasonRange], as: UTF8.self) }
    var reasonBytes: ArraySlice<UInt8> { fields.bytes[reasonRange] }

    /// 1xx: another response follows, but for 101.
    package var isInformational: Bool { status < 200 }

    /// The protocols of Upgrade but h2c, when Connection names it.
    package var upgrade: String? { fields.upgrade }

    /// Where this response's body ends when it answers `method` (RFC 9112 §6.3). Unsound framing is refused even where
    /// there is no body for it, but in a 2xx to CONNECT. Faults are the origin's: 502, and its connection must be
    /// closed.
    package func framing(answering method: Method) throws(HTTP1Error) -> BodyFraming {
        if method == .connect, (200..<300).contains(status) { return .none }
        let framing = try BodyFraming.said(by: fields, version: version, sentBy: .origin) ?? .untilClose
        let hasBody = method != .head && !isInformational && status != 204 && status != 304
        return hasBody ? framing : .none
    }

    /// Reads a whole head from the start of `bytes`; nil as long as it is incomplete. Every fault is the origin's: 502.
    /// There is no fallback to HTTP/0.9.
    package static func parse(
        _ bytes: RawSpan, limits: HeadLimits = .standard
    ) throws(HTTP1Error) -> Parsed<ResponseHead>? {
        let head = bytes.extracting(0..<Swift.min(bytes.byteCount, limits.headBytes))
        guard let line = try readStatusLine(in: head, limits: limits) else {
            guard head.byteCount <= limits.requestLineBytes + 1 else { throw statusLineTooLong(limits) }
            return nil
        }
        var position = line.end
        var section = FieldLines.Section()
        guard
            try FieldLines.read(&section, in: head, from: &position, atMost: limits.fieldCount, sentBy: .origin)
        else {
            guard bytes.byteCount <= limits.headBytes else {
                throw HTTP1Error(.headTooLarge, "head of more than \(limits.headBytes) bytes", sentBy: .origin)
            }
            return nil
        }
        let fields = FieldLines(bytes: head.copy(first: position), consume section)
        return Parsed(head: try ResponseHead(line, fields), consumedBytes: position)
    }

    private init(_ line: StatusLine, _ fields: FieldLines) throws(HTTP1Error) {
        status = line.status
        version = line.version
        reasonRange = line.reasonRange
        try fields.requireFewConnectionOptions(sentBy: .origin)
        keepsAlive = !fields.connection.closes && (line.version == .http11 || fields.connection.keepsAlive)
        self.fields = fields
    }

    // MARK: The status-line

    private struct StatusLine {
        let version: HTTPVersion
        let status: Int
        let reasonRange: Range<Int>
        /// Past the CRLF.
        let end: Int
    }

    /// `HTTP/`, its first octet lowest.
    private static let httpName: UInt64 = 0x2F_50_54_54_48

    /// Nil: more must come. The space before an empty reason may be missing, as it is with many origins.
    private static func readStatusLine(in head: RawSpan, limits: HeadLimits) throws(HTTP1Error) -> StatusLine? {
        let malformed = HTTP1Error(.malformedStatusLine, "not an HTTP status-line", sentBy: .origin)
        for position in 0..<Swift.min(5, head.byteCount) {
            guard head.byte(position) == UInt8(truncatingIfNeeded: httpName >> (8 * position)) else { throw malformed }
        }
        var lineEnd = 0
        while true {
            lineEnd = head.firstControl(from: lineEnd)
            guard lineEnd < head.byteCount, head.byte(lineEnd) == Octet.tab else { break }
            lineEnd += 1
        }
        guard try head.hasLineEnd(at: lineEnd, orElse: .malformedStatusLine, sentBy: .origin) else { return nil }
        guard lineEnd <= limits.requestLineBytes else { throw statusLineTooLong(limits) }
        guard lineEnd >= 12, head.byte(8) == Octet.space else { throw malformed }
        let version = try HTTPVersion(in: head, at: 0..<8, orElse: malformed)
        var status = 0
        for position in 9..<12 {
            guard Octet.isDigit(head.byte(position)) else { throw malformed }
            status = status * 10 + Int(head.byte(position) - 0x30)
        }
        guard status >= 100, lineEnd == 12 || head.byte(12) == Octet.space else { throw malformed }
        return StatusLine(
            version: version, status: status, reasonRange: Swift.min(13, lineEnd)..<lineEnd, end: lineEnd + 2)
    }

    private static func statusLineTooLong(_ limits: HeadLimits) -> HTTP1Error {
        HTTP1Error(.headTooLarge, "status-line of more than \(limits.requestLineBytes) bytes", sentBy: .origin)
    }
}
