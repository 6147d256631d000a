// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import Testing

struct CertificateTests {
    @Test(arguments: ["origin-ec", "origin-rsa", "origin-sha384", "client-a-root"])
    func fieldsAreWhatOpenSSLPrints(name: String) throws {
        let certificate = try TestPKI.leaf(name)
        let path = TestPKI.path(name + ".pem")
        let fingerprint = try openssl("x509", "-in", path, "-noout", "-fingerprint", "-sha256")
        let digits = fingerprint.split(separator: "=")[1].replacing(":", with: "").lowercased()
        #expect(certificate.fingerprintText == "sha256:" + digits)
        #expect(
            try openssl("x509", "-in", path, "-noout", "-serial") == "serial="
                + certificate.serialNumberHex.uppercased())
        let subject = try openssl("x509", "-in", path, "-noout", "-subject", "-nameopt", "RFC2253")
        #expect(subject == "subject=" + certificate.subject)
        let issuer = try openssl("x509", "-in", path, "-noout", "-issuer", "-nameopt", "RFC2253")
        #expect(issuer == "issuer=" + certificate.issuer)
        #expect(try openssl("x509", "-in", path) + "\n" == certificate.pem)
    }

    @Test func datesAreSecondsSince1970() throws {
        let certificate = try TestPKI.leaf("origin-expired")
        #expect(certificate.notBefore == 1_577_836_800)
        #expect(certificate.notAfter == 1_609_459_200)
        #expect(certificate.isValid(at: certificate.notBefore) && certificate.isValid(at: certificate.notAfter))
        #expect(
            !certificate.isValid(at: certificate.notBefore - 1) && !certificate.isValid(at: certificate.notAfter + 1))
        #expect(try TestPKI.leaf("origin-ec").notAfter == 2_335_219_200)
    }

    @Test func namesAndUsagesAreRead() throws {
        let leaf = try TestPKI.leaf("origin-ec")
        #expect(leaf.dnsNames == ["localhost", "*.test.localhost"])
        #expect(leaf.ipAddresses == ["127.0.0.1", "::1"])
        #expect(leaf.keyDescription == "EC P-256")
        #expect(try TestPKI.leaf("origin-rsa").keyDescription == "RSA 2048")
        #expect(!leaf.isCertificateAuthority)
        #expect(leaf.allowsDigitalSignature && !leaf.allowsClientAuthentication)
        let root = try TestPKI.leaf("origin-root")
        #expect(root.isCertificateAuthority && !root.allowsDigitalSignature && root.allowsClientAuthentication)
        #expect(root.dnsNames.isEmpty && root.subjectDER == root.issuerDER && root.subjectDER == leaf.issuerDER)
        #expect(try TestPKI.leaf("client-a").allowsClientAuthentication)
    }

    @Test func incompleteOrExtraDERIsRefused() throws {
        let certificate = try TestPKI.leaf("origin-ec")
        let der = certificate.der
        #expect(try Certificate(der: der) == certificate)
        for length in stride(from: 0, to: der.count, by: 1) {
            #expect(code { _ = try Certificate(der: Array(der.prefix(length))) } == .malformed, "cut at \(length)")
        }
        #expect(code { _ = try Certificate(der: der + [0]) } == .malformed)
        // The outer length in a longer form than DER permits: 30 82 hh ll becomes 30 83 00 hh ll.
        #expect(code { _ = try Certificate(der: [0x30, 0x83, 0x00] + der[2...]) } == .malformed)
    }

    @Test func aRetainedX509IsTheSameCertificate() throws {
        let certificate = try TestPKI.leaf("origin-ec")
        let again = certificate.withX509 { Certificate(retaining: $0) }
        #expect(again == certificate)
        #expect(Set([again, certificate]).count == 1)
        #expect(try TestPKI.leaf("origin-rsa") != certificate)
    }

    @Test func pemTextYieldsEveryCertificateInOrder() throws {
        let chain = try TestPKI.chain("origin-intermediate-leaf")
        #expect(chain.count == 2)
        let text = "# a comment\n" + chain[0].pem + "between\n" + chain[1].pem
        #expect(try Certificate.readPEM(Array(text.utf8)) == chain)
        let withKey = try TestPKI.bytes("origin-ec.key.pem") + TestPKI.bytes("origin-ec.pem")
        #expect(try Certificate.readPEM(withKey).count == 1)
    }

    @Test func pemTextWithAFaultIsRefused() throws {
        let pem = try TestPKI.leaf("origin-ec").pem
        #expect(code { _ = try Certificate.readPEM([]) } == .noCertificate)
        #expect(code { _ = try Certificate.readPEM(Array("hello\n".utf8)) } == .noCertificate)
        #expect(code { _ = try Certificate.readPEM(TestPKI.bytes("origin-ec.key.pem")) } == .noCertificate)
        #expect(code { _ = try Certificate.readPEM(Array((pem + pem.dropLast(40)).utf8)) } == .malformed)
        #expect(code { _ = try Certificate.readPEM(Array(pem.replacing("MII", with: "AAA").utf8)) } == .malformed)
    }
}

/// RFC 5929 §4.1, with `openssl dgst` as the oracle.
struct TLSServerEndPointTests {
    @Test(arguments: [
        ("origin-ec", Digest.sha256), ("origin-rsa", .sha256), ("origin-sha384", .sha384), ("origin-sha1", .sha256),
    ])
    func hashIsThatOfTheSignatureButNeverBelowSHA256(name: String, digest: Digest) throws {
        let folder = try TemporaryFolder()
        try openssl("x509", "-in", TestPKI.path(name + ".pem"), "-outform", "DER", "-out", folder.path("leaf.der"))
        let expected = try openssl("dgst", "-\(digest)", "-r", folder.path("leaf.der")).split(separator: " ")[0]
        #expect(try Hex.encode(TestPKI.leaf(name).tlsServerEndPointHash) == expected)
    }

    @Test(arguments: [
        (["rsa:2048"], ["-sha384", "-sigopt", "rsa_padding_mode:pss"], "sha384"),
        (["rsa:2048"], ["-sha1", "-sigopt", "rsa_padding_mode:pss"], "sha256"),
        (["rsa:2048"], ["-md5"], "sha256"),
        (["rsa:2048"], ["-sha512"], "sha512"),
        (["rsa:2048"], ["-sha224"], "sha224"),
        (["ed25519"], [], "sha256"),
    ])
    func otherSignaturesToo(key: [String], options: [String], digest: String) throws {
        let folder = try TemporaryFolder()
        let made = try run(
            "openssl",
            ["req", "-x509", "-nodes", "-newkey"] + key + options
                + [
                    "-subj", "/CN=x", "-keyout", folder.path("key.pem"), "-outform", "DER", "-out",
                    folder.path("leaf.der"),
                ])
        try #require(made.status == 0, "\(made.output)")
        let expected = try openssl("dgst", "-\(digest)", "-r", folder.path("leaf.der")).split(separator: " ")[0]
        #expect(try Hex.encode(Certificate(der: folder.bytes("leaf.der")).tlsServerEndPointHash) == expected)
    }
}
