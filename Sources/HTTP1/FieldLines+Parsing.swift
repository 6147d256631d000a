// SPDX-License-Identifier: Apache-2.0

extension FieldLines {
    /// Everything that the parser learns about a section.
    struct Section {
        fileprivate(set) var lines: [FieldLine] = []
        /// One bit per `FieldName`, set if the field occurs.
        fileprivate(set) var present: UInt32 = 0
        fileprivate(set) var connection = ConnectionField()
        fileprivate(set) var framing = FramingFields()

        private static var interpreted: UInt32 {
            FieldName.connection.bit | FieldName.contentLength.bit | FieldName.transferEncoding.bit
                | FieldName.foldedFraming.bit
        }

        /// Interprets the fields once the section is complete. A section that arrives in pieces is parsed again from
        /// its start each time, so doing this line by line would repeat the work.
        fileprivate mutating func ended(_ bytes: RawSpan, sentBy sender: MessageSender) throws(HTTP1Error) {
            guard present & Self.interpreted != 0 else { return }
            // An origin that runs CGI or a similar interface would see two framings. Clients do not fold names.
            guard present & FieldName.foldedFraming.bit == 0 || sender == .origin else {
                throw HTTP1Error(
                    .conflictingFraming, "a field name that CGI reads as Content-Length or Transfer-Encoding",
                    sentBy: sender)
            }
            for line in lines {
                switch line.known {
                case .connection: connection.read(bytes, at: Range(line.value))
                case .contentLength: framing.readLength(bytes, line)
                case .transferEncoding: framing.noteTab(bytes, line)
                default: break
                }
            }
        }
    }

    /// Reads field lines from `position` up to and including the empty line that ends them (RFC 9112 §5). False if more
    /// input is needed.
    static func read(
        _ section: inout Section, in bytes: RawSpan, from position: inout Int, atMost maximum: Int,
        sentBy sender: MessageSender
    ) throws(HTTP1Error) -> Bool {
        section.lines.reserveCapacity(24)
        while position < bytes.byteCount {
            if bytes.byte(position) == Octet.carriageReturn {
                guard try bytes.hasLineEnd(at: position, sentBy: sender) else { return false }
                position += 2
                try section.ended(bytes, sentBy: sender)
                return true
            }
            let line = try readLine(in: bytes, from: position, isFirst: section.lines.isEmpty, sentBy: sender)
            guard let line else { return false }
            guard section.lines.count < maximum else {
                throw HTTP1Error(.tooManyFields, "more than \(maximum) field lines", sentBy: sender)
            }
            section.lines.append(line)
            section.present |= line.known.bit
            position = Int(line.line.upperBound)
        }
        return false
    }

    /// The fields of a trailer section that is exactly `bytes`, with the empty line at its end. Refuses fields that
    /// would frame the message after its content (RFC 9110 §6.5.1).
    package static func trailers(
        _ bytes: [UInt8], limits: HeadLimits, sentBy sender: MessageSender
    ) throws(HTTP1Error) -> FieldLines {
        var position = 0
        var section = Section()
        let isWhole = try read(
            &section, in: bytes.span.bytes, from: &position, atMost: limits.fieldCount, sentBy: sender)
        guard isWhole, position == bytes.count else {
            throw HTTP1Error(.malformedTrailers, "trailer section ends inside a field line", sentBy: sender)
        }
        let trailers = FieldLines(bytes: bytes, consume section)
        guard !trailers.contains(.contentLength), !trailers.contains(.transferEncoding) else {
            throw HTTP1Error(.malformedTrailers, "framing after the body", sentBy: sender)
        }
        return trailers
    }

    @inline(__always)
    private static func readLine(
        in section: RawSpan, from start: Int, isFirst: Bool, sentBy sender: MessageSender
    ) throws(HTTP1Error) -> FieldLine? {
        let colon = section.endOfToken(from: start)
        guard colon < section.byteCount else { return nil }
        guard colon > start, section.byte(colon) == Octet.colon else {
            throw nameFault(in: section, start..<colon, isFirst: isFirst, sentBy: sender)
        }
        var end = colon + 1
        while true {
            end = section.firstControl(from: end)
            guard end < section.byteCount, section.byte(end) == Octet.tab else { break }
            end += 1
        }
        guard try section.hasLineEnd(at: end, sentBy: sender) else { return nil }
        return FieldLine(
            name: Range(start..<colon), value: Range(section.trimmed(colon + 1..<end)), line: Range(start..<end + 2),
            known: FieldName(in: section, at: start..<colon))
    }

    /// Why the octet after `name` is not allowed.
    private static func nameFault(
        in section: RawSpan, _ name: Range<Int>, isFirst: Bool, sentBy sender: MessageSender
    ) -> HTTP1Error {
        let next = section.byte(name.upperBound)
        switch next {
        case Octet.lineFeed:
            return HTTP1Error(.bareLineFeed, "line feed without carriage return", sentBy: sender)
        case Octet.space, Octet.tab:
            guard name.isEmpty else {
                return HTTP1Error(.malformedField, "white space before the colon", sentBy: sender)
            }
            return isFirst
                ? HTTP1Error(.malformedField, "white space before the first field", sentBy: sender)
                : HTTP1Error(.obsoleteFolding, "field value folded onto a second line", sentBy: sender)
        case Octet.colon:
            return HTTP1Error(.malformedField, "empty field name", sentBy: sender)
        default:
            return HTTP1Error(.malformedField, "byte \(hexadecimal(next)) in a field name", sentBy: sender)
        }
    }
}

extension RawSpan {
    /// Whether CRLF is at `position`; false if more input is needed. Throws for any other octet, with `code` unless it
    /// is CR or LF.
    @inline(__always)
    func hasLineEnd(
        at position: Int, orElse code: HTTP1Error.Code = .malformedField, sentBy sender: MessageSender
    ) throws(HTTP1Error) -> Bool {
        if position < byteCount - 1, isLineEnd(position) { return true }
        return try hasNoLineEnd(at: position, code, sender)
    }

    /// False if more input is needed. Not inlined, because it is rarely called.
    private func hasNoLineEnd(
        at position: Int, _ code: HTTP1Error.Code, _ sender: MessageSender
    ) throws(HTTP1Error) -> Bool {
        guard position < byteCount else { return false }
        switch byte(position) {
        case Octet.carriageReturn:
            guard position + 1 < byteCount else { return false }
            throw HTTP1Error(.bareCarriageReturn, "carriage return without line feed", sentBy: sender)
        case Octet.lineFeed:
            throw HTTP1Error(.bareLineFeed, "line feed without carriage return", sentBy: sender)
        case let other:
            throw HTTP1Error(code, "control character \(hexadecimal(other))", sentBy: sender)
        }
    }
}

/// `0x0b`, for error texts.
func hexadecimal(_ octet: UInt8) -> String {
    octet < 16 ? "0x0" + String(octet, radix: 16) : "0x" + String(octet, radix: 16)
}
