// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import Testing

@Suite struct JSONReaderTests {
    @Test func membersAreReadByType() throws {
        var reader = try reader(#"{"s":"x","i":3,"b":true,"l":["y"],"o":{"k":"v"},"z":[1]}"#, .strict)
        #expect(try reader.string("s") == "x")
        #expect(try reader.integer("i") == 3)
        #expect(try reader.boolIfPresent("b") == true)
        #expect(try reader.strings("l") == ["y"])
        #expect(try reader.array("z").map(\.content) == [.integer(1)])
        var inner = try reader.object("o")
        #expect(try inner.string("k") == "v")
        #expect(try inner.stringIfPresent("absent") == nil)
        try inner.finish()
        try reader.finish()
    }

    @Test func anUnknownKeyIsAnErrorWithItsPlaceAndTheNearestKey() throws {
        var reader = try reader("{\n  \"client_id\": \"x\",\n    \"issuerr\": \"y\" }", .strict)
        _ = try reader.stringIfPresent("issuer")
        _ = try reader.string("client_id")
        #expect(
            message { () throws(JSONError) in try reader.finish() }
                == "line 3, column 5: \"issuerr\" is not a known key; did you mean \"issuer\"?")
        var other = try self.reader(#"{"zzzzzz":1}"#, .strict)
        _ = try other.stringIfPresent("issuer")
        #expect(
            message { () throws(JSONError) in try other.finish() } == "line 1, column 2: \"zzzzzz\" is not a known key")
    }

    /// The misspelt key is the fault, not the missing one. A server's document may have both.
    @Test func aMisspeltRequiredKeyIsNamed() throws {
        var reader = try reader("{\"clients\": 1,\n \"client_idd\": \"x\"}", .strict)
        #expect(
            message { () throws(JSONError) in _ = try reader.string("client_id") }
                == "line 2, column 2: \"client_idd\" is not a known key; did you mean \"client_id\"?")
        var known = try self.reader(#"{"issuers": "x"}"#, .strict)
        _ = try known.string("issuers")
        #expect(throws: JSONError(.missingMember, at: start, "")) { try known.string("issuer") }
        var lenient = try self.reader(#"{"issuers": "x"}"#, .lenient)
        #expect(throws: JSONError(.missingMember, at: start, "")) { try lenient.string("issuer") }
    }

    @Test func keysInsideAnObjectAreCheckedToo() throws {
        var reader = try reader(#"{"o":{"a":1}}"#, .strict)
        let inner = try reader.object("o")
        #expect(throws: JSONError(.unknownMember, at: start, "")) { try inner.finish() }
    }

    @Test func aServersDocumentMayHaveMore() throws {
        var reader = try reader(#"{"issuer":"x","more":1,"nothing":null}"#, .lenient)
        #expect(try reader.string("issuer") == "x")
        #expect(try reader.stringIfPresent("nothing") == nil)
        try reader.finish()
    }

    @Test func nullIsAValueInAPersonsDocument() throws {
        var reader = try reader(#"{"a":null}"#, .strict)
        #expect(
            message { () throws(JSONError) in _ = try reader.stringIfPresent("a") }
                == "line 1, column 6: \"a\" must be a string, not null")
    }

    @Test func aWrongTypeIsAnErrorWithoutTheValue() throws {
        var reader = try reader(#"{"a":"secret","b":1.5,"c":[1],"d":{}}"#, .lenient)
        #expect(
            message { () throws(JSONError) in _ = try reader.integer("a") }
                == "line 1, column 6: \"a\" must be a whole number, not a string")
        #expect(throws: JSONError(.wrongValue, at: start, "")) { try reader.integer("b") }
        #expect(throws: JSONError(.wrongValue, at: start, "")) { try reader.strings("c") }
        #expect(throws: JSONError(.wrongValue, at: start, "")) { try reader.string("d") }
        #expect(throws: JSONError(.wrongValue, at: start, "")) { try reader.boolIfPresent("a") }
        #expect(throws: JSONError(.missingMember, at: start, "")) { try reader.string("e") }
        #expect(throws: JSONError(.wrongValue, at: start, "")) {
            try JSONReader(JSONValue(.array([])), "the profile", .strict)
        }
    }

    private let start = JSONPosition(line: 1, column: 1)

    private func reader(_ text: String, _ strictness: JSONReader.Strictness) throws(JSONError) -> JSONReader {
        try JSONReader(try JSONParser.parse(Array(text.utf8)), "the text", strictness)
    }

    private func message(_ body: () throws(JSONError) -> Void) -> String? {
        do {
            try body()
            return nil
        } catch {
            return error.detail
        }
    }
}
