// SPDX-License-Identifier: Apache-2.0

/// The framing fields of a response whose head is repaired (RFC 9112 §6.3).
///
/// Content-Length may be repeated with equal values, and have leading zeros. In Transfer-Encoding, `identity` and empty
/// elements mean nothing. `chunked` alone takes precedence over Content-Length, and is read in HTTP/1.0 or with a tab
/// beside it too, and a value may be folded, but no other message is then read from the connection: another reader may
/// have found another end. Anything else is passed on in one line, for the parser to refuse.
struct FramingRepair {
    var isHTTP10 = false
    /// Whether another reader may find another end of the message.
    var isAmbiguous = false
    /// Whether the last value is one of Content-Length.
    private var endsWithLength = false
    private var lengths: [Range<Int>] = []
    private var encodings: [Range<Int>] = []

    /// The value of another line of Content-Length or Transfer-Encoding.
    mutating func note(_ name: FieldName, _ value: Range<Int>) {
        endsWithLength = name == .contentLength
        if endsWithLength { lengths.append(value) } else { encodings.append(value) }
    }

    /// The last value goes on in another line, which ends at `end`.
    mutating func extendValue(to end: Int) {
        isAmbiguous = true
        if endsWithLength {
            lengths.append(lengths.removeLast().lowerBound..<end)
        } else {
            encodings.append(encodings.removeLast().lowerBound..<end)
        }
    }

    /// Only HTTP/1.1 defines Transfer-Encoding.
    func requiresHTTP11(_ head: RawSpan) -> Bool { isHTTP10 && !codings(head).isEmpty }

    func write(_ head: RawSpan, to clean: inout [UInt8]) {
        let codings = codings(head)
        let length = length(head)
        let isChunked = codings.count == 1 && head.matches("chunked", at: codings[0])
        for (index, coding) in codings.enumerated() {
            clean += (index == 0 ? "Transfer-Encoding: " : ", ").utf8
            append(head, coding, to: &clean)
        }
        if !codings.isEmpty { clean.appendLineEnd() }
        if let length {
            if !isChunked {
                clean += "Content-Length: ".utf8
                clean.append(head, length)
                clean.appendLineEnd()
            }
        } else {
            for value in lengths {
                clean += "Content-Length:".utf8
                append(head, value, to: &clean)
                clean.appendLineEnd()
            }
        }
        let isDoubtful = !encodings.isEmpty && (isHTTP10 || !lengths.isEmpty || encodingsHaveTab(head))
        if isDoubtful || isAmbiguous { clean += "Connection: close\r\n".utf8 }
    }

    /// Appends a value in one line.
    private func append(_ head: RawSpan, _ value: Range<Int>, to clean: inout [UInt8]) {
        for position in value {
            let octet = head.byte(position)
            clean.append(Self.isBlank(octet) ? Octet.space : octet)
        }
    }

    /// White space, and the ends of the lines of a folded value.
    private static func isBlank(_ octet: UInt8) -> Bool {
        Octet.isWhitespace(octet) || octet == Octet.carriageReturn || octet == Octet.lineFeed
    }

    /// The transfer codings, except `identity`.
    private func codings(_ head: RawSpan) -> [Range<Int>] {
        var codings: [Range<Int>] = []
        for value in encodings {
            forEachElement(head, value) { element in
                if !element.isEmpty, !head.matches("identity", at: element) { codings.append(element) }
            }
        }
        return codings
    }

    private func encodingsHaveTab(_ head: RawSpan) -> Bool {
        for value in encodings {
            for position in value where head.byte(position) == Octet.tab { return true }
        }
        return false
    }

    /// The digits of the only length; nil without one, if two differ, or if one is not a number below 2^63.
    private func length(_ head: RawSpan) -> Range<Int>? {
        var found: (number: UInt64, digits: Range<Int>)?
        var isValid = true
        for value in lengths {
            forEachElement(head, value) { element in
                let digits = withoutZeros(head, element)
                guard let number = FramingFields.decimal(head, digits), number == found?.number ?? number else {
                    isValid = false
                    return
                }
                found = (number, digits)
            }
        }
        return isValid ? found?.digits : nil
    }

    /// `digits` without leading zeros, but with the last one.
    private func withoutZeros(_ head: RawSpan, _ digits: Range<Int>) -> Range<Int> {
        var start = digits.lowerBound
        while start < digits.upperBound - 1, head.byte(start) == 0x30 { start += 1 }
        return start..<digits.upperBound
    }

    /// Visits the elements of a comma-separated list, empty ones included.
    private func forEachElement(_ head: RawSpan, _ value: Range<Int>, _ visit: (Range<Int>) -> Void) {
        var start = value.lowerBound
        while true {
            var end = start
            while end < value.upperBound, head.byte(end) != Octet.comma { end += 1 }
            var (lower, upper) = (start, end)
            while lower < upper, Self.isBlank(head.byte(lower)) { lower += 1 }
            while lower < upper, Self.isBlank(head.byte(upper - 1)) { upper -= 1 }
            visit(lower..<upper)
            guard end < value.upperBound else { return }
            start = end + 1
        }
    }
}
