// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Foundation
import Testing

@testable import CountersignCertificates

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

    @Test func es256SignaturesVerifyWithTheCoordinates() throws {
        let key = try PrivateKey.generateP256()
        let (x, y) = try key.p256Coordinates()
        let verifier = try VerificationKey(.p256, x: x, y: y)
        // Numbers with leading zeros occur once in 128 signatures.
        for count in 0..<300 {
            let message = Array("message \(count)".utf8)
            let signature = try key.es256Signature(of: message)
            #expect(verifier.verifies(signature, of: message, .ecdsa(.sha256)), "\(signature)")
            #expect(!verifier.verifies(signature, of: message + [0], .ecdsa(.sha256)))
        }
    }

    @Test func es256NeedsP256() throws {
        for key in try [PrivateKey.generate(.ecP384), PrivateKey.generateRSA(bits: 2048)] {
            #expect(code { _ = try key.es256Signature(of: [1]) } == .unsupported)
            #expect(code { _ = try key.p256Coordinates() } == .unsupported)
        }
    }

    @Test(arguments: ["origin-ec", "origin-rsa", "client-a"])
    func aKeyMatchesItsOwnCertificateOnly(name: String) throws {
        let key = try TestPKI.key(name)
        #expect(try key.matches(TestPKI.leaf(name)))
        #expect(try !key.matches(TestPKI.leaf("origin-sha384")))
        #expect(try !key.matches(TestPKI.leaf("client-b")))
    }

    /// The key of RFC 6979 §A.2.5, in OpenSSL's form and in others: every way of reading it gives the same key.
    @Test(arguments: [
        // In OpenSSL's form.
        "308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420#a14403420004@",
        // With a point in hybrid form (X9.62 §4.3.6), which OpenSSL keeps.
        "308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420#a14403420007@",
        // With the curve's name a second time.
        "308193020100301306072a8648ce3d020106082a8648ce3d030107047930770201010420#a00a06082a8648ce3d030107a14403420004@",
        // Without the public key.
        "3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420#",
    ])
    func everyFormOfAP256KeyGivesTheSameKey(form: String) throws {
        let scalar = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721"
        let point =
            "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
            + "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"
        let octets = try Self.octets(form.replacing("#", with: scalar).replacing("@", with: point))
        let isPlain = form.hasPrefix("308187") && form.hasSuffix("04@")
        #expect(octets.withUnsafeBytes { P256KeyDecoder($0)?.read() != nil } == isPlain)
        let key = try PrivateKey(pkcs8: Secret(octets))
        #expect(key.kind == .ec(curve: "P-256"))
        let request = try CertificationRequest.make(subject: SubjectName("CN=x"), key: key).der
        #expect(request.firstRange(of: try Self.octets(point)) != nil)
        let folder = try TemporaryFolder()
        try Data(request).write(to: folder.url.appendingPathComponent("request.der"))
        let said = try openssl("req", "-inform", "DER", "-in", folder.path("request.der"), "-verify", "-noout")
        #expect(said.contains("verify OK"))
    }

    private static func octets(_ hexadecimal: String) throws -> [UInt8] {
        let digits = Array(hexadecimal)
        return try stride(from: 0, to: digits.count, by: 2).map {
            try #require(UInt8(String(digits[$0..<$0 + 2]), radix: 16))
        }
    }

    /// With a changed last octet of the point.
    @Test func aPointThatIsNotOnTheCurveIsRefused() throws {
        var bytes = try PrivateKey.generateP256().pkcs8.withBytes { Array($0) }
        bytes[bytes.count - 1] ^= 1
        #expect(code { _ = try PrivateKey(pkcs8: Secret(bytes)) } == .malformed)
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

    @Test func aKeysDescriptionIsRedacted() throws {
        let key = try PrivateKey.generateP256()
        var dumped = ""
        dump(key, to: &dumped)
        #expect("\(key)" == "(private key, EC P-256)")
        #expect(!dumped.contains("Secret") && !dumped.contains("pkcs8"))
    }
}
