// SPDX-License-Identifier: Apache-2.0

/// The octets that have a name in the grammar, and classes of octets.
enum Octet {
    static let tab: UInt8 = 0x09
    static let lineFeed: UInt8 = 0x0A
    static let carriageReturn: UInt8 = 0x0D
    static let space: UInt8 = 0x20
    static let quote: UInt8 = 0x22
    static let comma: UInt8 = 0x2C
    static let hyphen: UInt8 = 0x2D
    static let colon: UInt8 = 0x3A
    static let semicolon: UInt8 = 0x3B
    static let equals: UInt8 = 0x3D
    static let backslash: UInt8 = 0x5C

    /// tchar (RFC 9110 §5.6.2).
    @inline(__always)
    static func isToken(_ octet: UInt8) -> Bool {
        // A bitmap, for octets 0–63 and 64–127.
        let bits: UInt64 = octet < 64 ? 0x03FF_6CFA_0000_0000 : octet < 128 ? 0x57FF_FFFF_C7FF_FFFE : 0
        return bits >> UInt64(octet & 63) & 1 == 1
    }

    @inline(__always)
    static func isDigit(_ octet: UInt8) -> Bool { octet &- 0x30 < 10 }
    static func isAlphanumeric(_ octet: UInt8) -> Bool { isDigit(octet) || (octet | 0x20) &- 0x61 < 26 }

    @inline(__always)
    static func isWhitespace(_ octet: UInt8) -> Bool { octet == space || octet == tab }

    /// Maps A–Z to a–z and leaves other octets unchanged.
    @inline(__always)
    static func lowercased(_ octet: UInt8) -> UInt8 { octet &- 0x41 < 26 ? octet | 0x20 : octet }
}

// Eight octets are examined at a time. Byte by byte, a plain request takes 2,860 instructions more.

extension RawSpan {
    private static var low: UInt64 { 0x0101_0101_0101_0101 }
    private static var high: UInt64 { 0x8080_8080_8080_8080 }

    @inline(__always)
    func byte(_ offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }

    /// The offset of the first octet from `offset` on that is not a tchar, or `byteCount`.
    @inline(__always)
    func endOfToken(from offset: Int) -> Int { end(from: offset, before: byteCount, of: Octet.isToken) }

    /// The offset of the first octet from `offset` on that is not `isPart`, or `limit`. Letters and the hyphen must be
    /// `isPart`: runs of them are skipped eight at a time.
    @inline(__always)
    func end(from offset: Int, before limit: Int, of isPart: (UInt8) -> Bool) -> Int {
        var position = offset
        while position <= limit - 8 {
            let found = RawSpan.perhapsNoLetterOrHyphen(in: eightBytes(position)).trailingZeroBitCount / 8
            guard found < 8 else {
                position += 8
                continue
            }
            position += found
            guard isPart(byte(position)) else { return position }
            position += 1
        }
        while position < limit, isPart(byte(position)) { position += 1 }
        return position
    }

    /// The offset of the first control character, including HTAB and DEL, from `offset` on, or `byteCount`.
    @inline(__always)
    func firstControl(from offset: Int) -> Int {
        var position = offset
        while position <= byteCount - 8 {
            let word = eightBytes(position)
            let found = RawSpan.below(0x20, in: word) | RawSpan.below(1, in: word ^ (RawSpan.low &* 0x7F))
            if found != 0 { return position + found.trailingZeroBitCount / 8 }
            position += 8
        }
        while position < byteCount, byte(position) >= 0x20, byte(position) != 0x7F { position += 1 }
        return position
    }

    /// The offset of the first octet from `offset` on that is not visible ASCII (VCHAR), or `byteCount`.
    func firstNotVisible(from offset: Int) -> Int {
        var position = offset
        while position <= byteCount - 8 {
            let word = eightBytes(position)
            let found =
                RawSpan.below(0x21, in: word) | RawSpan.below(1, in: word ^ (RawSpan.low &* 0x7F))
                | (word & RawSpan.high)
            if found != 0 { return position + found.trailingZeroBitCount / 8 }
            position += 8
        }
        while position < byteCount, byte(position) > 0x20, byte(position) < 0x7F { position += 1 }
        return position
    }

    /// Whether every octet is ASCII and not a control character.
    var isPrintable: Bool {
        withUnsafeBytes { octets in
            // The highest bit of an octet of `bad` is set if the octet was beyond ASCII, 0x7F or below 0x20. An octet
            // beyond ASCII can make the others wrong by a carry, but not the result.
            var bad: UInt64 = 0
            let wholeWords = octets.count & ~7
            for offset in stride(from: 0, to: wholeWords, by: 8) {
                let word = octets.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                bad |= word | (word &+ RawSpan.low) | ~((word | RawSpan.high) &- (RawSpan.low &* 0x20))
            }
            return bad & RawSpan.high == 0 && octets[wholeWords...].allSatisfy { $0 &- 0x20 < 0x5F }
        }
    }

    /// Visits the elements of the comma-separated list at `value`, except empty ones.
    func forEachElement(of value: Range<Int>, _ visit: (Range<Int>) -> Void) {
        var start = value.lowerBound
        var position = start
        while position < value.upperBound {
            if byte(position) == Octet.comma {
                let element = trimmed(start..<position)
                if !element.isEmpty { visit(element) }
                start = position + 1
            }
            position += 1
        }
        let element = trimmed(start..<value.upperBound)
        if !element.isEmpty { visit(element) }
    }

    /// Whether `range` is `name`, compared case-insensitively. `range` has no control character except HTAB, and `name`
    /// consists of lower-case letters and hyphens: setting bit 5, which makes a letter lower case, turns no other octet
    /// into one of these.
    @inline(__always)
    func isName(_ name: StaticString, at range: Range<Int>) -> Bool {
        let count = name.utf8CodeUnitCount
        guard range.count == count else { return false }
        let expected = UnsafeRawPointer(name.utf8Start)
        guard count >= 8 else {
            var offset = 0
            while offset < count {
                guard byte(range.lowerBound + offset) | 0x20 == expected.load(fromByteOffset: offset, as: UInt8.self)
                else { return false }
                offset += 1
            }
            return true
        }
        // The last word may overlap the one before it.
        var offset = 0
        while true {
            let word = UInt64(littleEndian: expected.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            guard eightBytes(range.lowerBound + offset) | 0x2020_2020_2020_2020 == word else { return false }
            guard offset < count - 8 else { return true }
            offset = Swift.min(offset + 8, count - 8)
        }
    }

    /// Whether `range` is `lowercase`, compared case-insensitively.
    func matches(_ lowercase: String, at range: Range<Int>) -> Bool {
        guard range.count == lowercase.utf8.count else { return false }
        var position = range.lowerBound
        for expected in lowercase.utf8 {
            guard Octet.lowercased(byte(position)) == expected else { return false }
            position += 1
        }
        return true
    }

    /// Whether `range` is exactly `text`.
    func equals(_ text: String, at range: Range<Int>) -> Bool {
        guard range.count == text.utf8.count else { return false }
        var text = text
        return text.withUTF8 { holds($0.span.bytes, at: range) }
    }

    /// Whether `range` is exactly `text`, a short literal.
    func equals(_ text: StaticString, at range: Range<Int>) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        for offset in 0..<range.count where byte(range.lowerBound + offset) != text.utf8Start[offset] { return false }
        return true
    }

    /// Whether `range` is exactly `octets`.
    func holds(_ octets: [UInt8], at range: Range<Int>) -> Bool { holds(octets.span.bytes, at: range) }

    private func holds(_ expected: RawSpan, at range: Range<Int>) -> Bool {
        let count = expected.byteCount
        guard range.count == count else { return false }
        guard count >= 8 else {
            for offset in 0..<count where byte(range.lowerBound + offset) != expected.byte(offset) { return false }
            return true
        }
        // The last word may overlap the one before it.
        var offset = 0
        while true {
            guard eightBytes(range.lowerBound + offset) == expected.eightBytes(offset) else { return false }
            guard offset < count - 8 else { return true }
            offset = Swift.min(offset + 8, count - 8)
        }
    }

    /// `range` without the SP and HTAB at both its ends.
    @inline(__always)
    func trimmed(_ range: Range<Int>) -> Range<Int> {
        var (lower, upper) = (range.lowerBound, range.upperBound)
        while lower < upper, Octet.isWhitespace(byte(lower)) { lower += 1 }
        while lower < upper, Octet.isWhitespace(byte(upper - 1)) { upper -= 1 }
        return lower..<upper
    }

    /// A copy of the first `count` octets.
    func copy(first count: Int) -> [UInt8] {
        extracting(0..<count).withUnsafeBytes { [UInt8]($0) }
    }

    /// Eight octets, the first one in the lowest eight bits.
    @inline(__always)
    func eightBytes(_ offset: Int) -> UInt64 {
        UInt64(littleEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    @inline(__always)
    func isLineEnd(_ offset: Int) -> Bool {
        UInt16(littleEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self)) == 0x0A0D
    }

    /// Sets the high bit of each octet of `word` that is neither a letter nor a hyphen, and of some letters.
    @inline(__always)
    private static func perhapsNoLetterOrHyphen(in word: UInt64) -> UInt64 {
        let folded = word | low &* 0x20
        let noLetter = below(0x61, in: folded) | ((folded &+ low &* (0x7F - 0x7A)) | folded) & high
        let apart = word ^ low &* 0x2D
        let noHyphen = (apart & ~high &+ ~high | apart) & high
        return noLetter & noHyphen
    }

    /// Sets the high bit of each octet of `word` below `bound`. Only the lowest bit set is exact.
    @inline(__always)
    private static func below(_ bound: UInt64, in word: UInt64) -> UInt64 {
        (word &- low &* bound) & ~word & high
    }
}
