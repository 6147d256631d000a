// SPDX-License-Identifier: Apache-2.0

/// A line of a list of suffixes that has a word, as far as its bytes tell.
struct SuffixLine {
    /// The first word, up to white space in ASCII.
    private let word: Range<Int>
    private let end: Int
    /// Otherwise the word has something beyond ASCII in it, which may be the white space that ends it.
    private let isASCII: Bool

    /// The next line that has a word, with `position` put behind it; nil at the end.
    init?(in text: UnsafeBufferPointer<UInt8>, at position: inout Int) {
        while position < text.count, Self.isSpace(text[position]) { position += 1 }
        guard position < text.count else { return nil }
        let start = position
        var bits: UInt8 = 0
        while position < text.count, !Self.isSpace(text[position]) {
            bits |= text[position]
            position += 1
        }
        word = start..<position
        isASCII = bits < 0x80
        while position < text.count, !Self.isLineEnd(text[position]) { position += 1 }
        end = position
    }

    func isComment(in text: UnsafeBufferPointer<UInt8>) -> Bool {
        isASCII && text[word.lowerBound] == UInt8(ascii: "/") && text[word].starts(with: "//".utf8)
    }

    /// A name that is canonical already, and what is said of it; nil where a closer look is needed.
    func rule(in text: UnsafeBufferPointer<UInt8>) -> (name: Range<Int>, kinds: SuffixTable.Kinds)? {
        guard isASCII else { return nil }
        let (name, kinds): (Range<Int>, SuffixTable.Kinds) =
            switch text[word.lowerBound] {
            case UInt8(ascii: "!"): (word.dropFirst(), .exception)
            case UInt8(ascii: "*") where text[word].starts(with: "*.".utf8): (word.dropFirst(2), .wildcard)
            default: (word, .plain)
            }
        return HostName.isPlainName(text[name]) ? (name, kinds) : nil
    }

    /// The first word up to any white space; empty where the line is nothing but that.
    func firstWord(in text: UnsafeBufferPointer<UInt8>) -> String {
        guard text[word].contains(where: Self.mayBeginSpace) else { return String(decoding: text[word], as: UTF8.self) }
        let line = String(decoding: text[word.lowerBound..<end], as: UTF8.self).unicodeScalars
        return line.split(whereSeparator: \.properties.isWhitespace).first.map(String.init) ?? ""
    }

    private static func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    /// The first bytes of white space beyond ASCII in UTF-8: U+0085 and U+00A0, U+1680, U+2000 to U+205F, U+3000.
    private static func mayBeginSpace(_ byte: UInt8) -> Bool { byte == 0xC2 || (0xE1...0xE3).contains(byte) }
}
