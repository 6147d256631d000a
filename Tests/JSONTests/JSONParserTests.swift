// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import Foundation
import Testing

@Suite struct JSONParserTests {
    @Test func everyKindOfValueIsRead() throws {
        let value = try parse(#" {"a":[1,-2,1.50,-0,1e3,true,false,null,"x"], "b":{}, "c":[]} "#)
        #expect(
            value
                == object([
                    (
                        "a",
                        .array(
                            [
                                .integer(1), .integer(-2), .number("1.50"), .number("-0"), .number("1e3"), .bool(true),
                                .bool(false), .null, .string("x"),
                            ].map { JSONValue($0) })
                    ), ("b", .object([])), ("c", .array([])),
                ]))
    }

    @Test func integersAreExactAndLongerOnesKeepTheirText() throws {
        #expect(try parse("9223372036854775807").content == .integer(.max))
        #expect(try parse("-9223372036854775808").content == .integer(.min))
        #expect(try parse("9223372036854775808").content == .number("9223372036854775808"))
    }

    @Test(arguments: [
        (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"), (#""\u00e9\u20AC""#, "é€"), (#""\ud83d\uDE00""#, "😀"),
        (#""é😀""#, "é😀"), (#""\u0000""#, "\0"), (#""\uFFFF""#, "\u{FFFF}"), (#""""#, ""),
    ])
    func escapesAreDecoded(text: String, string: String) throws {
        #expect(try parse(text).content == .string(string))
    }

    @Test(arguments: [
        "", " ", "{", "[", "[1", "[1,", "[1,]", "[,1]", "{,}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, "{a:1}",
        "{'a':1}", "01", "1.", ".5", "-", "+1", "1e", "1e+", "0x10", "NaN", "Infinity", "tru", "True", "nul", "\"",
        "\"a", #""\""#, #""\x""#, #""\u12""#, #""\u12g4""#, "\"\n\"", "\"\t\"", "1 2", "{} x", "[1]]", "// a\n1",
        "1 /* a */", "\u{FEFF}1", "\u{A0}1", "\u{B}1", #""\ud800""#, #""\udc00""#, #""\ud800\ud800""#, #""\ud800x""#,
        #""\udc00\ud800""#, #""\ud800\u0041""#,
    ])
    func anythingElseIsRefused(text: String) {
        #expect(throws: JSONError(.malformed, at: start, "")) { try parse(text) }
    }

    @Test(arguments: [
        [0x22, 0xFF, 0x22], [0x22, 0xC0, 0xAF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0x22, 0xE2, 0x82, 0x22], [0x80],
    ])
    func invalidUTF8IsRefused(bytes: [UInt8]) {
        #expect(throws: JSONError(.malformed, at: start, "")) { try JSONParser.parse(bytes) }
    }

    @Test func aNameMayOccurOnceInAnObject() throws {
        #expect(throws: JSONError(.duplicateMember, at: start, "")) { try parse(#"{"a":1,"b":2,"\u0061":3}"#) }
        #expect(try parse(#"{"a":{"a":1},"b":{"a":2}}"#)["b"]?["a"]?.content == .integer(2))
    }

    @Test func theLimitsAreExact() throws {
        let limits = JSONLimits(bytes: 8, depth: 3)
        #expect(try JSONParser.parse(Array("[[[1]]] ".utf8), limits: limits).kind == "an array")
        #expect(throws: JSONError(.tooLong, at: start, "")) {
            try JSONParser.parse(Array("[[[1]]]  ".utf8), limits: limits)
        }
        #expect(throws: JSONError(.tooDeep, at: start, "")) {
            try JSONParser.parse(Array("[[[[]]]]".utf8), limits: limits)
        }
        #expect(throws: JSONError(.tooDeep, at: start, "")) {
            try parse(String(repeating: "[", count: 200_000))
        }
    }

    @Test func errorsNameTheLineAndColumn() {
        let cases = [
            ("{\n  \"é\": x}", "line 2, column 8: a value is expected here"),
            ("{\"a\":1,\r\n \"a\":2}", "line 2, column 2: the key \"a\" occurs twice in one object"),
            ("[1,\n\n2", "line 3, column 2: the text ends where a comma or the end of the array is expected"),
        ]
        for (text, message) in cases {
            do {
                _ = try parse(text)
                Issue.record("no error for \(text)")
            } catch {
                #expect(error.detail == message)
            }
        }
        #expect(fault([0x5B, 0x0A, 0x31, 0x2C, 0xFF])?.detail == "line 2, column 3: the text is not UTF-8")
    }

    @Test func everyMemberKnowsItsPlace() throws {
        let value = try parse("{ \"a\": 1,\n\t\"b\" : [ 2 ] }")
        guard case .object(let members) = value.content else { throw Unexpected() }
        #expect(members.map(\.position.description) == ["line 1, column 3", "line 2, column 2"])
        #expect(members.map(\.value.position.description) == ["line 1, column 8", "line 2, column 8"])
    }

    @Test func aTextOfOneLongLineTakesLinearTime() throws {
        let text = "[" + (0..<60_000).map { "{\"\($0)\":0}" }.joined(separator: ",") + "]"
        let clock = ContinuousClock()
        let time = try clock.measure {
            _ = try JSONParser.parse(Array(text.utf8), limits: JSONLimits(bytes: 1 << 20))
        }
        #expect(time < .seconds(60))
    }

    @Test func secretsAreKeptApart() throws {
        let value = try JSONParser.parse(
            Array(#"{"access_token":"ey\u004a","other":"x","deep":[{"access_token":"y"}]}"#.utf8),
            secrets: ["access_token"])
        #expect(value["access_token"]?.content == .secret(Secret(utf8: "eyJ")))
        #expect(!"\(value)".contains("eyJ"))
        #expect(value["other"]?.content == .string("x"))
        guard case .array(let values)? = value["deep"]?.content else { throw Unexpected() }
        #expect(values[0]["access_token"]?.content == .secret(Secret(utf8: "y")))
    }

    @Test func writingGivesTheShortestText() throws {
        let text = #"{"a":[1,-2.50,true,null,{}],"b":"\"\\/\u0000\u001fé"}"#
        #expect(try parse(" " + text).serialized == text)
    }

    @Test func aSecretIsWrittenAsTheStringThatItIs() throws {
        let value = try JSONParser.parse(
            Array(#"{"a":"x\"\\\n\u0001é","b":["x"]}"#.utf8), secrets: ["a"])
        let text = #"{"a":"x\"\\\u000a\u0001é","b":["x"]}"#
        #expect(value.serialized == text)
        #expect(value.serializedSecret == Secret(utf8: text + "\0"))
    }

    /// Randomly changed texts: Foundation accepts every text that this parser accepts, with the same result, and
    /// written values can be read again.
    @Test func whatIsAcceptedFoundationAcceptsToo() throws {
        var random = SplitMix(state: 7)
        let seed = Array(#"{"a":[1,-2.5e3,true,null,"x\u00e9\n"],"b":{"c":"é","d":[]}}"#.utf8)
        var accepted = 0
        for _ in 0..<20_000 {
            var bytes = seed
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: place)
                default: bytes.insert(seed[Int.random(in: 0..<seed.count, using: &random)], at: place)
                }
            }
            guard let value = try? JSONParser.parse(bytes) else { continue }
            accepted += 1
            #expect(throws: Never.self, "\(String(decoding: bytes, as: UTF8.self))") {
                _ = try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
            }
            #expect(try JSONParser.parse(Array(value.serialized.utf8)) == value)
        }
        #expect(accepted > 500)
    }

    private let start = JSONPosition(line: 1, column: 1)

    private func parse(_ text: String) throws(JSONError) -> JSONValue { try JSONParser.parse(Array(text.utf8)) }

    private func fault(_ bytes: [UInt8]) -> JSONError? {
        do {
            _ = try JSONParser.parse(bytes)
            return nil
        } catch {
            return error
        }
    }

    private func object(_ members: [(String, JSONValue.Content)]) -> JSONValue {
        JSONValue(.object(members.map { JSONMember($0.0, JSONValue($0.1)) }))
    }
}

struct Unexpected: Error {}

/// A small generator whose numbers are the same in every run.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
