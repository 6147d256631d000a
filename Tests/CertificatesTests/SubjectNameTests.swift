// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Foundation
import Testing

struct SubjectNameTests {
    /// The DER of the subject that `openssl req` creates from the text.
    private func oracle(_ text: String) throws -> [UInt8] {
        let folder = try TemporaryFolder()
        try folder.write("empty.cnf", "[req]\ndistinguished_name=dn\nstring_mask=utf8only\n[dn]\n")
        try openssl(
            "req", "-new", "-x509", "-config", folder.path("empty.cnf"), "-utf8", "-subj", text, "-key",
            TestPKI.path("client-a.key.pem"), "-out", folder.path("made.pem"))
        return try #require(try Certificate.readPEM(folder.bytes("made.pem")).first).subjectDER
    }

    @Test(arguments: [
        "/CN=jdoe/O=ACME", "/C=DE/O=ACME/OU=a/OU=b/CN=Jürgen", "/DC=example/DC=acme/UID=jdoe", "/CN=a\\/b/O=x\\+y",
        "/CN=x/emailAddress=j@acme.example", "/serialNumber=12/CN=x/title=Dr/GN=J/SN=D/street=s/L=l/ST=s/initials=j",
    ])
    func slashedNamesAreWhatOpenSSLMakesOfThem(text: String) throws {
        #expect(try SubjectName(text).der == oracle(text))
    }

    @Test(arguments: [
        ("CN=jdoe,O=ACME,C=DE", "/C=DE/O=ACME/CN=jdoe"),
        ("cn = jdoe , o = ACME Ltd ; C=DE", "/C=DE/O=ACME Ltd/CN=jdoe"),
        ("CN=a\\,b\\+c\\\"d\\\\e\\;f,O=\\ x\\ ", "/O= x /CN=a,b\\+c\"d\\\\e;f"), ("CN=J\\C3\\BCrgen", "/CN=Jürgen"),
        ("CN=a=b", "/CN=a=b"), ("2.5.4.3=x", "/CN=x"), ("CN=#0C0178", "/CN=x"), ("OU=x+CN=y", "/OU=x+CN=y"),
        ("CN=a/b", "/CN=a\\/b"), ("CN=\\#x", "/CN=#x"), ("E=a@b", "/emailAddress=a@b"),
    ])
    func namesInTheOrderOfRFC4514AreTheSameNames(text: String, slashed: String) throws {
        #expect(try SubjectName(text) == SubjectName(slashed))
        if !slashed.contains("+CN"), !slashed.contains("CN=#") {
            #expect(try SubjectName(text).der == oracle(slashed))
        }
    }

    @Test(
        arguments: [
            "CN=jdoe,O=ACME,C=DE", "CN=a\\,b\\+c\\\"d\\\\e\\;f,O=\\ x\\ ", "CN=Jürgen,OU=ä\\=ö", "CN=x+OU=y,O=z",
            "1.2.3.4=wert,CN=x",
            "UID=jdoe,DC=acme,DC=example", "CN=#x", "emailAddress=a@b,CN=a\\<b\\>",
        ].map { $0.replacingOccurrences(of: "CN=#x", with: "CN=\\#x") })
    func theTextOfANameIsReadAsThatName(text: String) throws {
        let name = try SubjectName(text)
        #expect(try SubjectName(name.description) == name)
        #expect(try SubjectName(der: name.der) == name)
    }

    @Test(arguments: ["client-a", "origin-ec", "origin-root"])
    func theSubjectOfACertificateIsReadFromItsText(name: String) throws {
        let certificate = try TestPKI.leaf(name)
        #expect(SubjectName(subjectOf: certificate).der == certificate.subjectDER)
        #expect(SubjectName(subjectOf: certificate).description == certificate.subject)
    }

    @Test(arguments: [
        ("", 1), ("jdoe", 1), ("CN", 1), ("=x", 1), ("CN=", 4), ("CN=x,", 6), ("CN=x,,O=y", 6), ("CN=x,QQ=y", 6),
        ("C=DEU", 3),
        ("C=ü1", 3), ("CN=x\\", 5), ("CN=x\\q", 5), ("CN=\"x\"", 4), ("CN=#zz", 4), ("CN=#0C05", 4), ("DC=ü", 4),
        ("/", 2), ("/CN=x/", 7), ("/CN=x/jdoe", 7), ("1.2.=x", 1), ("3.1=x", 1), ("CN=x\\FF", 8), ("CN=a\u{0}b", 4),
        ("CN=" + String(repeating: "x", count: 65), 4), ("1.40.3=x", 1),
    ])
    func faultsAreNamedWithTheirCharacter(text: String, position: Int) {
        do {
            _ = try SubjectName(text)
            Issue.record("\(text) was taken")
        } catch {
            #expect(error == CertificateError(.malformed, ""))
            #expect(error.detail.hasPrefix("character \(position) of the name: "), "\(text): \(error.detail)")
        }
    }

    @Test func lengthsAreThoseOfRFC5280() throws {
        #expect(try !SubjectName("CN=" + String(repeating: "ü", count: 64)).isEmpty)
        #expect(code { _ = try SubjectName("CN=" + String(repeating: "x", count: 5000)) } == .malformed)
    }

    @Test func bytesThatAreNotANameAreRefused() throws {
        let whole = try SubjectName("CN=jdoe,O=ACME").der
        for length in 0..<whole.count {
            #expect(code { _ = try SubjectName(der: Array(whole.prefix(length))) } == .malformed)
        }
        for bytes: [UInt8] in [
            whole + [0], [0x30, 0x02, 0x31, 0x00], [0x31, 0x00], [0x30, 0x04, 0x31, 0x02, 0x30, 0x00],
        ] {
            #expect(code { _ = try SubjectName(der: bytes) } == .malformed)
        }
        #expect(try SubjectName(der: [0x30, 0x00]).isEmpty)
    }
}

struct SubjectAlternativeNameTests {
    @Test(arguments: [
        "dns:host.example", "dns:*.host.example", "email:j@acme.example", "uri:https://acme.example/x", "ip:192.0.2.1",
        "ip:2001:db8::1", "upn:jdoe@acme.example", "upn:jürgen@acme.example",
    ])
    func itsTextIsReadAsIt(text: String) throws {
        #expect(try SubjectAlternativeName(text).description == text)
    }

    @Test(arguments: [
        "", "host.example", "host:x", "dns:", "dns:a b", "dns:ü.example", "dns:-a", "dns:a..b", "dns:*", "email:x",
        "email:@x",
        "email:a@b@c", "email:ü@x", "uri:x", "uri:a b:c", "ip:1.2.3", "ip:fe80::1%eth0", "upn:", "upn:a b",
        "dns:" + String(repeating: "a", count: 64),
    ])
    func othersAreRefused(text: String) {
        #expect(code { _ = try SubjectAlternativeName(text) } == .malformed)
    }

    @Test func kindsAreReadInEitherCase() throws {
        #expect(try SubjectAlternativeName("DNS:Host.example") == .dns("Host.example"))
    }
}
