// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignAudit

@Suite struct AuditKeyTests {
    @Test func publicKeysAreReadBack() {
        let key = AuditFixture.key.publicKey
        #expect(AuditPublicKey(pem: key.pem) == key)
        #expect(AuditPublicKey(pem: key.pem.replacing("\n", with: "\r\n")) == key)
        #expect(key.id.utf8.count == 64 && key.id != AuditFixture.otherKey.publicKey.id)
    }

    @Test func otherTextsAreNoKeys() {
        let pem = AuditFixture.key.publicKey.pem
        for text in [
            "", pem + "x", pem.replacing("PUBLIC", with: "PRIVATE"), pem.replacing("MFkw", with: "MFkx"),
            pem.replacing("=", with: ""), String(pem.dropFirst()),
        ] {
            #expect(AuditPublicKey(pem: text) == nil, "\(text)")
        }
    }

    /// Numbers that begin with zeros or with a set bit have other lengths in DER.
    @Test(arguments: [
        ([UInt8](repeating: 0, count: 31) + [1], [UInt8](repeating: 0xFF, count: 32)),
        ([0x80] + [UInt8](repeating: 7, count: 31), [0, 0x80] + [UInt8](repeating: 7, count: 30)),
        ([UInt8](repeating: 0x7F, count: 32), [UInt8](repeating: 0, count: 32)),
    ])
    func signaturesAreReadBack(first: [UInt8], second: [UInt8]) {
        let encoded = ECDSASignature.encode(first + second)
        #expect(ECDSASignature.decode(encoded) == first + second)
        for end in encoded.indices { #expect(ECDSASignature.decode(Array(encoded[..<end])) == nil) }
        #expect(ECDSASignature.decode(encoded + [0]) == nil)
    }

    @Test func aSignatureIsOfItsMessageAndItsKey() throws {
        let signature = try #require(AuditFixture.key.signature(of: [1, 2]))
        #expect(AuditFixture.key.publicKey.verifies(signature, of: [1, 2]))
        #expect(!AuditFixture.key.publicKey.verifies(signature, of: [1, 3]))
        #expect(!AuditFixture.otherKey.publicKey.verifies(signature, of: [1, 2]))
    }
}
