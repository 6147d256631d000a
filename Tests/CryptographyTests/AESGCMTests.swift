// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

/// The test cases of "The Galois/Counter Mode of Operation" (McGrew, Viega) appendix B that NIST SP 800-38D took over.
@Suite struct AESGCMTests {
    struct Case: Sendable {
        let key: String
        let nonce: String
        let header: String
        let plaintext: String
        let sealed: String
    }

    private static let longKey = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"
    private static let longText =
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255"
    private static let longSealed =
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad"

    static let cases: [Case] = [
        Case(
            key: String(repeating: "0", count: 64), nonce: String(repeating: "0", count: 24), header: "", plaintext: "",
            sealed: "530f8afbc74536b9a963b4f1c4cb738b"),
        Case(
            key: String(repeating: "0", count: 64), nonce: String(repeating: "0", count: 24), header: "",
            plaintext: String(repeating: "0", count: 32),
            sealed: "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"),
        Case(
            key: longKey, nonce: "cafebabefacedbaddecaf888", header: "", plaintext: longText,
            sealed: longSealed + "b094dac5d93471bdec1a502270e3cc6c"),
        Case(
            key: longKey, nonce: "cafebabefacedbaddecaf888", header: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            plaintext: String(longText.prefix(120)),
            sealed: String(longSealed.prefix(120)) + "76fc6ece0f4e1768cddf8853bb2d551b"),
    ]

    private func bytes(_ digits: String) throws -> [UInt8] {
        try #require(Hex.decode(digits))
    }

    @Test(arguments: cases)
    func sealsAndOpensTheVectors(_ vector: Case) throws {
        let key = Secret(try bytes(vector.key))
        let plaintext = try bytes(vector.plaintext)
        let sealed = try plaintext.withUnsafeBytes {
            try AESGCM.seal($0, key: key, nonce: bytes(vector.nonce), authenticating: bytes(vector.header))
        }
        #expect(Hex.encode(sealed) == vector.sealed)
        let opened = try AESGCM.open(
            bytes(vector.sealed), key: key, nonce: bytes(vector.nonce), authenticating: bytes(vector.header))
        #expect(opened == Secret(plaintext))
    }

    @Test(arguments: cases.filter { $0.header.isEmpty })
    func sealsAndOpensTheVectorsInBuffers(_ vector: Case) throws {
        let (key, nonce) = (Secret(try bytes(vector.key)), try bytes(vector.nonce))
        let (plaintext, wanted) = (try bytes(vector.plaintext), try bytes(vector.sealed))
        var sealed = [UInt8](repeating: 0, count: plaintext.count + AESGCM.tagBytes)
        var opened = [UInt8](repeating: 1, count: plaintext.count)
        try plaintext.withUnsafeBytes { plaintext in
            try sealed.withUnsafeMutableBytes { try AESGCM.seal(plaintext, into: $0, key: key, nonce: nonce) }
        }
        #expect(sealed == wanted)
        func open() throws {
            try sealed.withUnsafeBytes { sealed in
                try opened.withUnsafeMutableBytes { try AESGCM.open(sealed, into: $0, key: key, nonce: nonce) }
            }
        }
        try open()
        #expect(opened == plaintext)
        for index in sealed.indices {
            sealed[index] ^= 1
            #expect(throws: CryptographyError(.authenticationFailed, "")) { try open() }
            sealed[index] ^= 1
        }
    }

    @Test func everyFlippedBitIsRefused() throws {
        let vector = Self.cases[1]
        let key = Secret(try bytes(vector.key))
        let nonce = try bytes(vector.nonce)
        let sealed = try bytes(vector.sealed)
        for bit in 0..<8 * sealed.count {
            var altered = sealed
            altered[bit / 8] ^= 1 << (bit % 8)
            #expect(throws: CryptographyError(.authenticationFailed, "")) {
                try AESGCM.open(altered, key: key, nonce: nonce, authenticating: [])
            }
        }
    }

    @Test func otherKeyNonceOrHeaderIsRefused() throws {
        let vector = Self.cases[3]
        let (key, nonce) = (try bytes(vector.key), try bytes(vector.nonce))
        let (header, sealed) = (try bytes(vector.header), try bytes(vector.sealed))
        let attempts = [
            ([key[0] ^ 1] + key.dropFirst(), nonce, header), (key, [nonce[0] ^ 1] + nonce.dropFirst(), header),
            (key, nonce, [header[0] ^ 1] + header.dropFirst()), (key, nonce, []),
        ]
        for (key, nonce, header) in attempts {
            #expect(throws: CryptographyError(.authenticationFailed, "")) {
                try AESGCM.open(sealed, key: Secret(key), nonce: nonce, authenticating: header)
            }
        }
    }

    @Test(arguments: 0..<16)
    func fewerBytesThanATagAreRefused(count: Int) {
        #expect(throws: CryptographyError(.authenticationFailed, "")) {
            try AESGCM.open(
                [UInt8](repeating: 0, count: count), key: Secret([UInt8](repeating: 0, count: 32)),
                nonce: [UInt8](repeating: 0, count: 12), authenticating: [])
        }
    }

    @Test(arguments: [(31, 12), (33, 12), (16, 12), (32, 11), (32, 13), (0, 12), (32, 0)])
    func keyAndNonceHaveFixedLengths(keyBytes: Int, nonceBytes: Int) {
        #expect(throws: CryptographyError(.invalidParameter, "")) {
            try AESGCM.open(
                [UInt8](repeating: 0, count: 16), key: Secret([UInt8](repeating: 0, count: keyBytes)),
                nonce: [UInt8](repeating: 0, count: nonceBytes), authenticating: [])
        }
    }
}
