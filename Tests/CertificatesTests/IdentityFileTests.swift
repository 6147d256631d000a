// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import Testing

struct IdentityFileTests {
    private let password = TestPKI.password

    @Test(arguments: ["client-a.p12", "client-a-legacy.p12", "client-a-encrypted.pem"])
    func everyFormHoldsTheSameIdentity(file: String) throws {
        let (chain, key) = try IdentityFile.read(TestPKI.bytes(file), password: password)
        #expect(chain == (try TestPKI.chain("client-a")))
        #expect(chain.count == 2)
        #expect(try key.pkcs8 == TestPKI.key("client-a").pkcs8)
        // The key is usable outside the library context in which it was read.
        #expect(throws: Never.self) { try Identity(name: "laptop", chain: chain, key: key) }
    }

    @Test(arguments: ["client-a.p12", "client-a-legacy.p12", "client-a-encrypted.pem"])
    func wrongAndMissingPasswordsHaveDifferentErrors(file: String) throws {
        let bytes = try TestPKI.bytes(file)
        for wrong in ["", "Fixture", "fixture ", "fixture\0"] {
            #expect(
                code { _ = try IdentityFile.read(bytes, password: Secret(utf8: wrong)) } == .wrongPassword, "\(wrong)")
        }
        #expect(code { _ = try IdentityFile.read(bytes, password: nil) } == .passwordNeeded)
    }

    @Test func plainPEMNeedsNoPasswordAndTakesAnyOrder() throws {
        let key = try TestPKI.bytes("client-a.key.pem")
        let chain = try TestPKI.chain("client-a")
        let texts = [chain, chain.reversed()].map { $0.flatMap { Array($0.pem.utf8) } }
        for text in texts {
            for bytes in [key + text, text + key] {
                #expect(try IdentityFile.read(bytes, password: nil).chain == chain)
                #expect(try IdentityFile.read(bytes, password: password).chain == chain)
            }
        }
    }

    @Test func unrelatedCertificatesAreNotInTheChain() throws {
        let bytes =
            try TestPKI.bytes("origin-root.pem") + TestPKI.bytes("client-b.key.pem")
            + TestPKI.bytes("client-b-root.pem")
            + TestPKI.bytes("client-a.pem") + TestPKI.bytes("client-b.pem")
        let expected = [try TestPKI.leaf("client-b"), try TestPKI.leaf("client-b-root")]
        #expect(try IdentityFile.read(bytes, password: nil).chain == expected)
    }

    @Test func partsThatAreMissingOrStrangeAreNamed() throws {
        let certificate = try TestPKI.bytes("client-a.pem")
        let key = try TestPKI.bytes("client-a.key.pem")
        let table: [(String, [UInt8], CertificateError.Code)] = try [
            ("nothing", [], .malformed), ("text", Array("hello".utf8), .malformed), ("one byte", [0x30], .malformed),
            ("certificate only", certificate, .noKey), ("key only", key, .noCertificate),
            ("another's key", certificate + TestPKI.bytes("client-b.key.pem"), .keyMismatch),
            ("two keys", certificate + key + key, .malformed),
            ("a DER certificate", TestPKI.leaf("client-a").der, .noKey),
            ("a cut key", certificate + key.prefix(100) + Array("\n-----END PRIVATE KEY-----\n".utf8), .malformed),
            ("a cut certificate", key + certificate.prefix(200), .malformed),
        ]
        for (name, bytes, expected) in table {
            #expect(code { _ = try IdentityFile.read(bytes, password: password) } == expected, "\(name)")
        }
    }

    @Test(arguments: ["client-a.p12", "client-a-legacy.p12", "client-a-encrypted.pem"])
    func cutFilesAreRefused(file: String) throws {
        let bytes = try TestPKI.bytes(file)
        // A PEM text is complete without its last line breaks.
        let whole = bytes.count - bytes.reversed().prefix { $0 == 0x0A }.count
        // A truncation before the first five dashes of a line cannot be detected.
        let unseen = Set(bytes.indices.filter { bytes[..<$0].reversed().prefix(5).drop { $0 == 0x2D }.first == 0x0A })
        for length in stride(from: 0, to: whole, by: 7) where file.hasSuffix("p12") || !unseen.contains(length) {
            #expect(
                code { _ = try IdentityFile.read(Array(bytes.prefix(length)), password: password) } != nil,
                "cut at \(length)")
        }
    }

    @Test(arguments: ["client-a.p12", "client-a-legacy.p12"])
    func alteredFilesNeverYieldAnotherIdentity(file: String) throws {
        let bytes = try TestPKI.bytes(file)
        let expected = try TestPKI.chain("client-a")
        var refused = 0
        let offsets = Array(stride(from: 0, to: bytes.count, by: 11))
        for offset in offsets {
            var altered = bytes
            altered[offset] ^= 0x41
            guard let found = try? IdentityFile.read(altered, password: password) else {
                refused += 1
                continue
            }
            // Bytes that the MAC does not cover, such as the outermost header, do not affect the result.
            #expect(found.chain == expected, "altered at \(offset)")
        }
        #expect(refused >= offsets.count - 2)
    }

    @Test func sizeIsBounded() throws {
        let identity = try TestPKI.bytes("client-a.key.pem") + TestPKI.bytes("client-a.pem")
        let padding = [UInt8](repeating: 0x0A, count: IdentityFile.maximumBytes - identity.count)
        #expect(try IdentityFile.read(identity + padding, password: nil).chain.count == 2)
        #expect(code { _ = try IdentityFile.read(identity + padding + [0x0A], password: nil) } == .malformed)
    }

    @Test(arguments: [
        (["-keypbe", "NONE", "-certpbe", "NONE", "-nomac"], ""), (["-keypbe", "NONE", "-certpbe", "NONE"], ""),
        (["-legacy", "-descert"], "fixture"),
        (["-keypbe", "aes-128-cbc", "-certpbe", "NONE", "-macalg", "sha512"], "fixture"),
    ])
    func otherKindsOfPKCS12AreRead(options: [String], password: String) throws {
        let folder = try TemporaryFolder()
        let made = try run(
            "openssl",
            ["pkcs12", "-export", "-inkey", TestPKI.path("client-a.key.pem"), "-in", TestPKI.path("client-a.pem")]
                + options + ["-passout", "pass:\(password)", "-out", folder.path("identity.p12")])
        try #require(made.status == 0, "\(made.output)")
        let secret = password.isEmpty ? nil : Secret(utf8: password)
        let found = try IdentityFile.read(folder.bytes("identity.p12"), password: secret)
        #expect(found.chain == (try TestPKI.chain("client-a")))
        if !password.isEmpty {
            #expect(code { _ = try IdentityFile.read(folder.bytes("identity.p12"), password: nil) } == .passwordNeeded)
            let wrong = Secret(utf8: "wrong")
            #expect(code { _ = try IdentityFile.read(folder.bytes("identity.p12"), password: wrong) } == .wrongPassword)
        }
    }

    @Test func encryptionWithoutAMACIsRefused() throws {
        let folder = try TemporaryFolder()
        try openssl(
            "pkcs12", "-export", "-nomac", "-inkey", TestPKI.path("client-a.key.pem"), "-in",
            TestPKI.path("client-a.pem"),
            "-passout", "pass:fixture", "-out", folder.path("identity.p12"))
        for password in [nil, password] {
            #expect(
                code { _ = try IdentityFile.read(folder.bytes("identity.p12"), password: password) } == .unsupported)
        }
    }

    @Test(arguments: [
        ["pkcs8", "-topk8", "-v1", "PBE-SHA1-RC2-40", "-provider", "legacy", "-provider", "default"],
        ["pkcs8", "-topk8", "-scrypt"], ["ec", "-aes256"],
    ])
    func otherKindsOfEncryptedPEMAreRead(arguments: [String]) throws {
        let folder = try TemporaryFolder()
        let made = try run(
            "openssl",
            arguments + [
                "-in", TestPKI.path("client-a.key.pem"), "-passout", "pass:fixture", "-out", folder.path("key.pem"),
            ])
        try #require(made.status == 0, "\(made.output)")
        let bytes = try folder.bytes("key.pem") + TestPKI.bytes("client-a.pem")
        #expect(try IdentityFile.read(bytes, password: password).key.pkcs8 == TestPKI.key("client-a").pkcs8)
        #expect(code { _ = try IdentityFile.read(bytes, password: Secret(utf8: "wrong")) } == .wrongPassword)
        #expect(code { _ = try IdentityFile.read(bytes, password: nil) } == .passwordNeeded)
    }

    @Test func noErrorRepeatsThePassword() throws {
        let canary = "c4n4ry-of-the-password"
        for file in ["client-a.p12", "client-a-legacy.p12", "client-a-encrypted.pem"] {
            do {
                _ = try IdentityFile.read(TestPKI.bytes(file), password: Secret(utf8: canary))
                Issue.record("\(file) was opened by a wrong password")
            } catch {
                #expect(!"\(error)".contains(canary))
            }
        }
    }

    // MARK: Two files

    @Test(arguments: [
        ["pkey"], ["pkey", "-outform", "DER"], ["ec"], ["ec", "-outform", "DER"], ["pkey", "-traditional"],
        ["pkcs8", "-topk8", "-nocrypt", "-outform", "DER"],
    ])
    func keysOfEveryFormAreRead(arguments: [String]) throws {
        let folder = try TemporaryFolder()
        let written = try run(
            "openssl", arguments + ["-in", TestPKI.path("client-a.key.pem"), "-out", folder.path("key")])
        try #require(written.status == 0, "\(written.output)")
        let key = try IdentityFile.readKey(folder.bytes("key"), password: nil)
        #expect(try key.pkcs8 == TestPKI.key("client-a").pkcs8)
        #expect(try IdentityFile.chain(of: key, among: TestPKI.chain("client-a")) == TestPKI.chain("client-a"))
    }

    @Test(arguments: [
        ["pkcs8", "-topk8", "-outform", "DER"], ["pkcs8", "-topk8"], ["ec", "-aes256"],
        [
            "pkcs8", "-topk8", "-outform", "DER", "-v1", "PBE-SHA1-RC2-40", "-provider", "legacy", "-provider",
            "default",
        ],
    ])
    func encryptedKeysOfEveryFormAreRead(arguments: [String]) throws {
        let folder = try TemporaryFolder()
        let made = try run(
            "openssl",
            arguments + [
                "-in", TestPKI.path("client-a.key.pem"), "-passout", "pass:fixture", "-out", folder.path("key"),
            ])
        try #require(made.status == 0, "\(made.output)")
        let bytes = try folder.bytes("key")
        #expect(try IdentityFile.readKey(bytes, password: password).pkcs8 == TestPKI.key("client-a").pkcs8)
        #expect(code { _ = try IdentityFile.readKey(bytes, password: nil) } == .passwordNeeded)
        #expect(code { _ = try IdentityFile.readKey(bytes, password: Secret(utf8: "wrong")) } == .wrongPassword)
        for length in stride(from: 0, to: bytes.count - 8, by: 9) {
            #expect(code { _ = try IdentityFile.readKey(Array(bytes.prefix(length)), password: password) } != nil)
        }
    }

    @Test func rsaKeysInDERAreRead() throws {
        let folder = try TemporaryFolder()
        try openssl(
            "rsa", "-traditional", "-in", TestPKI.path("client-b.key.pem"), "-outform", "DER", "-out",
            folder.path("key"))
        #expect(
            try IdentityFile.readKey(folder.bytes("key"), password: nil).pkcs8 == TestPKI.key("client-b").pkcs8)
    }

    @Test func certificatesOfEveryFormAreRead() throws {
        let chain = try TestPKI.chain("client-a")
        let folder = try TemporaryFolder()
        try openssl(
            "crl2pkcs7", "-nocrl", "-outform", "DER", "-certfile", TestPKI.path("client-a.pem"), "-out",
            folder.path("chain.p7b"))
        #expect(try IdentityFile.readCertificates(TestPKI.bytes("client-a.pem")) == chain)
        #expect(try IdentityFile.readCertificates(chain[0].der) == [chain[0]])
        #expect(try IdentityFile.readCertificates(folder.bytes("chain.p7b")) == chain)
    }

    @Test func unexpectedPiecesAreNamed() throws {
        let certificate = try TestPKI.bytes("client-a.pem")
        let key = try TestPKI.bytes("client-a.key.pem")
        let pkcs12 = try TestPKI.bytes("client-a.p12")
        let certificates: [(String, [UInt8], CertificateError.Code)] = [
            ("nothing", [], .malformed), ("text", Array("hello".utf8), .malformed), ("a key", key, .malformed),
            ("both", certificate + key, .malformed), ("PKCS#12", pkcs12, .malformed),
            ("cut", Array(certificate.prefix(200)), .malformed), ("DER of something", [0x30, 0x00], .malformed),
        ]
        for (name, bytes, expected) in certificates {
            #expect(code { _ = try IdentityFile.readCertificates(bytes) } == expected, "\(name)")
        }
        let keys: [(String, [UInt8], CertificateError.Code)] = try [
            ("nothing", [], .malformed), ("text", Array("hello".utf8), .malformed),
            ("a certificate", certificate, .noKey),
            ("a DER certificate", TestPKI.leaf("client-a").der, .noKey), ("two keys", key + key, .malformed),
            ("PKCS#12", pkcs12, .malformed), ("DER of something", [0x30, 0x03, 0x02, 0x01, 0x00], .malformed),
            ("DER of numbers", [0x30, 0x06, 0x02, 0x01, 0x00, 0x02, 0x01, 0x00], .malformed),
        ]
        for (name, bytes, expected) in keys {
            #expect(code { _ = try IdentityFile.readKey(bytes, password: password) } == expected, "\(name)")
        }
        let stranger = try TestPKI.key("client-b")
        #expect(code { _ = try IdentityFile.chain(of: stranger, among: TestPKI.chain("client-a")) } == .keyMismatch)
    }
}
