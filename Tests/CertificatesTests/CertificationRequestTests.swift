// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import Foundation
import Testing

struct CertificationRequestTests {
    private static let subject = "CN=Jürgen Doe,O=ACME\\, Inc.,C=DE"

    /// The output of `openssl req`, which has to verify the signature.
    private func shown(_ request: CertificationRequest, _ options: String...) throws -> String {
        let folder = try TemporaryFolder()
        try Data(request.der).write(to: folder.url.appendingPathComponent("request.der"))
        let (status, output) = try run(
            "openssl",
            [
                "req", "-inform", "DER", "-in", folder.path("request.der"), "-verify", "-noout", "-nameopt",
                "RFC2253,-esc_msb",
            ]
                + options)
        try #require(status == 0 && output.contains("verify OK"), "\(output)")
        return output
    }

    @Test(arguments: [
        (KeySpecification.ecP256, "id-ecPublicKey", "ecdsa-with-SHA256"), (.ecP384, "secp384r1", "ecdsa-with-SHA384"),
        (.ecP521, "secp521r1", "ecdsa-with-SHA512"), (.rsa2048, "(2048 bit)", "sha256WithRSAEncryption"),
        (.rsa3072, "(3072 bit)", "sha256WithRSAEncryption"),
    ])
    func opensslAgreesWithEveryKindOfKey(kind: KeySpecification, key: String, signature: String) throws {
        let made = try PrivateKey.generate(kind)
        #expect(made.kind == kind.kind)
        let text = try shown(CertificationRequest.make(subject: SubjectName(Self.subject), key: made), "-text")
        #expect(text.contains("Subject: CN=Jürgen Doe,O=ACME\\, Inc.,C=DE"))
        #expect(text.contains(key) && text.contains("Signature Algorithm: \(signature)"), "\(text)")
        #expect(text.contains("Version: 1 (0x0)"))
        #expect(text.contains("Key Usage: critical\n                    Digital Signature\n"))
        #expect(text.contains("Extended Key Usage: \n                    TLS Web Client Authentication\n"))
        #expect(!text.contains("challengePassword") && !text.contains("Alternative Name"))
    }

    @Test func anEdwardsKeyIgnoresTheRequestedDigest() throws {
        let folder = try TemporaryFolder()
        try openssl("genpkey", "-algorithm", "ed25519", "-out", folder.path("key"))
        let key = try IdentityFile.readKey(folder.bytes("key"), password: nil)
        let attributes = try CSRAttributes(der: #require(Base64.decode(Self.example)))
        let request = try CertificationRequest.make(subject: SubjectName("CN=x"), attributes: attributes, key: key)
        #expect(try shown(request, "-text").contains("Signature Algorithm: ED25519"))
    }

    @Test func alternativeNamesAndTheChallengeAreInTheRequest() throws {
        let names = try [
            "dns:Host.example", "email:j@acme.example", "uri:urn:x:1", "ip:192.0.2.1", "ip:2001:db8::1",
            "upn:jdoe@acme.example",
        ].map { try SubjectAlternativeName($0) }
        let request = try CertificationRequest.make(
            subject: SubjectName("CN=jdoe"), alternativeNames: names, challengePassword: "+rrCir/7+EYu50T4",
            key: .generateP256())
        let text = try shown(request, "-text")
        #expect(
            text.contains(
                "DNS:host.example, email:j@acme.example, URI:urn:x:1, IP Address:192.0.2.1, "
                    + "IP Address:2001:DB8:0:0:0:0:0:1, othername: UPN::jdoe@acme.example"), "\(text)")
        #expect(text.contains("challengePassword        :+rrCir/7+EYu50T4"))
        // The same string type as in the example of RFC 7030 appendix A.3.
        #expect(request.der.holds([0x13, 0x10] + Array("+rrCir/7+EYu50T4".utf8)))
        #expect(!text.contains("Alternative Name: critical"))
        let unnamed = try CertificationRequest.make(subject: .empty, alternativeNames: names, key: .generateP256())
        #expect(try shown(unnamed, "-text").contains("Alternative Name: critical"))
    }

    @Test func challengesOutOfBoundsAreRefused() throws {
        let key = try PrivateKey.generateP256()
        for (count, isTaken) in [(0, false), (1, true), (255, true), (256, false)] {
            let challenge = String(repeating: "x", count: count)
            let refusal = code {
                _ = try CertificationRequest.make(subject: SubjectName("CN=x"), challengePassword: challenge, key: key)
            }
            #expect(refusal == (isTaken ? nil : .malformed), "\(count) bytes")
        }
    }

    @Test(arguments: ["client-a", "origin-ec", "origin-rsa"])
    func renewalKeepsSubjectAndNamesByteForByte(name: String) throws {
        let certificate = try TestPKI.leaf(name)
        let request = try CertificationRequest.make(renewing: certificate, key: .generateP256())
        #expect(request.der.holds(certificate.subjectDER))
        let text = try shown(request, "-text")
        for host in certificate.dnsNames { #expect(text.contains("DNS:\(host)"), "\(text)") }
        #expect(text.contains("Alternative Name") == (certificate.dnsNames + certificate.ipAddresses != []))
    }

    // MARK: The server's attributes

    /// The example of RFC 7030 §4.5.2, as corrected by RFC 8951.
    private static let example =
        "MEEGCSqGSIb3DQEJBzASBgcqhkjOPQIBMQcGBSuBBAAiMBYGCSqGSIb3DQEJDjEJBgcrBgEBAQEWBggqhkjOPQQDAw=="
    /// The answer of RFC 7030 appendix A.2.
    private static let appendix =
        "MHwGBysGAQEBARYwIgYDiDcBMRsTGVBhcnNlIFNFVCBhcyAyLjk5OS4xIGRhdGEGCSqGSIb3DQEJBzAsBgOINwIxJQYDiDcDBgOINwQTGVBh"
        + "cnNlIFNFVCBhcyAyLjk5OS4yIGRhdGEGCSskAwMCCAEBCwYJYIZIAWUDBAIC"

    @Test func attributesOfTheExampleAreInTheRequest() throws {
        let attributes = try CSRAttributes(der: #require(Base64.decode(Self.example)))
        #expect(attributes.wantsLinking)
        #expect(attributes.keySpecification == .ecP384)
        #expect(attributes.ignored == ["1.3.6.1.1.1.1.22"])
        let request = try CertificationRequest.make(
            subject: SubjectName("CN=x"), attributes: attributes, challengePassword: "x", key: .generateP256())
        #expect(try shown(request, "-text").contains("Signature Algorithm: ecdsa-with-SHA384"))
    }

    @Test func unknownAttributesWithValuesAreCopiedAsTheyAre() throws {
        let attributes = try CSRAttributes(der: #require(Base64.decode(Self.appendix)))
        #expect(attributes.wantsLinking && attributes.keySpecification == nil)
        #expect(attributes.ignored == ["1.3.6.1.1.1.1.22", "1.3.36.3.3.2.8.1.1.11"])
        let key = try PrivateKey.generateP256()
        let request = try CertificationRequest.make(subject: SubjectName("CN=x"), attributes: attributes, key: key)
        #expect(try shown(request, "-text").contains("Parse SET as 2.999.2 data"))
        #expect(request.der.holds(Array("Parse SET as 2.999.1 data".utf8)))
    }

    @Test func extensionsOfTheServerTakeThePlaceOfOurs() throws {
        // extensionRequest: keyUsage keyAgreement not critical, SAN dns:asked.example, an extension 2.999.
        let extensions = try DER.sequence(
            DER.sequence(DER.oid("551D0F"), DER.octets(DER.hex("03020780"))),
            DER.sequence(DER.oid("551D0F"), DER.octets(DER.hex("03020308"))),
            DER.sequence(
                DER.oid("551D11"), DER.hex("0101FF"),
                DER.octets(DER.sequence(DER.value(0x82, Array("asked.example".utf8))))),
            DER.sequence(DER.oid("8837"), DER.octets(DER.hex("0500"))))
        let asked = try DER.sequence(
            DER.sequence(DER.oid("2A864886F70D01090E"), DER.value(0x31, extensions)), DER.oid("551D11"))
        let attributes = try CSRAttributes(der: asked)
        #expect(attributes.ignored == [] && !attributes.wantsLinking && attributes.keySpecification == nil)
        let request = try CertificationRequest.make(
            subject: SubjectName("CN=x"), alternativeNames: [.dns("own.example"), .dns("asked.example")],
            attributes: attributes, key: .generateP256())
        let text = try shown(request, "-text")
        #expect(text.contains("Key Usage: \n                    Key Agreement\n"), "\(text)")
        #expect(text.contains("Alternative Name: critical\n                    DNS:asked.example, DNS:own.example\n"))
        #expect(text.contains("2.999: \n"))
        #expect(text.components(separatedBy: "X509v3 Key Usage").count == 2, "each extension once")
        #expect(text.contains("TLS Web Client Authentication"))
    }

    @Test func onlyTheTemplateCountsAndItIsFilledIn() throws {
        // Subject: O=given, CN without a value, OU without a value. Key: RSA of 3072 bits. Extensions: SAN and 2.999
        // without a value, EKU with one.
        let subject = try DER.sequence(
            DER.value(0x31, DER.sequence(DER.oid("55040A"), DER.value(0x0C, Array("given".utf8)))),
            DER.value(0x31, DER.sequence(DER.oid("55040B"))), DER.value(0x31, DER.sequence(DER.oid("550403"))))
        let modulus = [0x00, 0x80] + [UInt8](repeating: 0, count: 383)
        let key = try DER.value(
            0xA0,
            DER.sequence(DER.oid("2A864886F70D010101"), DER.hex("0500"))
                + DER.value(0x03, [0] + DER.sequence(DER.value(0x02, modulus), DER.hex("020103"))))
        let extensions = try DER.sequence(
            DER.sequence(DER.oid("551D11")), DER.sequence(DER.oid("8837")),
            DER.sequence(DER.oid("551D25"), DER.octets(DER.sequence(DER.oid("2B06010505070303")))))
        let requested = try DER.value(
            0xA1, DER.sequence(DER.oid("2A864886F70D010910023E"), DER.value(0x31, extensions)))
        let template = try DER.sequence(
            DER.oid("2A864886F70D010910023D"),
            DER.value(0x31, DER.sequence(DER.hex("020100"), subject, key, requested)))
        let attributes = try CSRAttributes(der: DER.sequence(DER.oid("2A864886F70D010907"), template, DER.oid("8837")))
        #expect(!attributes.wantsLinking && attributes.keySpecification == .rsa3072 && attributes.ignored == ["2.999"])
        let request = try CertificationRequest.make(
            subject: SubjectName("CN=jdoe,O=own"), alternativeNames: [.dns("own.example")], attributes: attributes,
            key: .generateP256())
        let text = try shown(request, "-text")
        #expect(text.contains("Subject: CN=jdoe,O=given\n"), "\(text)")
        #expect(text.contains("DNS:own.example") && text.contains("Code Signing") && text.contains("Digital Signature"))
    }

    /// Nested as deeply as the length permits.
    @Test(arguments: [1, 2, 1500])
    func aTemplateInsideAnotherIsRefused(depth: Int) throws {
        var inner: [UInt8] = []
        for _ in 0...depth {
            let attributes = inner.isEmpty ? [] : DER.value(0xA1, inner)
            inner = try DER.sequence(
                DER.oid("2A864886F70D010910023D"),
                DER.value(0x31, DER.sequence(DER.hex("020100"), DER.sequence(), attributes)))
        }
        let asked = DER.sequence(inner)
        try #require(asked.count <= CSRAttributes.maximumBytes)
        #expect(throws: CertificateError(.malformed, "")) { try CSRAttributes(der: asked) }
    }

    @Test(arguments: [
        ("2A8648CE3D0201", "06082A8648CE3D030107", KeySpecification.ecP256),
        ("2A8648CE3D0201", "06052B81040023", .ecP521),
        ("2A864886F70D010101", "02020800", .rsa2048), ("2A864886F70D010101", "02021000", .rsa4096),
        ("2A864886F70D010101", "02020400", nil), ("2A8648CE3D0201", "06052B81040021", nil),
    ])
    func keysThatAreAskedForAreKnownOrListed(type: String, value: String, expected: KeySpecification?) throws {
        let asked = try DER.sequence(DER.sequence(DER.oid(type), DER.value(0x31, DER.hex(value))))
        let attributes = try CSRAttributes(der: asked)
        #expect(attributes.keySpecification == expected)
        #expect(attributes.ignored.count == (expected == nil ? 1 : 0))
    }

    /// `1.2.840.10045.2.1` is ecPublicKey, `1.2.840.113549.1.1.1` is rsaEncryption.
    @Test(
        arguments: [
            (["2A8648CE3D030107"], KeySpecification.ecP256, []), (["2B81040022"], .ecP384, []),
            (["2B81040023"], .ecP521, []), (["2A8648CE3D0201", "2B81040022"], .ecP384, []),
            (["2B81040022", "2A8648CE3D0201"], .ecP384, []), (["2B81040021"], nil, ["secp224r1 (1.3.132.0.33)"]),
            (["2A864886F70D010101", "2B81040022"], .rsa2048, ["secp384r1 (1.3.132.0.34)"]),
            (["2B81040022", "2A864886F70D010101"], .ecP384, ["rsaEncryption (1.2.840.113549.1.1.1)"]),
            (["2B81040022", "2B81040023"], .ecP384, ["secp521r1 (1.3.132.0.35)"]),
            (["2A864886F70D010902", "8837"], nil, ["unstructuredName (1.2.840.113549.1.9.2)", "2.999"]),
        ] as [([String], KeySpecification?, [String])])
    func aBareCurveIsAKindOfKey(asked: [String], expected: KeySpecification?, ignored: [String]) throws {
        let attributes = try CSRAttributes(der: DER.value(0x30, asked.flatMap { try DER.oid($0) }))
        #expect(attributes.keySpecification == expected)
        #expect(attributes.ignoredNames == ignored)
    }

    @Test func noAttributesAskForNothing() throws {
        for der: [UInt8] in [[], [0x30, 0x00]] { #expect(try CSRAttributes(der: der) == CSRAttributes()) }
    }

    @Test func malformedAttributesAreRefused() throws {
        let example = try #require(Base64.decode(Self.example))
        for length in 1..<example.count {
            #expect(
                code { _ = try CSRAttributes(der: Array(example.prefix(length))) } == .malformed, "cut at \(length)")
        }
        let table: [[UInt8]] = try [
            example + [0], Array("<html>".utf8), DER.sequence(DER.hex("0500")),
            DER.sequence(DER.sequence(DER.oid("8837"))),
            DER.sequence(DER.value(0x06, [])), DER.sequence(DER.value(0x06, [0x88])), DER.hex("3080"),
            DER.hex("30810000"), DER.hex("30810306012A"),
            DER.value(0x30, [UInt8](repeating: 5, count: CSRAttributes.maximumBytes)),
            DER.value(0x30, (0...128).flatMap { _ in [0x06, 0x01, 0x2A] as [UInt8] }),
        ]
        for bytes in table { #expect(code { _ = try CSRAttributes(der: bytes) } == .malformed, "\(bytes.prefix(8))") }
    }

    @Test func alteredAttributesNeverTrap() throws {
        for text in [Self.example, Self.appendix] {
            let whole = try #require(Base64.decode(text))
            for offset in whole.indices {
                for mask: UInt8 in [0x01, 0x40, 0x80, 0xFF] {
                    var altered = whole
                    altered[offset] ^= mask
                    #expect([nil, .malformed].contains(code { _ = try CSRAttributes(der: altered) }))
                }
            }
        }
    }
}

/// Encodes DER by hand, independently of the code under test.
enum DER {
    static func hex(_ digits: String) throws -> [UInt8] { try #require(Hex.decode(digits)) }

    static func oid(_ digits: String) throws -> [UInt8] { try value(0x06, hex(digits)) }

    static func octets(_ content: [UInt8]) -> [UInt8] { value(0x04, content) }

    static func sequence(_ items: [UInt8]...) -> [UInt8] { value(0x30, items.flatMap(\.self)) }

    static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        switch content.count {
        case 0..<0x80: [tag, UInt8(content.count)] + content
        case 0x80..<0x100: [tag, 0x81, UInt8(content.count)] + content
        case 0x100..<0x10000: [tag, 0x82, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
        default:
            [tag, 0x83, UInt8(content.count >> 16), UInt8(content.count >> 8 & 0xFF), UInt8(content.count & 0xFF)]
                + content
        }
    }
}

extension [UInt8] {
    /// Whether it contains `part`.
    func holds(_ part: [UInt8]) -> Bool {
        !part.isEmpty && indices.contains { self[$0...].starts(with: part) }
    }
}
