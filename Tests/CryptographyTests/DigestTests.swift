// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@Suite struct DigestTests {
    /// RFC 1321 appendix A.5 and FIPS 180-4's examples of "abc".
    @Test(arguments: [
        (Digest.md5, "900150983cd24fb0d6963f7d28e17f72"),
        (.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            .sha384,
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
                + "8086072ba1e7cc2358baeca134c825a7"
        ),
        (
            .sha512,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
    ])
    func digestsOfABC(digest: Digest, expected: String) {
        #expect(Hex.encode(digest.hash(Array("abc".utf8))) == expected)
        #expect(Hex.encode(digest.hash("abc".utf8)) == expected)
        #expect(expected.count == 2 * digest.lengthBytes)
    }

    @Test(arguments: [
        (Digest.md5, "d41d8cd98f00b204e9800998ecf8427e"),
        (.sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ])
    func digestsOfNothing(digest: Digest, expected: String) {
        #expect(Hex.encode(digest.hash([UInt8]())) == expected)
    }

    /// RFC 2202 §2.
    @Test(arguments: [
        ([UInt8](repeating: 0x0B, count: 16), Array("Hi There".utf8), "9294727a3638bb1c13f48ef8158bfc9d"),
        (Array("Jefe".utf8), Array("what do ya want for nothing?".utf8), "750c783e6ab0b503eaa86e310a5db738"),
        (
            [UInt8](repeating: 0xAA, count: 16), [UInt8](repeating: 0xDD, count: 50),
            "56be34521d144c88dbb8c733f0e8b3f6"
        ),
        (Array(1...25), [UInt8](repeating: 0xCD, count: 50), "697eaf0aca3a3aea3a75164746ffaa79"),
        (
            [UInt8](repeating: 0x0C, count: 16), Array("Test With Truncation".utf8),
            "56461ef2342edc00f9bab995690efd4c"
        ),
        (
            [UInt8](repeating: 0xAA, count: 80), Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
            "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd"
        ),
        (
            [UInt8](repeating: 0xAA, count: 80),
            Array("Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data".utf8),
            "6f630fad67cda0ee1fb1f562db3aa53e"
        ),
    ])
    func hmacMD5OfTheRFC(key: [UInt8], message: [UInt8], expected: String) {
        #expect(Hex.encode(Digest.md5.hmac(message, key: key)) == expected)
    }

    /// RFC 2202 §3 and RFC 4231 §4.3.
    @Test(arguments: [
        (Digest.sha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        (.sha256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    ])
    func hmacSHAOfTheRFCs(digest: Digest, expected: String) {
        let message = Array("what do ya want for nothing?".utf8)
        #expect(Hex.encode(digest.hmac(message, key: Array("Jefe".utf8))) == expected)
    }

    /// HMAC-MD5 with an empty key and message, as Python's hmac gives it.
    @Test func hmacTakesAnEmptyKey() {
        #expect(Hex.encode(Digest.md5.hmac([], key: [UInt8]())) == "74e6f7298a9c2d168935f58c001bad88")
    }
}
