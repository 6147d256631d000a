// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignCryptography

@Suite struct PrintableTextTests {
    /// One or more of each kind that Unicode has: C0, DEL, C1, zero width, joiners, directions (marks, embeddings,
    /// overrides, isolates, the Arabic letter mark), separators, soft hyphen, byte order mark, fillers, invisible
    /// operators, variation selectors, annotations, tags.
    static let hidden: [UInt32] =
        [
            0x00, 0x07, 0x09, 0x0D, 0x1B, 0x7F, 0x80, 0x85, 0x9B, 0xAD, 0x34F, 0x61C, 0x70F, 0x115F, 0x17B4, 0x180B,
            0x180E, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0xFFFB, 0x110BD, 0x1BCA0, 0x1D173, 0xE0001,
            0xE0020, 0xE007F, 0xE0100,
        ] + Array(0x200B...0x200F) + Array(0x2028...0x202E) + Array(0x2060...0x206F)

    private static func text(_ value: UInt32) -> String { String(Unicode.Scalar(value).map(Character.init) ?? "?") }

    @Test(arguments: hidden)
    func whatCannotBeSeenIsWrittenAsItsNumber(value: UInt32) {
        let number = String(value, radix: 16, uppercase: true)
        #expect(PrintableText.escaped("a\(Self.text(value))b") == "a\\u{\(number)}b")
        #expect(PrintableText.escaped("a\(Self.text(value))b", keepsLines: true) == "a\\u{\(number)}b")
        let line = PrintableText.line("a\(Self.text(value))b", limit: 9)
        #expect(line == "ab" || line == "a b")
    }

    @Test(arguments: ["", "plain ASCII ~", "Zoë Müller 王芳 Ελένη", "שלום", "مرحبا", "é", "a\u{301}", "👍", "\u{A0}x"])
    func whatPeopleWriteStays(text: String) {
        #expect(PrintableText.escaped(text) == text)
        #expect(PrintableText.escapedJSON(text) == text)
    }

    @Test func linesStayOnlyIfTheyAreOurs() {
        #expect(PrintableText.escaped("a\nb\r\n", keepsLines: true) == "a\nb\\u{D}\n")
        #expect(PrintableText.escaped("a\nb") == "a\\u{A}b")
    }

    @Test func jsonKeepsItsValues() {
        let json = "{\n \"a\": \"x\u{202E}\u{7F}\u{E0041}é\"\n}"
        #expect(PrintableText.escapedJSON(json) == "{\n \"a\": \"x\\u202e\\u007f\\udb40\\udc41é\"\n}")
    }
}
