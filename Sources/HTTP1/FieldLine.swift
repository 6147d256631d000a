// SPDX-License-Identifier: Apache-2.0

/// One field line, as ranges of its section's bytes.
package struct FieldLine: Hashable, Sendable {
    package let name: Range<UInt32>
    /// Without leading and trailing white space.
    package let value: Range<UInt32>
    /// The whole line with its CRLF.
    package let line: Range<UInt32>
    package let known: FieldName

    /// Whether the line is exactly its name, a colon, one space and its value, without the optional white space that
    /// the grammar allows: every recipient reads such a line in the same way.
    func isPlain(in section: RawSpan) -> Bool {
        value.lowerBound == name.upperBound + 2 && line.upperBound == value.upperBound + 2
            && section.byte(Int(name.upperBound) + 1) == Octet.space
    }

    /// Whether the line contains HTAB, beside or inside the value. The parser has refused every other control character
    /// before the line's end.
    func hasTab(in section: RawSpan) -> Bool {
        section.byte(section.firstControl(from: Int(line.lowerBound))) == Octet.tab
    }
}

extension Range<Int> {
    init(_ range: Range<UInt32>) { self = Int(range.lowerBound)..<Int(range.upperBound) }
}

extension Range<UInt32> {
    init(_ range: Range<Int>) { self = UInt32(range.lowerBound)..<UInt32(range.upperBound) }
}
