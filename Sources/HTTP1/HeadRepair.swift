// SPDX-License-Identifier: Apache-2.0

/// Reads the head of a response that deviates from the grammar in a way that leaves no doubt about its end and its
/// fields, and writes a clean one for the parser: as tolerant towards origins as curl, Chromium and squid.
///
/// It reads a line feed without carriage return (RFC 9112 §2.2), any HTTP/1.x, white space before a colon (§5.1),
/// folded values (§5.2), control characters in values, and framing as ``FramingRepair`` says. It refuses ambiguous
/// heads: those with NUL, a carriage return alone, a name that is not a token, a line without a colon, or a control
/// character in a framing field. A clean head never gets here.
struct HeadRepair {
    private var clean: [UInt8] = []
    private var framing = FramingRepair()
    /// The number of the line that is read, for errors.
    private var lineNumber = 0
    /// A line that is not yet ended in ``clean``, because the next one may continue it.
    private var openLine = OpenLine.none
    private enum OpenLine {
        case none
        case field
        /// The values are in ``framing``.
        case framingField
    }

    /// One line without its end.
    private struct Line {
        let content: Range<Int>
        /// The offset after the line's end.
        let next: Int
        let hasControl: Bool
    }

    /// The clean head and the number of bytes that it replaces; nil while the head is incomplete. Framing that is
    /// contradictory is still so in the clean head.
    static func repair(
        _ bytes: RawSpan, limits: HeadLimits
    ) throws(HTTP1Error) -> (clean: [UInt8], consumedBytes: Int)? {
        let head = bytes.extracting(0..<Swift.min(bytes.byteCount, limits.headBytes))
        var repair = HeadRepair()
        repair.clean.reserveCapacity(head.byteCount + 256)
        if let end = try repair.read(head, limits) { return (repair.clean, end) }
        guard bytes.byteCount <= limits.headBytes else {
            throw HTTP1Error(.headTooLarge, "head of more than \(limits.headBytes) bytes", sentBy: .origin)
        }
        return nil
    }

    /// The offset after the empty line that ends the head; nil if more input is needed.
    private mutating func read(_ head: RawSpan, _ limits: HeadLimits) throws(HTTP1Error) -> Int? {
        guard head.startsLikeHTTP else { throw noStatusLine }
        guard let statusLine = try line(in: head, from: 0) else {
            guard head.byteCount <= limits.requestLineBytes + 1 else { throw ResponseHead.statusLineTooLong(limits) }
            return nil
        }
        guard statusLine.content.count <= limits.requestLineBytes else { throw ResponseHead.statusLineTooLong(limits) }
        try readStatusLine(head, statusLine)
        var position = statusLine.next
        while let line = try line(in: head, from: position) {
            position = line.next
            let isFold = !line.content.isEmpty && Octet.isWhitespace(head.byte(line.content.lowerBound))
            guard !line.content.isEmpty else {
                end(head)
                return position
            }
            guard lineNumber - 1 <= limits.fieldCount else {
                throw HTTP1Error(.tooManyFields, "more than \(limits.fieldCount) field lines", sentBy: .origin)
            }
            if isFold {
                try readFold(head, line)
            } else {
                try readField(head, line)
            }
        }
        return nil
    }

    /// The line at `start`; nil if its end has not arrived yet. Every reader that looks for the end of a head finds the
    /// same lines, because a carriage return anywhere else is refused.
    private mutating func line(in head: RawSpan, from start: Int) throws(HTTP1Error) -> Line? {
        lineNumber += 1
        var end = start
        var hasControl = false
        while true {
            end = head.firstControl(from: end)
            guard end < head.byteCount else { return nil }
            switch head.byte(end) {
            case Octet.lineFeed:
                return Line(content: start..<end, next: end + 1, hasControl: hasControl)
            case Octet.carriageReturn:
                guard end + 1 < head.byteCount else { return nil }
                guard head.byte(end + 1) == Octet.lineFeed else {
                    throw fault(.bareCarriageReturn, "carriage return without line feed")
                }
                return Line(content: start..<end, next: end + 2, hasControl: hasControl)
            case 0:
                throw fault(lineNumber == 1 ? .malformedStatusLine : .malformedField, "NUL")
            case Octet.tab:
                break
            default:
                hasControl = true
            }
            end += 1
        }
    }

    // MARK: Lines

    /// `HTTP/1.`, a digit, white space, three digits, and nothing or white space and the reason (RFC 9112 §4). The case
    /// of the name does not matter.
    private mutating func readStatusLine(_ head: RawSpan, _ line: Line) throws(HTTP1Error) {
        let end = line.content.upperBound
        guard end >= 12, head.byte(6) == 0x2E, Octet.isDigit(head.byte(5)), Octet.isDigit(head.byte(7)),
            Octet.isWhitespace(head.byte(8))
        else { throw noStatusLine }
        guard head.byte(5) == 0x31 else {
            throw fault(.unsupportedVersion, "HTTP/\(head.byte(5) - 0x30).\(head.byte(7) - 0x30) is not supported")
        }
        var start = 9
        while start < end, Octet.isWhitespace(head.byte(start)) { start += 1 }
        guard start + 3 <= end, ResponseHead.status(in: head, at: start) != nil,
            start + 3 == end || Octet.isWhitespace(head.byte(start + 3))
        else { throw noStatusLine }
        framing.isHTTP10 = head.byte(7) == 0x30
        clean += framing.isHTTP10 ? Self.http10 : Self.http11
        append(head, start..<start + 3, replacesControls: false)
        if start + 3 < end {
            clean.append(Octet.space)
            append(head, start + 4..<end, replacesControls: line.hasControl)
        }
        clean.appendLineEnd()
    }

    private mutating func readField(_ head: RawSpan, _ line: Line) throws(HTTP1Error) {
        endOpenLine()
        let end = line.content.upperBound
        let nameEnd = head.extracting(0..<end).endOfToken(from: line.content.lowerBound)
        let name = line.content.lowerBound..<nameEnd
        var colon = nameEnd
        while colon < end, Octet.isWhitespace(head.byte(colon)) { colon += 1 }
        guard colon < end else { throw fault(.malformedField, "no colon") }
        guard head.byte(colon) == Octet.colon else {
            throw fault(.malformedField, "byte \(hexadecimal(head.byte(colon))) in a field name")
        }
        guard !name.isEmpty else { throw fault(.malformedField, "empty field name") }
        let known = FieldName(in: head, at: name)
        guard known != .contentLength, known != .transferEncoding else {
            guard !line.hasControl else { throw fault(.malformedField, "control character in a framing field") }
            framing.note(known, colon + 1..<end)
            return openLine = .framingField
        }
        openLine = .field
        if colon == nameEnd {
            append(head, head.trimmed(line.content), replacesControls: line.hasControl)
        } else {
            clean.append(head, name)
            append(head, colon..<end, replacesControls: line.hasControl)
        }
    }

    /// A line that continues the value of the one before it (RFC 9112 §5.2). Some readers take a line of white space
    /// for the end of the head.
    private mutating func readFold(_ head: RawSpan, _ line: Line) throws(HTTP1Error) {
        let part = head.trimmed(line.content)
        if part.isEmpty { framing.isAmbiguous = true }
        switch openLine {
        case .none: throw fault(.malformedField, "white space before the first field")
        case .framingField:
            guard !line.hasControl else { throw fault(.malformedField, "control character in a framing field") }
            framing.extendValue(to: line.content.upperBound)
        case .field:
            guard !part.isEmpty else { return }
            clean.append(Octet.space)
            append(head, part, replacesControls: line.hasControl)
        }
    }

    // MARK: Output

    private static let http10 = Array("HTTP/1.0 ".utf8)
    private static let http11 = Array("HTTP/1.1 ".utf8)

    private mutating func end(_ head: RawSpan) {
        endOpenLine()
        if framing.requiresHTTP11(head) { clean.replaceSubrange(0..<Self.http11.count, with: Self.http11) }
        framing.write(head, to: &clean)
        clean.appendLineEnd()
    }

    private mutating func endOpenLine() {
        if case .field = openLine { clean.appendLineEnd() }
        openLine = .none
    }

    private mutating func append(_ head: RawSpan, _ range: Range<Int>, replacesControls: Bool) {
        let start = clean.count
        clean.append(head, range)
        guard replacesControls else { return }
        for index in start..<clean.count {
            let octet = clean[index]
            if octet < 0x20 && octet != Octet.tab || octet == 0x7F { clean[index] = Octet.space }
        }
    }

    private var noStatusLine: HTTP1Error { fault(.malformedStatusLine, "not an HTTP status-line") }

    private func fault(_ code: HTTP1Error.Code, _ detail: String) -> HTTP1Error {
        HTTP1Error(code, "line \(Swift.max(lineNumber, 1)) of the head: \(detail)", sentBy: .origin)
    }
}

extension RawSpan {
    /// Whether the octets so far are those of `HTTP/`, in any case.
    fileprivate var startsLikeHTTP: Bool {
        let name: StaticString = "http/"
        for position in 0..<Swift.min(5, byteCount) {
            guard Octet.lowercased(byte(position)) == name.utf8Start[position] else { return false }
        }
        return true
    }
}

extension [UInt8] {
    /// Appends the octets at `range`.
    mutating func append(_ bytes: RawSpan, _ range: Range<Int>) {
        bytes.extracting(range).withUnsafeBytes { append(contentsOf: $0) }
    }

    mutating func appendLineEnd() {
        append(Octet.carriageReturn)
        append(Octet.lineFeed)
    }
}
