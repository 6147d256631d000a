// SPDX-License-Identifier: Apache-2.0

/// One rule line in the text of a suffix list, located without decoding it.
struct SuffixLine {
    /// The first word, up to ASCII white space.
    private let word: Range<Int>
    private let end: Int
    /// Otherwise the word contains non-ASCII bytes, which may include the white space that ends it.
    private let isASCII: Bool

    /// The next line that is neither blank nor a comment; nil at the end. Moves `position` past it.
    init?(in text: UnsafeBufferPointer<UInt8>, at position: inout Int) {
        while true {
            while position < text.count, Self.isSpace(text[position]) { position += 1 }
            guard position < text.count else { return nil }
            guard text[position] == UInt8(ascii: "/"), position + 1 < text.count, text[position + 1] == text[position]
            else { break }
            position = Self.lineEnd(in: text, from: position)
        }
        let start = position
        var bits: UInt8 = 0
        while position < text.count, !Self.isSpace(text[position]) {
            bits |= text[position]
            position += 1
        }
        word = start..<position
        isASCII = bits < 0x80
        position = Self.lineEnd(in: text, from: position)
        end = position
    }

    /// The rule's name and kind, if the name is canonical; nil if it has to be decoded and canonicalised.
    func rule(in text: UnsafeBufferPointer<UInt8>) -> (name: Range<Int>, kinds: SuffixTable.Kinds)? {
        guard isASCII else { return nil }
        var (name, kinds): (Range<Int>, SuffixTable.Kinds) = (word, .plain)
        if text[word.lowerBound] == UInt8(ascii: "!") {
            (name, kinds) = (word.dropFirst(), .exception)
        } else if text[word.lowerBound] == UInt8(ascii: "*"), text[word].starts(with: "*.".utf8) {
            (name, kinds) = (word.dropFirst(2), .wildcard)
        }
        return HostName.isPlainName(UnsafeBufferPointer(rebasing: text[name])) ? (name, kinds) : nil
    }

    /// The first word up to any Unicode white space; otherwise empty.
    func firstWord(in text: UnsafeBufferPointer<UInt8>) -> String {
        guard text[word].contains(where: Self.mayBeginSpace) else { return String(decoding: text[word], as: UTF8.self) }
        let line = String(decoding: text[word.lowerBound..<end], as: UTF8.self).unicodeScalars
        return line.split(whereSeparator: \.properties.isWhitespace).first.map(String.init) ?? ""
    }

    /// The end of the line that contains `position`.
    private static func lineEnd(in text: UnsafeBufferPointer<UInt8>, from position: Int) -> Int {
        var end = position
        while end < text.count, !isLineEnd(text[end]) { end += 1 }
        return end
    }

    private static func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    /// Whether the byte begins a non-ASCII white-space character in UTF-8: U+0085, U+00A0, U+1680, U+2000 to U+205F,
    /// U+3000.
    private static func mayBeginSpace(_ byte: UInt8) -> Bool { byte == 0xC2 || (0xE1...0xE3).contains(byte) }
}
