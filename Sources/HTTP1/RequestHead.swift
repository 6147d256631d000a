// SPDX-License-Identifier: Apache-2.0

/// A parsed head, and how many bytes of the input it took, including empty lines before it.
package struct Parsed<Head: Sendable>: Sendable {
    package let head: Head
    package let consumedBytes: Int
}

/// A request's start-line and field lines, as ranges of the bytes received (RFC 9112 §3, §5).
///
/// The parser refuses everything that is ambiguous, so framing and Host are valid once a head exists. The target is
/// visible ASCII and not parsed further.
package struct RequestHead: Sendable {
    package let method: Method
    package let version: HTTPVersion
    package let fields: FieldLines
    package private(set) var framing: BodyFraming
    /// A body is declared, even if it is empty.
    package var hasBody: Bool { if case .none = framing { false } else { true } }
    /// The request asks for a tunnel (RFC 9110 §9.3.6).
    package var isConnect: Bool { method == .connect }
    /// The request asks for itself: TRACE (RFC 9110 §9.3.8), or TRACK, which is an older name of some servers. Some
    /// compare methods without regard to case.
    package var isTrace: Bool {
        method == .trace || method == .other && ["TRACE", "TRACK"].contains(methodText.uppercased())
    }
    /// Whether the client keeps the connection open: HTTP/1.1 without `Connection: close`. HTTP/1.0 connections are
    /// never kept alive.
    package let keepsAlive: Bool
    /// Whether the client waits for 100 Continue (RFC 9110 §10.1.1).
    package let expectsContinue: Bool
    private let methodRange: Range<Int>
    /// The range of the target in `fields.bytes`.
    package let targetRange: Range<Int>

    package var methodText: String { method == .other ? text(methodRange) : method.rawValue }
    package var target: String { text(targetRange) }
    package var targetBytes: ArraySlice<UInt8> { fields.bytes[targetRange] }

    /// The rest of the target after `prefix`; nil if the target does not begin with it.
    package func target(after prefix: [UInt8]) -> ArraySlice<UInt8>? {
        guard fields.bytes.span.bytes.holds(prefix, at: targetRange.prefix(prefix.count)) else { return nil }
        return fields.bytes[(targetRange.lowerBound + prefix.count)..<targetRange.upperBound]
    }

    /// The value of Host, whose syntax is valid; nil in an HTTP/1.0 request without Host.
    package var host: String? { fields.value(of: .host) }

    /// The protocols of Upgrade except h2c, if Connection names Upgrade and the version is 1.1 (RFC 9110 §7.8).
    package var upgrade: String? { version == .http11 ? fields.upgrade : nil }

    private func text(_ range: Range<Int>) -> String { String(decoding: fields.bytes[range], as: UTF8.self) }

    /// Parses a head at the start of `bytes`; nil while it is incomplete. Skips up to two empty lines before it (RFC
    /// 9112 §2.2). Every error is the client's fault.
    package static func parse(
        _ bytes: RawSpan, limits: HeadLimits = .standard
    ) throws(HTTP1Error) -> Parsed<RequestHead>? {
        var start = 0
        while start < 4, start < bytes.byteCount, bytes.byte(start) == Octet.carriageReturn {
            guard try bytes.hasLineEnd(at: start, sentBy: .client) else { return nil }
            start += 2
        }
        let head = bytes.extracting(start..<Swift.min(bytes.byteCount, start + limits.headBytes))
        guard let line = try readRequestLine(in: head, limits: limits) else {
            guard head.byteCount <= limits.requestLineBytes + 1 else { throw requestLineTooLong(limits) }
            return nil
        }
        var position = line.end
        var section = FieldLines.Section()
        guard
            try FieldLines.read(&section, in: head, from: &position, atMost: limits.fieldCount, sentBy: .client)
        else {
            guard bytes.byteCount - start <= limits.headBytes else {
                throw HTTP1Error(.headTooLarge, "head of more than \(limits.headBytes) bytes", sentBy: .client)
            }
            return nil
        }
        let fields = FieldLines(bytes: head.copy(first: position), consume section)
        try fields.requireHost(version: line.version)
        let framing = try BodyFraming.declared(by: fields, version: line.version, sentBy: .client) ?? .none
        try fields.requireFewConnectionOptions(sentBy: .client)
        return Parsed(head: RequestHead(line, fields, framing), consumedBytes: start + position)
    }

    private init(_ line: RequestLine, _ fields: consuming FieldLines, _ framing: BodyFraming) {
        method = line.method
        version = line.version
        methodRange = line.methodRange
        targetRange = line.targetRange
        self.framing = framing
        keepsAlive = line.version == .http11 && !fields.connection.closes
        expectsContinue = line.version == .http11 && fields.list(.expect, contains: "100-continue")
        self.fields = fields
    }

    /// The head of a request whose content ends with a mark other than the last chunk, as END_STREAM in HTTP/2 is. Its
    /// framing is that of the chunked coding, but it has no Transfer-Encoding; forwarding over HTTP/1 adds one.
    package consuming func withMarkedEnd() -> RequestHead {
        guard case .none = framing else { return self }
        framing = .chunked
        return self
    }

    // MARK: The request-line

    private struct RequestLine {
        let method: Method
        let methodRange: Range<Int>
        let targetRange: Range<Int>
        let version: HTTPVersion
        /// The offset after the CRLF.
        let end: Int
    }

    /// Nil if more input is needed.
    private static func readRequestLine(in head: RawSpan, limits: HeadLimits) throws(HTTP1Error) -> RequestLine? {
        let methodEnd = head.endOfToken(from: 0)
        guard methodEnd < head.byteCount else { return nil }
        guard methodEnd > 0, head.byte(methodEnd) == Octet.space else { throw fault(in: head, at: methodEnd) }
        let targetEnd = head.firstNotVisible(from: methodEnd + 1)
        guard targetEnd < head.byteCount else { return nil }
        guard targetEnd > methodEnd + 1, head.byte(targetEnd) == Octet.space else {
            throw fault(in: head, at: targetEnd)
        }
        let lineEnd = head.firstControl(from: targetEnd + 1)
        guard lineEnd < head.byteCount else { return nil }
        guard head.byte(lineEnd) == Octet.carriageReturn else { throw fault(in: head, at: lineEnd) }
        guard try head.hasLineEnd(at: lineEnd, sentBy: .client) else { return nil }
        guard lineEnd <= limits.requestLineBytes else { throw requestLineTooLong(limits) }
        let version = try HTTPVersion(
            in: head, at: targetEnd + 1..<lineEnd,
            orElse: HTTP1Error(.malformedRequestLine, "request-line does not end in an HTTP version", sentBy: .client))
        return RequestLine(
            method: Method(in: head, at: 0..<methodEnd), methodRange: 0..<methodEnd,
            targetRange: methodEnd + 1..<targetEnd, version: version, end: lineEnd + 2)
    }

    private static func fault(in head: RawSpan, at position: Int) -> HTTP1Error {
        switch head.byte(position) {
        case Octet.lineFeed:
            HTTP1Error(.bareLineFeed, "line feed without carriage return", sentBy: .client)
        case Octet.space, Octet.carriageReturn:
            HTTP1Error(.malformedRequestLine, "request-line is not method, target and version", sentBy: .client)
        case let other:
            HTTP1Error(.malformedRequestLine, "byte \(hexadecimal(other)) in the request-line", sentBy: .client)
        }
    }

    private static func requestLineTooLong(_ limits: HeadLimits) -> HTTP1Error {
        HTTP1Error(.requestLineTooLong, "request-line of more than \(limits.requestLineBytes) bytes", sentBy: .client)
    }
}
