// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import Testing

@testable import CountersignAudit

@Suite struct AuditLineTests {
    private static func text(_ line: borrowing AuditLine) -> String {
        String(decoding: line.bytes, as: UTF8.self)
    }

    /// The same memory, with lines of all lengths.
    @Test func aLineHasNothingOfTheOneBefore() {
        var line = AuditLine()
        for length in [0, 1, 900, 5000, 3, 70_000, 20] {
            let text = String(repeating: "x", count: length)
            line.begin(7)
            line.add(",\"program\":", text)
            let content = "{\"n\":7,\"program\":\"\(text)\""
            let hash = line.finish()
            #expect(hash.text == Hex.encode(Digest.sha256.hash(Array((content + "}").utf8))), "\(length)")
            #expect(Self.text(line) == "\(content),\"hash\":\"\(hash.text)\"}\n")
        }
    }

    @Test func aTimeIsThatOfTheTimestamp() {
        var line = AuditLine()
        for (seconds, milliseconds) in [
            (1_767_225_600, 0), (1_767_225_600, 7), (1_767_225_600, 999), (1_767_225_601, 0), (-1, 5), (-1, 50),
            (1_767_225_600, 80), (.min, 0), (.max, 999),
        ] as [(Int64, Int64)] {
            let time = Timestamp((seconds, milliseconds))
            line.begin(1)
            line.add(",\"time\":", time)
            #expect(Self.text(line) == "{\"n\":1,\"time\":\"\(time.text)\"")
        }
    }

    @Test(arguments: [0, 9, 10, 99, 100, 1_000_000_007, UInt64(Int64.max), .max])
    func aNumberHasItsDigits(number: UInt64) {
        var line = AuditLine()
        line.begin(number)
        #expect(Self.text(line) == "{\"n\":\(number)")
    }

    /// Each character in each place of a text of which eight bytes are compared at once.
    @Test func textIsEscapedAsInJSON() {
        var line = AuditLine()
        for scalar in (0...0x17F).compactMap({ Unicode.Scalar($0) }) + ["\u{202E}", "\u{1F600}"] {
            for place in 0..<18 {
                var characters = Array(repeating: Unicode.Scalar("a"), count: 18)
                characters[place] = scalar
                let text = String(String.UnicodeScalarView(characters))
                line.begin(1)
                line.add(",\"a\":", text)
                let expected = "{\"n\":1,\"a\":\"\(JSONObject.escaped(text))\""
                if Self.text(line) != expected { Issue.record("\(scalar.value) at \(place)") }
            }
        }
    }
}
