// SPDX-License-Identifier: Apache-2.0

/// The contents of the framing fields, except the transfer codings.
struct FramingFields: Hashable, Sendable {
    /// The value of the only Content-Length if it is canonical: digits only, no leading zero, below 2^63.
    private(set) var contentLength: UInt64?
    /// Every recipient reads the Content-Length line in the same way; see ``FieldLine/isPlain(in:)``.
    private(set) var isPlainLength = false
    private var hasLength = false
    /// The first framing field with a tab in its line.
    private(set) var tabbed: FieldName?

    mutating func readLength(_ section: RawSpan, _ line: FieldLine) {
        contentLength = hasLength ? nil : FramingFields.decimal(section, Range(line.value))
        isPlainLength = line.isPlain(in: section)
        hasLength = true
        noteTab(section, line)
    }

    /// `line` is a Content-Length or Transfer-Encoding.
    mutating func noteTab(_ section: RawSpan, _ line: FieldLine) {
        if tabbed == nil, line.hasTab(in: section) { tabbed = line.known }
    }

    /// The number in `digits`, without a leading zero; nil if it is not a number, or 2^63 or more.
    static func decimal(_ section: RawSpan, _ digits: Range<Int>) -> UInt64? {
        guard !digits.isEmpty, digits.count <= 19 else { return nil }
        guard section.byte(digits.lowerBound) != 0x30 || digits.count == 1 else { return nil }
        var number: UInt64 = 0
        for position in digits {
            let digit = section.byte(position)
            guard Octet.isDigit(digit) else { return nil }
            // 19 digits are below 10^19, which is below 2^64.
            number = number &* 10 &+ UInt64(digit &- 0x30)
        }
        return number <= UInt64(Int64.max) ? number : nil
    }
}
