// SPDX-License-Identifier: Apache-2.0

/// Writes a head. Whatever value it is given, no CR, LF, NUL or other control character but HTAB leaves it.
struct HeadWriter {
    /// Room that was made beforehand: a piece that fits costs one copy and no more.
    private let room: UnsafeMutableRawBufferPointer
    private var count = 0
    /// From the first piece on that did not fit.
    private var spill: [UInt8] = []

    private init(_ room: UnsafeMutableRawBufferPointer) { self.room = room }

    /// What `body` writes. `capacity` is about as much as it will be; more is written all the same.
    static func bytes(capacity: Int, _ body: (inout HeadWriter) -> Void) -> [UInt8] {
        var spill: [UInt8] = []
        var bytes = [UInt8](unsafeUninitializedCapacity: capacity) { room, count in
            var writer = HeadWriter(UnsafeMutableRawBufferPointer(room))
            body(&writer)
            count = writer.count
            spill = writer.spill
        }
        if !spill.isEmpty { bytes += spill }
        return bytes
    }

    private mutating func append(_ octets: UnsafeRawBufferPointer) {
        guard spill.isEmpty, octets.count <= room.count - count else { return spill.append(contentsOf: octets) }
        guard octets.count > 0 else { return }
        UnsafeMutableRawBufferPointer(rebasing: room[count...]).copyMemory(from: octets)
        count += octets.count
    }

    /// Octets that are known to be sound: validated ones that came, or text of ours.
    mutating func append(_ octets: [UInt8]) {
        octets.withUnsafeBytes { append($0) }
    }

    mutating func append(_ octets: ArraySlice<UInt8>) {
        octets.withUnsafeBytes { append($0) }
    }

    /// The same, of a range of those that came.
    mutating func append(_ octets: [UInt8], _ range: Range<Int>) {
        octets.withUnsafeBytes { append(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    mutating func append(_ literal: StaticString) {
        literal.withUTF8Buffer { append(UnsafeRawBufferPointer($0)) }
    }

    mutating func append(text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    /// One field line; control characters in `value` become spaces, and octets beyond ASCII `?` unless they are kept.
    mutating func field(_ name: StaticString, _ value: String, keepsNonASCII: Bool = false) {
        append(name)
        append(": ")
        append(mended: value, keepsNonASCII: keepsNonASCII)
        append("\r\n")
    }

    /// A field line whose name the caller of this room chose.
    mutating func extraField(_ name: String, _ value: String) {
        precondition(!name.isEmpty && name.utf8.allSatisfy(Octet.isToken), "a field name of ours is no token")
        append(text: name)
        append(": ")
        append(mended: value, keepsNonASCII: false)
        append("\r\n")
    }

    private mutating func append(mended value: String, keepsNonASCII: Bool) {
        var value = value
        let isSound = value.withUTF8 { octets in
            guard octets.allSatisfy({ $0 &- 0x20 < 0x5F }) else { return false }
            append(UnsafeRawBufferPointer(octets))
            return true
        }
        guard !isSound else { return }
        append(
            value.utf8.map { octet -> UInt8 in
                switch octet {
                case Octet.tab, 0x20..<0x7F: octet
                case 0x80...: keepsNonASCII ? octet : 0x3F
                default: Octet.space
                }
            })
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
            append(text: String(length))
            append("\r\n")
        case .chunked:
            append("Transfer-Encoding: chunked\r\n")
        }
    }
}
