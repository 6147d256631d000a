// SPDX-License-Identifier: Apache-2.0

/// A frame as it is on the wire (RFC 9113 §4.1), valid or not: 9 octets of head (24 bits of length, type, flags,
/// 32 bits of stream identifier) and the payload.
struct Frame: Hashable, Sendable {
    var type: UInt8
    var flags: UInt8
    var stream: UInt32
    var payload: [UInt8]
    /// Overrides the length in the head.
    var declaredLength: Int?

    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    static let endStream: UInt8 = 0x1
    static let ack: UInt8 = 0x1
    static let endHeaders: UInt8 = 0x4
    static let padded: UInt8 = 0x8
    static let priority: UInt8 = 0x20

    init(_ type: UInt8, flags: UInt8 = 0, on stream: UInt32 = 0, _ payload: [UInt8] = [], declaredLength: Int? = nil) {
        self.type = type
        self.flags = flags
        self.stream = stream
        self.payload = payload
        self.declaredLength = declaredLength
    }

    var octets: [UInt8] {
        let length = declaredLength ?? payload.count
        return [UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, flags]
            + Frame.octets(stream) + payload
    }

    static func octets(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(number >> (24 - 8 * $0) & 0xFF) } }

    /// The 32 bits at `offset` of the payload.
    func number(at offset: Int = 0) -> UInt32 {
        payload[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    // MARK: The types of RFC 9113 §6

    static func data(_ stream: UInt32, _ text: String = "", ends: Bool = false) -> Frame {
        data(stream, octets: Array(text.utf8), ends: ends)
    }

    static func data(_ stream: UInt32, octets: [UInt8], ends: Bool = false) -> Frame {
        Frame(0, flags: ends ? endStream : 0, on: stream, octets)
    }

    static func headers(
        _ stream: UInt32, _ fields: [Field], ends: Bool = true, isWhole: Bool = true, flags: UInt8 = 0,
        prefix: [UInt8] = []
    ) -> Frame {
        headers(stream, block: prefix + fields.flatMap(\.literal), ends: ends, isWhole: isWhole, flags: flags)
    }

    static func headers(
        _ stream: UInt32, block: [UInt8], ends: Bool = true, isWhole: Bool = true, flags: UInt8 = 0
    ) -> Frame {
        Frame(1, flags: flags | (ends ? endStream : 0) | (isWhole ? endHeaders : 0), on: stream, block)
    }

    static func priority(_ stream: UInt32, on parent: UInt32 = 0, weight: UInt8 = 15) -> Frame {
        Frame(2, on: stream, octets(parent) + [weight])
    }

    static func reset(_ stream: UInt32, _ code: UInt32 = 8) -> Frame { Frame(3, on: stream, octets(code)) }

    static func settings(_ entries: [(UInt16, UInt32)] = []) -> Frame {
        Frame(4, entries.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 0xFF)] + octets($0.1) })
    }

    static let settingsAck = Frame(4, flags: ack)

    static func ping(isAck: Bool = false) -> Frame { Frame(6, flags: isAck ? ack : 0, [UInt8](repeating: 7, count: 8)) }

    static func goAway(last: UInt32 = 0, _ code: UInt32 = 0) -> Frame { Frame(7, octets(last) + octets(code)) }

    static func windowUpdate(_ stream: UInt32, _ increment: UInt32) -> Frame {
        Frame(8, on: stream, octets(increment))
    }

    static func continuation(_ stream: UInt32, _ block: [UInt8] = [], isWhole: Bool = true) -> Frame {
        Frame(9, flags: isWhole ? endHeaders : 0, on: stream, block)
    }

    // MARK: Reading

    /// The whole frames in `octets`.
    static func all(in octets: [UInt8]) -> [Frame] {
        var frames: [Frame] = []
        var start = 0
        while octets.count - start >= 9 {
            let length = octets[start..<start + 3].reduce(0) { $0 << 8 | Int($1) }
            guard octets.count - start >= 9 + length else { break }
            let stream = octets[start + 5..<start + 9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            frames.append(
                Frame(
                    octets[start + 3], flags: octets[start + 4], on: stream,
                    Array(octets[start + 9..<start + 9 + length])))
            start += 9 + length
        }
        return frames
    }
}

/// A field, and its simplest form in HPACK.
struct Field: Hashable, Sendable, CustomStringConvertible {
    var name: [UInt8]
    var value: [UInt8]
    var isNeverIndexed = false

    init(_ name: String, _ value: String) { self.init(name, octets: Array(value.utf8)) }

    init(_ name: String, octets: [UInt8]) {
        self.name = Array(name.utf8)
        value = octets
    }

    init(name: [UInt8], value: [UInt8], isNeverIndexed: Bool) {
        self.name = name
        self.value = value
        self.isNeverIndexed = isNeverIndexed
    }

    /// A literal without indexing, or never indexed, without Huffman code (RFC 7541 §6.2.2, §6.2.3).
    var literal: [UInt8] {
        [isNeverIndexed ? 0x10 : 0x00] + Field.integer(name.count, prefixBits: 7) + name
            + Field.integer(value.count, prefixBits: 7) + value
    }

    /// A literal with incremental indexing (RFC 7541 §6.2.1).
    var indexedLiteral: [UInt8] { [0x40] + literal.dropFirst() }

    /// RFC 7541 §5.1; the other bits of the first octet are 0.
    static func integer(_ number: Int, prefixBits: Int) -> [UInt8] {
        let limit = 1 << prefixBits - 1
        guard number >= limit else { return [UInt8(number)] }
        var octets = [UInt8(limit)]
        var rest = number - limit
        while rest >= 128 {
            octets.append(UInt8(rest % 128 | 128))
            rest /= 128
        }
        return octets + [UInt8(rest)]
    }

    var description: String {
        "\(String(decoding: name, as: UTF8.self)): \(String(decoding: value, as: UTF8.self))"
    }

    /// A valid GET.
    static let get = request()

    static func request(_ method: String = "GET", _ path: String = "/", _ more: [Field] = []) -> [Field] {
        [Field(":method", method), Field(":scheme", "https"), Field(":authority", "a.example"), Field(":path", path)]
            + more
    }

    static func request(_ method: String, _ more: [Field]) -> [Field] { request(method, "/", more) }
}
