// SPDX-License-Identifier: Apache-2.0

/// A response's status-line and field lines, as ranges of the bytes received (RFC 9112 §4, §5).
package struct ResponseHead: Sendable {
    /// 100–999.
    package let status: Int
    package let version: HTTPVersion
    package let fields: FieldLines
    /// Whether the origin keeps the connection open: HTTP/1.1 without `close`, HTTP/1.0 with `keep-alive` (RFC 9112
    /// §9.3). True even if the body ends with the connection.
    package let keepsAlive: Bool
    private let reasonRange: Range<Int>

    /// The three digits of the status.
    var statusBytes: ArraySlice<UInt8> { fields.bytes[9..<12] }
    /// The space may be missing if the reason is empty.
    var hasSpaceBeforeReason: Bool { reasonRange.lowerBound == 13 }
    /// The offset after the CRLF.
    var statusLineEnd: Int { reasonRange.upperBound + 2 }
    package var reason: String { String(decoding: fields.bytes[reasonRange], as: UTF8.self) }
    var reasonBytes: ArraySlice<UInt8> { fields.bytes[reasonRange] }

    /// 1xx: another response follows, except after 101.
    package var isInformational: Bool { status < 200 }

    /// The protocols of Upgrade except h2c, if Connection names Upgrade.
    package var upgrade: String? { fields.upgrade }

    /// The framing of the body of this response to `method` (RFC 9112 §6.3). Refuses invalid framing even if the
    /// response has no body, except in a 2xx response to CONNECT. Errors are the origin's fault; its connection must be
    /// closed.
    package func framing(answering method: Method) throws(HTTP1Error) -> BodyFraming {
        if method == .connect, (200..<300).contains(status) { return .none }
        let framing = try BodyFraming.declared(by: fields, version: version, sentBy: .origin) ?? .untilClose
        let hasBody = method != .head && !isInformational && status != 204 && status != 304
        return hasBody ? framing : .none
    }

    /// Parses a head at the start of `bytes`; nil while it is incomplete. Every error is the origin's fault. There is
    /// no fallback to HTTP/0.9.
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

    /// The status in the status-line at the start of `bytes`, whatever is wrong with the rest of it and the fields; nil
    /// if the three digits are not there. For a head that ``parse(_:limits:)`` refuses, or that ends early: a
    /// response that cannot be used is a response.
    package static func status(atStartOf bytes: RawSpan) -> Int? {
        guard bytes.byteCount >= 12, bytes.byte(8) == Octet.space else { return nil }
        for position in 0..<5
        where bytes.byte(position) != UInt8(truncatingIfNeeded: httpName >> (8 * position)) { return nil }
        var status = 0
        for position in 9..<12 {
            guard Octet.isDigit(bytes.byte(position)) else { return nil }
            status = status * 10 + Int(bytes.byte(position) - 0x30)
        }
        // Another digit may be still to come.
        guard status >= 100, bytes.byteCount > 12, !Octet.isDigit(bytes.byte(12)) else { return nil }
        return status
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
        /// The offset after the CRLF.
        let end: Int
    }

    /// `HTTP/`, the first octet in the lowest eight bits.
    private static let httpName: UInt64 = 0x2F_50_54_54_48

    /// Nil if more input is needed. Many origins omit the space before an empty reason, which is accepted.
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
