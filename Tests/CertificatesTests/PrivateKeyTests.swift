// SPDX-License-Identifier: Apache-2.0

import Certificates
import Cryptography
import Testing

struct PrivateKeyTests {
    @Test func pkcs8GoesThereAndBack() throws {
        let generated = try PrivateKey.generateP256()
        #expect(generated.kind == .ec(curve: "P-256"))
        let again = try PrivateKey(pkcs8: generated.pkcs8)
        #expect(try again.pkcs8 == generated.pkcs8)
        #expect(again.kind == generated.kind)
    }

    @Test func rsaKeysHaveTheBitsAskedFor() throws {
        #expect(try PrivateKey.generateRSA(bits: 2048).kind == .rsa(bits: 2048))
        #expect(code { _ = try PrivateKey.generateRSA(bits: 1024) } == .unsupported)
        #expect(code { _ = try PrivateKey.generateRSA(bits: 2049) } == .unsupported)
    }

    @Test(arguments: ["origin-ec", "origin-rsa", "client-a"])
    func aKeyMatchesItsOwnCertificateOnly(name: String) throws {
        let key = try TestPKI.key(name)
        #expect(try key.matches(TestPKI.leaf(name)))
        #expect(try !key.matches(TestPKI.leaf("origin-sha384")))
        #expect(try !key.matches(TestPKI.leaf("client-b")))
    }

    @Test func bytesThatAreNotOneKeyAreRefused() throws {
        let bytes = try PrivateKey.generateP256().pkcs8.withBytes { Array($0) }
        for length in 0..<bytes.count {
            #expect(
                code { _ = try PrivateKey(pkcs8: Secret(Array(bytes.prefix(length)))) } == .malformed,
                "cut at \(length)")
        }
        #expect(code { _ = try PrivateKey(pkcs8: Secret(bytes + [0])) } == .malformed)
    }

    @Test func aKeyShowsNothingOfItself() throws {
        let key = try PrivateKey.generateP256()
        var dumped = ""
        dump(key, to: &dumped)
        #expect("\(key)" == "(private key, EC P-256)")
        #expect(!dumped.contains("Secret") && !dumped.contains("pkcs8"))
    }
}
