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
    /// The same for a response from a parent proxy. Those that speak HTTP/1.0 say it in Proxy-Connection, which is in
    /// no standard (RFC 9112 appendix C.2.2).
    package var parentKeepsAlive: Bool {
        guard fields.contains(.proxyConnection) else { return keepsAlive }
        guard !fields.connection.closes, !fields.list(.proxyConnection, contains: "close") else { return false }
        return keepsAlive || fields.list(.proxyConnection, contains: "keep-alive")
    }
    /// Why the head that was received is not clean; nil if it is. This one is clean in any case. After a head that was
    /// repaired, its connection serves no other exchange.
    package let repair: HTTP1Error.Code?
    private let reasonRange: Range<Int>
    /// The framing by Content-Length and Transfer-Encoding, unless ``hasFaultyFraming``.
    private let declared: BodyFraming?
    private let hasFaultyFraming: Bool

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
        if hasFaultyFraming { _ = try BodyFraming.declared(by: fields, version: version, sentBy: .origin) }
        let framing = declared ?? .untilClose
        let hasBody = method != .head && !isInformational && status != 204 && status != 304
        return hasBody ? framing : .none
    }

    /// Parses a head at the start of `bytes`; nil while it is incomplete. A head that is not clean is repaired, if all
    /// readers agree about its end and its content (``HeadRepair``). Every error is the origin's fault. There is no
    /// fallback to HTTP/0.9.
    package static func parse(
        _ bytes: RawSpan, limits: HeadLimits = .response
    ) throws(HTTP1Error) -> Parsed<ResponseHead>? {
        try parse(bytes, limits, repairing: nil)
    }

    /// `repairing`: the fault of the received head if `bytes` is its repaired form. A further fault is then refused.
    private static func parse(
        _ bytes: RawSpan, _ limits: HeadLimits, repairing repair: HTTP1Error.Code?
    ) throws(HTTP1Error) -> Parsed<ResponseHead>? {
        do throws(HTTP1Error) {
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
            return Parsed(head: try ResponseHead(line, fields, repair), consumedBytes: position)
        } catch {
            guard repair == nil, error.code != .headTooLarge, error.code != .tooManyFields else { throw error }
            return try repaired(bytes, limits, after: error)
        }
    }

    /// Parses a head that has been refused with `refusal`, repaired.
    private static func repaired(
        _ bytes: RawSpan, _ limits: HeadLimits, after refusal: HTTP1Error
    ) throws(HTTP1Error) -> Parsed<ResponseHead>? {
        guard let repaired = try HeadRepair.repair(bytes, limits: limits) else { return nil }
        let size = repaired.clean.count
        let parsed = try parse(
            repaired.clean.span.bytes, limits.permitting(headBytes: size), repairing: refusal.code)
        guard let parsed, parsed.consumedBytes == size else { throw refusal }
        return Parsed(head: parsed.head, consumedBytes: repaired.consumedBytes)
    }

    /// The status in the status-line at the start of `bytes`, even if the rest of it and the fields are malformed; nil
    /// if the three digits are missing. For a head that ``parse(_:limits:)`` refuses, or that ends early: an unusable
    /// response is still a response.
    package static func status(atStartOf bytes: RawSpan) -> Int? {
        guard bytes.byteCount >= 12, bytes.matches("http/", at: 0..<5), Octet.isWhitespace(bytes.byte(8)) else {
            return nil
        }
        var start = 8
        while start < bytes.byteCount, Octet.isWhitespace(bytes.byte(start)) { start += 1 }
        // Another digit may follow.
        guard start + 3 < bytes.byteCount, !Octet.isDigit(bytes.byte(start + 3)) else { return nil }
        return status(in: bytes, at: start)
    }

    /// The three digits at `start`, if they are a status.
    @inline(__always)
    static func status(in bytes: RawSpan, at start: Int) -> Int? {
        var status = 0
        for position in start..<start + 3 {
            guard Octet.isDigit(bytes.byte(position)) else { return nil }
            status = status * 10 + Int(bytes.byte(position) - 0x30)
        }
        return status >= 100 ? status : nil
    }

    private init(_ line: StatusLine, _ fields: FieldLines, _ repair: HTTP1Error.Code?) throws(HTTP1Error) {
        status = line.status
        version = line.version
        reasonRange = line.reasonRange
        try fields.requireFewConnectionOptions(sentBy: .origin)
        keepsAlive = !fields.connection.closes && (line.version == .http11 || fields.connection.keepsAlive)
        self.repair = repair
        do throws(HTTP1Error) {
            declared = try BodyFraming.declared(by: fields, version: line.version, sentBy: .origin)
            hasFaultyFraming = false
        } catch {
            // `framing(answering:)` refuses framing that could not be repaired, unless the response has no content.
            guard repair != nil else { throw error }
            declared = nil
            hasFaultyFraming = true
        }
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
        guard let status = status(in: head, at: 9), lineEnd == 12 || head.byte(12) == Octet.space else {
            throw malformed
        }
        return StatusLine(
            version: version, status: status, reasonRange: Swift.min(13, lineEnd)..<lineEnd, end: lineEnd + 2)
    }

    static func statusLineTooLong(_ limits: HeadLimits) -> HTTP1Error {
        HTTP1Error(.headTooLarge, "status-line of more than \(limits.requestLineBytes) bytes", sentBy: .origin)
    }
}
