// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import Testing

@Suite struct UnicodeNameTests {
    /// RFC 8259 §8.3: names are equal if their code units are. Both spellings of é are canonically equivalent.
    @Test func equivalentNamesAreDifferentMembers() throws {
        let value = try JSONParser.parse(Array("{\"\u{E9}\":1,\"e\u{301}\":2}".utf8))
        #expect(value["\u{E9}"]?.content == .integer(1))
        #expect(value["e\u{301}"]?.content == .integer(2))
        var reader = try JSONReader(value, "the document", .strict)
        #expect(try reader.integer("e\u{301}") == 2)
        #expect(throws: JSONError(.unknownMember, at: JSONPosition(line: 1, column: 1), "")) { try reader.finish() }
    }

    @Test func aNameIsAtMost256BytesLong() throws {
        let name = String(repeating: "\u{E9}", count: 128)
        #expect(try JSONParser.parse(Array("{\"\(name)\":1}".utf8))[name]?.content == .integer(1))
        #expect(throws: JSONError(.tooLong, at: JSONPosition(line: 1, column: 1), "")) {
            try JSONParser.parse(Array("{\"\(name)a\":1}".utf8))
        }
    }

    @Test func textsAreComparedByTheirBytes() {
        #expect("\u{E9}" == "e\u{301}")
        #expect(!"\u{E9}".isExactly("e\u{301}"))
        #expect("abc".isExactly("xabc".dropFirst()))
        #expect(!["e\u{301}"].containsExactly("\u{E9}"))
    }
}
