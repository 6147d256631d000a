// SPDX-License-Identifier: Apache-2.0

/// Writes a head. Whatever value it is given, no CR, LF, NUL or other control character but HTAB leaves it.
struct HeadWriter {
    private(set) var bytes: [UInt8] = []

    init(capacity: Int) { bytes.reserveCapacity(capacity) }

    /// Octets that are known to be sound: literals of ours, or validated ones that came.
    mutating func append(_ octets: some Collection<UInt8>) { bytes.append(contentsOf: octets) }

    /// The same, of a range of those that came.
    mutating func append(_ octets: [UInt8], _ range: Range<Int>) {
        octets.withUnsafeBytes { bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    mutating func append(_ literal: StaticString) {
        literal.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    /// One field line; control characters in `value` become spaces, and octets beyond ASCII `?` unless they are kept.
    mutating func field(_ name: StaticString, _ value: String, keepsNonASCII: Bool = false) {
        append(name)
        append(": ")
        appendText(value, keepsNonASCII: keepsNonASCII)
        append("\r\n")
    }

    /// A field line whose name the caller of this room chose.
    mutating func extraField(_ name: String, _ value: String) {
        precondition(!name.isEmpty && name.utf8.allSatisfy(Octet.isToken), "a field name of ours is no token")
        append(name.utf8)
        append(": ")
        appendText(value, keepsNonASCII: false)
        append("\r\n")
    }

    private mutating func appendText(_ value: String, keepsNonASCII: Bool) {
        let start = bytes.count
        bytes.append(contentsOf: value.utf8)
        // Most have nothing to mend.
        guard let first = firstUnsound(from: start) else { return }
        for position in first..<bytes.count {
            switch bytes[position] {
            case Octet.tab, 0x20..<0x7F: break
            case 0x80...: if !keepsNonASCII { bytes[position] = 0x3F }
            default: bytes[position] = Octet.space
            }
        }
    }

    /// The first octet that is not visible ASCII or SP.
    private func firstUnsound(from start: Int) -> Int? {
        bytes.withUnsafeBufferPointer { octets in
            var position = start
            while position < octets.count {
                guard octets[position] &- 0x20 < 0x5F else { return position }
                position += 1
            }
            return nil
        }
    }

    /// The lines that `isKept`, byte for byte and in order.
    mutating func lines(of fields: FieldLines, where isKept: (FieldLine) -> Bool) {
        var run = 0..<0
        for line in fields.lines where isKept(line) {
            let range = Range<Int>(line.line)
            if range.lowerBound == run.upperBound {
                run = run.lowerBound..<range.upperBound
            } else {
                append(fields.bytes, run)
                run = range
            }
        }
        append(fields.bytes, run)
    }

    /// Content-Length or Transfer-Encoding, as the framing asks.
    mutating func framing(_ framing: BodyFraming) {
        switch framing {
        case .none, .untilClose:
            break
        case .length(let length):
            append("Content-Length: ")
            append(String(length).utf8)
            append("\r\n")
        case .chunked:
            append("Transfer-Encoding: chunked\r\n")
        }
    }
}
