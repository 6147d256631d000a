// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@Suite struct Base64Tests {
    /// RFC 4648 §10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func vectorsOfTheRFC(text: String, encoded: String) {
        #expect(Base64.encode(Array(text.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(text.utf8))
    }

    @Test(arguments: [
        "Z", "Zg", "Zg=", "Zg===", "Z===", "====", "=", "==", "Zm9v=", "Zm9v====", "=Zg=", "Zg==Zg==", "Zm=v", "Zh==",
        "Zm9=", "Zm9v\n", " Zm9v", "Zm 9", "Zm9-", "Zm9_", "Zm9\u{E9}", "Zm9\0", "Zg=A",
    ])
    func anythingElseIsNotBase64(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test(arguments: 0...66)
    func everyLengthComesBack(count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ 89) }
        let text = Base64.encode(bytes)
        #expect(text.utf8.count == (count + 2) / 3 * 4)
        #expect(Base64.decode(text) == bytes)
    }
}

@Suite struct Base64URLTests {
    /// RFC 7515 appendix C, and the empty text.
    @Test(arguments: [([3, 236, 255, 224, 193], "A-z_4ME"), ([], ""), ([0xFB], "-w"), ([0xFF, 0xFF], "__8")])
    func vectorsOfTheRFC(bytes: [UInt8], encoded: String) {
        #expect(Base64URL.encode(bytes) == encoded)
        #expect(Base64URL.encodeSecret(bytes).utf8Text == encoded)
        #expect(Base64URL.decode(encoded) == bytes)
        #expect(Base64URL.decodeSecret(Array(encoded.utf8)) == Secret(bytes))
    }

    @Test(arguments: [
        "A+z/4ME", "A-z_4ME=", "-w==", "-", "-x", "+w", "A/z_", "A===", "A-z_4", "A-z_4ME\n", " -w", "-w.",
        "A-z_4ME\u{E9}",
    ])
    func anythingElseIsNotBase64URL(text: String) {
        #expect(Base64URL.decode(text) == nil)
        #expect(Base64URL.decodeSecret(Array(text.utf8)) == nil)
    }
}

@Suite struct HexTests {
    @Test func everyByteHasTheSameDigitsAtEachOffset() {
        let octets = (UInt8.min...UInt8.max).map { $0 }
        // Every length leaves another remainder of the words that are converted at once.
        for start in 250..<256 {
            let bytes = Array((octets + octets)[start..<(start + 256)])
            #expect(Hex.digits(bytes) == Array(Hex.encode(bytes).utf8))
            #expect(Hex.digits(Array(bytes.dropLast(start % 4))) == Array(Hex.encode(bytes.dropLast(start % 4)).utf8))
        }
    }

    @Test func digitsAreLowerCaseAndMayBeSeparated() {
        #expect(Hex.encode([0x00, 0x9F, 0xAB]) == "009fab")
        #expect(Hex.encode([0x00, 0x9F, 0xAB], separator: ":") == "00:9f:ab")
        #expect(Hex.encode([], separator: ":") == "")
    }

    @Test func bothCasesAreRead() {
        #expect(Hex.decode("009FaB") == [0x00, 0x9F, 0xAB])
        #expect(Hex.decode("") == [])
    }

    @Test(arguments: ["0", "000", "0g", "g0", " 00", "00:9f", "0x00", "\u{FF10}0", "/0", ":0", "@0", "`0"])
    func anythingElseIsNotHex(text: String) {
        #expect(Hex.decode(text) == nil)
    }
}
