// SPDX-License-Identifier: Apache-2.0

/// Where one field line stands in its section's bytes.
package struct FieldLine: Hashable, Sendable {
    package let name: Range<UInt32>
    /// Without the white space around it.
    package let value: Range<UInt32>
    /// The whole line with its CRLF.
    package let line: Range<UInt32>
    package let known: FieldName

    /// Whether the line is its name, a colon, one space and its value, and nothing else that the grammar allows: what every
    /// recipient reads alike.
    func isPlain(in section: RawSpan) -> Bool {
        value.lowerBound == name.upperBound + 2 && line.upperBound == value.upperBound + 2
            && section.byte(Int(name.upperBound) + 1) == Octet.space
    }

    /// Whether HTAB stands in it: beside the value, where the grammar lets it, or inside. No other control character stands before
    /// the line's end.
    func hasTab(in section: RawSpan) -> Bool {
        section.byte(section.firstControl(from: Int(line.lowerBound))) == Octet.tab
    }
}

/// The field lines of a head or a trailer section, over the bytes that came and in the order in which they came.
package struct FieldLines: Hashable, Sendable {
    /// The whole head: start-line, field lines, final empty line. Of a trailer section: the same without a start-line.
    package let bytes: [UInt8]
    package let lines: [FieldLine]
    /// One bit for each `FieldName` that occurs.
    private let present: UInt32
    /// What the Connection field says.
    let connection: ConnectionField
    /// What the fields say that frame the message.
    let framing: FramingFields

    /// Of a section that was read, whole.
    init(bytes: consuming [UInt8], _ section: consuming Section) {
        self.bytes = bytes
        lines = section.lines
        present = section.present
        connection = section.connection
        framing = section.framing
    }

    package func contains(_ name: FieldName) -> Bool { present & name.bit != 0 }

    package func count(of name: FieldName) -> Int {
        guard contains(name) else { return 0 }
        var count = 0
        for line in lines where line.known == name { count += 1 }
        return count
    }

    /// The first line's value; octets that are no UTF-8 become U+FFFD.
    package func value(of name: FieldName) -> String? {
        guard contains(name) else { return nil }
        return lines.first { $0.known == name }.map(value(of:))
    }

    /// The first line's value as it came.
    package func valueBytes(of name: FieldName) -> ArraySlice<UInt8>? {
        guard contains(name) else { return nil }
        return lines.first { $0.known == name }.map(valueBytes(of:))
    }

    /// Whether the first line's value is exactly `octets`.
    package func value(of name: FieldName, equals octets: [UInt8]) -> Bool {
        guard contains(name) else { return false }
        for line in lines where line.known == name { return bytes.span.bytes.holds(octets, at: Range(line.value)) }
        return false
    }

    /// Each line's value, in order.
    package func values(of name: FieldName) -> [String] {
        guard contains(name) else { return [] }
        return lines.filter { $0.known == name }.map(value(of:))
    }

    /// Each value of the lines of this name, in order; the name is compared without regard to case.
    package func values(named name: String) -> [String] {
        let lowercase = name.lowercased()
        let span = bytes.span.bytes
        var values: [String] = []
        for line in lines where span.matches(lowercase, at: Range(line.name)) { values.append(value(of: line)) }
        return values
    }

    package func name(of line: FieldLine) -> String { String(decoding: bytes[Range(line.name)], as: UTF8.self) }

    package func value(of line: FieldLine) -> String { String(decoding: bytes[Range(line.value)], as: UTF8.self) }

    /// The value's octets as they came.
    package func valueBytes(of line: FieldLine) -> ArraySlice<UInt8> { bytes[Range(line.value)] }

    /// ``FieldLine/isPlain(in:)``
    func isPlain(_ line: FieldLine) -> Bool { line.isPlain(in: bytes.span.bytes) }

    /// Whether a list-valued field of this name has the element, compared without regard to case; for lists of tokens.
    package func list(_ name: FieldName, contains lowercase: String) -> Bool {
        guard contains(name) else { return false }
        let span = bytes.span.bytes
        var isFound = false
        forEachElement(of: name) { element in
            if !isFound { isFound = span.matches(lowercase, at: element) }
        }
        return isFound
    }

    /// Where the elements of a list-valued field stand.
    func elements(of name: FieldName) -> [Range<Int>] {
        var elements: [Range<Int>] = []
        forEachElement(of: name) { elements.append($0) }
        return elements
    }

    /// Visits the elements of a list-valued field over all of its lines; empty ones are left out (RFC 9110 §5.6.1.2).
    /// Knows nothing of quoted strings: for lists of tokens.
    func forEachElement(of name: FieldName, _ visit: (Range<Int>) -> Void) {
        guard contains(name) else { return }
        for line in lines where line.known == name { bytes.span.bytes.forEachElement(of: Range(line.value), visit) }
    }
}

extension Range<Int> {
    init(_ range: Range<UInt32>) { self = Int(range.lowerBound)..<Int(range.upperBound) }
}

extension Range<UInt32> {
    init(_ range: Range<Int>) { self = UInt32(range.lowerBound)..<UInt32(range.upperBound) }
}
