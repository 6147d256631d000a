// SPDX-License-Identifier: Apache-2.0

/// Writes a head. Whatever value it is given, no CR, LF, NUL or other control character but HTAB leaves it.
struct HeadWriter {
    /// A piece that fits costs one copy and no more. From the first one that does not, nothing is written.
    private let room: UnsafeMutableRawBufferPointer
    /// How many bytes the head has, those that did not fit among them.
    private(set) var count = 0

    private init(_ room: UnsafeMutableRawBufferPointer) { self.room = room }

    /// Has `body` write into `room`. How many bytes that is; where it is more than the room has, what stands there is of no use.
    static func write(into room: UnsafeMutableRawBufferPointer, _ body: (inout HeadWriter) -> Void) -> Int {
        var writer = HeadWriter(room)
        body(&writer)
        return writer.count
    }

    /// What `write` writes into the room that it is given. `about` is as much as it will likely be; where it says that it is more,
    /// it is asked again with as much.
    static func bytes(about: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) -> [UInt8] {
        var capacity = about
        while true {
            var count = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { room, filled in
                count = write(UnsafeMutableRawBufferPointer(room))
                filled = count <= room.count ? count : 0
            }
            if bytes.count == count { return bytes }
            capacity = count
        }
    }

    /// As ``bytes(about:_:)``.
    static func bytes(about: Int, _ body: (inout HeadWriter) -> Void) -> [UInt8] {
        bytes(about: about) { write(into: $0, body) }
    }

    private mutating func append(_ octets: UnsafeRawBufferPointer) {
        if octets.count > 0, count + octets.count <= room.count {
            UnsafeMutableRawBufferPointer(rebasing: room[count...]).copyMemory(from: octets)
        }
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
            guard octets.span.bytes.isPrintable else { return false }
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

    /// The lines that `isKept`, byte for byte and in order. `run` is a part of the same bytes that goes out before them: with the
    /// lines that follow it at once it costs one copy.
    mutating func lines(of fields: FieldLines, behind run: Range<Int> = 0..<0, where isKept: (FieldLine) -> Bool) {
        var run = run
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
