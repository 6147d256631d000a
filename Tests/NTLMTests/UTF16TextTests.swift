// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignNTLM

@Suite struct UTF16TextTests {
    @Test(arguments: [("", ""), ("A", "4100"), ("é€", "e900ac20"), ("𝄞", "34d81edd"), ("a\0b", "610000006200")])
    func textIsLittleEndian(text: String, digits: String) throws {
        #expect(Hex.encode(UTF16Text.encode(text)) == digits)
        #expect(UTF16Text.decode(hex(digits)) == text)
        let secret = try #require(UTF16Text.encode(utf8: Secret(utf8: text)))
        #expect(Hex.encode(secret.bytes.bytes.prefix(secret.count)) == digits)
    }

    @Test(arguments: ["41", "410042", "34d8", "1edd", "34d84100", "1edd34d8"])
    func halfUnitsAndLoneSurrogatesAreNotText(digits: String) {
        #expect(UTF16Text.decode(hex(digits)) == nil)
    }

    /// UnicodeData.txt, field 12 (simple upper-case mapping). Dotless i and long s stay unchanged, as in Windows.
    @Test(arguments: [
        ("jdoe-09_.$", "JDOE-09_.$"), ("äöüéñç", "ÄÖÜÉÑÇ"), ("ÿ", "Ÿ"), ("ß", "ß"), ("ŉ", "ŉ"), ("ǰ", "ǰ"), ("ﬁ", "ﬁ"),
        ("ı", "ı"), ("ſ", "ſ"), ("ǆ", "Ǆ"), ("ǅ", "Ǆ"), ("ᾳ", "ᾼ"), ("ᾼ", "ᾼ"), ("ᾀ", "ᾈ"), ("ᾲ", "ᾲ"), ("ΐ", "ΐ"),
        ("όλος", "ΌΛΟΣ"), ("ключ", "КЛЮЧ"), ("𐐨", "𐐨"), ("日本", "日本"), ("i\u{307}", "I\u{307}"),
    ])
    func upperCaseKeepsTheLength(text: String, upper: String) {
        #expect(UTF16Text.uppercase(text) == UTF16Text.encode(upper))
    }

    @Test func noScalarOfTheBasicPlaneChangesItsLength() {
        for value in UInt32(0)...0xFFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            #expect(UTF16Text.uppercase(String(Character(scalar))).count == 2, "U+\(String(value, radix: 16))")
        }
    }
}
