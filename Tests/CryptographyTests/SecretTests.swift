// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@Suite struct SecretTests {
    @Test func descriptionsAreRedacted() {
        let secret = Secret(utf8: "correct horse")
        var dumped = ""
        dump(secret, to: &dumped)
        for text in ["\(secret)", String(reflecting: secret), "\([secret])", "\(Optional(secret) as Any)", dumped] {
            #expect(!text.contains("horse"))
            #expect(text.contains("(secret)"))
        }
    }

    @Test func equalityIsOfBytesAndLength() {
        #expect(Secret([1, 2, 3]) == Secret([1, 2, 3]))
        #expect(Secret([1, 2, 3]) != Secret([1, 2, 4]))
        #expect(Secret([1, 2, 3]) != Secret([1, 2]))
        #expect(Secret([UInt8]()) == Secret([UInt8]()))
    }

    @Test func textIsGivenBackUnlessItIsNotUTF8() {
        #expect(Secret(utf8: "pässwörd").utf8Text == "pässwörd")
        #expect(Secret(utf8: "").utf8Text == "")
        #expect(Secret([0xC3, 0x28]).utf8Text == nil)
    }

    @Test func randomBytesDiffer() {
        #expect(Randomness.bytes(32) != Randomness.bytes(32))
        #expect(Randomness.secret(32) != Randomness.secret(32))
        #expect(Randomness.bytes(0) == [])
        #expect(Randomness.secret(16).count == 16)
    }
}
