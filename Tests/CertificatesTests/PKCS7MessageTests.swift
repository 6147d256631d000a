// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignDemo
import Foundation
import Testing

struct PKCS7MessageTests {
    /// The output of `openssl crl2pkcs7` for the files.
    private func message(_ files: String...) throws -> [UInt8] {
        let folder = try TemporaryFolder()
        let (status, output) = try run(
            "openssl",
            ["crl2pkcs7", "-nocrl", "-outform", "DER", "-out", folder.path("made.p7")]
                + files.flatMap { ["-certfile", TestPKI.path($0)] })
        try #require(status == 0, "\(output)")
        return try folder.bytes("made.p7")
    }

    @Test func messagesOfOpenSSLHoldTheirCertificates() throws {
        let chain = try TestPKI.chain("client-a")
        #expect(try PKCS7Message.certificates(inPKCS7: message("client-a.pem")) == chain)
        let both = try PKCS7Message.certificates(inPKCS7: message("client-a.pem", "client-b.pem"))
        #expect(try both == chain + TestPKI.chain("client-b"))
    }

    @Test func indefiniteLengthsAreRead() throws {
        let folder = try TemporaryFolder()
        // With streaming, openssl writes BER.
        try openssl(
            "cms", "-sign", "-signer", TestPKI.path("client-a.pem"), "-inkey", TestPKI.path("client-a.key.pem"), "-in",
            TestPKI.path("client-a.pem"), "-stream", "-nodetach", "-outform", "DER", "-out", folder.path("made.p7"))
        let bytes = try folder.bytes("made.p7")
        #expect(bytes.prefix(2) == [0x30, 0x80])
        #expect(try PKCS7Message.certificates(inPKCS7: bytes) == [TestPKI.leaf("client-a")])
    }

    @Test func theAnswerOfRFC7030HoldsItsCertificate() throws {
        let bytes = try #require(Base64.decode(Self.enrolled))
        let found = try PKCS7Message.certificates(inPKCS7: bytes)
        #expect(found.map(\.subject) == ["CN=demostep4 1368141352"])
        #expect(found.map(\.issuer) == ["CN=estExampleCA NwN"])
        #expect(found.map(\.serialNumberHex) == ["15"])
    }

    @Test func messagesWithoutCertificatesAreReported() throws {
        #expect(code { _ = try PKCS7Message.certificates(inPKCS7: message()) } == .noCertificate)
    }

    @Test func anythingButAMessageIsRefused() throws {
        let whole = try message("client-a.pem")
        let folder = try TemporaryFolder()
        try openssl(
            "cms", "-digest_create", "-in", TestPKI.path("client-a.pem"), "-outform", "DER", "-out",
            folder.path("other.p7"))
        let table: [[UInt8]] = [
            [], Array("<html>".utf8), [0x30, 0x00], whole + [0], try TestPKI.leaf("client-a").der,
            try folder.bytes("other.p7"), [UInt8](repeating: 0x30, count: PKCS7Message.maximumBytes + 1),
        ]
        for bytes in table {
            #expect(
                code { _ = try PKCS7Message.certificates(inPKCS7: bytes) } == .malformed, "\(bytes.prefix(8))")
        }
        for length in stride(from: 0, to: whole.count, by: 13) {
            let cut = Array(whole.prefix(length))
            #expect(code { _ = try PKCS7Message.certificates(inPKCS7: cut) } == .malformed, "cut at \(length)")
        }
    }

    @Test func tooManyCertificatesAreRefused() throws {
        let folder = try TemporaryFolder()
        let authority = try ClientCA(commonName: "many", at: TestPKI.now)
        for (count, expected) in [(64, nil), (65, CertificateError.Code.malformed)] {
            let made = try (0..<count).map {
                try authority.issue("x", commonName: "c\($0)", lifetime: 3600, at: TestPKI.now).leaf.pem
            }
            try folder.write("all.pem", made.joined())
            try openssl(
                "crl2pkcs7", "-nocrl", "-outform", "DER", "-certfile", folder.path("all.pem"), "-out",
                folder.path("all.p7"))
            #expect(code { _ = try PKCS7Message.certificates(inPKCS7: folder.bytes("all.p7")) } == expected)
        }
    }

    /// RFC 7030 appendix A.3.
    private static let enrolled = """
        MIIDOAYJKoZIhvcNAQcCoIIDKTCCAyUCAQExADALBgkqhkiG9w0BBwGgggMLMIIDBzCCAe+gAwIBAgIBFTANBgkqhkiG9w0BAQUFADAbMRkwFwYDVQQD\
        ExBlc3RFeGFtcGxlQ0EgTndOMB4XDTEzMDUwOTIzMTU1M1oXDTE0MDUwOTIzMTU1M1owHzEdMBsGA1UEAxMUZGVtb3N0ZXA0IDEzNjgxNDEzNTIwggEi\
        MA0GCSqGSIb3DQEBAQUAA4IBDwAwggEKAoIBAQClNp+kdz+Nj8XpEp9kaumWxDZ3eFYJpQKz9ddD5e5OzUeCm103ZIXQIxc0eVtMCatnRr3dnZRCAxGj\
        wbqoB3eKt29/XSQffVv+odbyw0WdkQOIbntCQry8YdcBZ+8LjI/N7M2krmjmoSLmLwU2V4aNKf0YMLR5Krmah3Ik31jmYCSvwTnv6mx6pr2pTJ82Javh\
        TEIIt/fAYq1RYhkM1CXoBL+yhEoDanN7TzC94skfS3VV+f53J9SkUxTYcy1Rw0k3VXfxWwy+cSKEPREl7I6k0YeKtDEVAgBIEYM/L1S69RXTLujirwnq\
        SRjOquzkAkD31BE961KZCxeYGrhxaR4PAgMBAAGjUjBQMA4GA1UdDwEB/wQEAwIEsDAdBgNVHQ4EFgQU/qDdB6ii6icQ8wGMXvy1jfE4xtUwHwYDVR0j\
        BBgwFoAUscRp5lujBKfYl6OLO7+5arIyQjwwDQYJKoZIhvcNAQEFBQADggEBACmxg1hvL6+7a+lFTARoxainBx5gxdZ9omSb0L+qL+4PDvg/+KHzKsDn\
        MCrcU6M4YP5n0EDKmGa64lY8fbET4tt7juJg6ixb95/760Th0vuctwkGr6+D6ETTfqyHnrbhX3lAhnB+0Ja7o1gv4CWxh1I8aRaTXdpOHORvN0SMXdcr\
        lCys2vrtOl+LjR2a3kajJO6eQ5leOdzFQlZfOPhaLWen0e2BLNJI0vsC2Fa+2LMCnfC38XfGALa5A8e7fNHXWZBjXZLBCza3rEs9Mlh2CjA/ocSC/Wxm\
        Mvd+Eqnt/FpggRy+F8IZSRvBaRUCtGE1lgDmu6AFUxceR4POrT2xz8ChADEA
        """
}
