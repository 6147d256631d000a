// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import CountersignCryptography
import Foundation
import CountersignTestOrigin
import Testing

/// Tests with softhsm2, through OpenSSL's engine.
struct TokenTests {
    private static let pin = Secret(utf8: SoftToken.pin)

    init() throws { _ = try SoftToken.shared.get() }

    private func uri(_ object: String) throws -> TokenURI { try TokenURI(SoftToken.uri(object)) }

    @Test func aRefusedPINIsReportedAndNotTriedAgain() throws {
        let spare = try TokenURI(SoftToken.uri("client-a", in: SoftToken.spareLabel))
        let wrong = Secret(utf8: "canary-wrong")
        for attempt in 0..<12 {
            do {
                _ = try PKCS11Token.key(at: spare, pin: wrong)
                Issue.record("a wrong PIN was taken")
            } catch {
                #expect(error == CertificateError(.wrongPassword, ""))
                #expect(!"\(error)".contains("canary"))
                #expect("\(error)".contains("not tried again") == (attempt > 0), "attempt \(attempt): \(error)")
            }
        }
        #expect(code { _ = try PKCS11Token.key(at: spare, pin: Secret([])) } == .passwordNeeded)
        #expect(throws: Never.self, "the token is not locked") { try PKCS11Token.key(at: spare, pin: Self.pin) }
    }

    @Test(arguments: [("client-a", "EC P-256"), ("client-b", "RSA 2048")])
    func keysSignInTheTokenAndDoNotLeaveIt(name: String, kind: String) throws {
        let key = try PKCS11Token.key(at: uri(name), pin: Self.pin)
        let certificate = try PKCS11Token.certificate(at: uri(name), pin: Self.pin)
        #expect(certificate == (try TestPKI.leaf(name)))
        #expect(key.isInToken && key.matches(certificate) && key.kind.description == kind)
        #expect("\(key)" == "(private key in a token, \(kind))")
        #expect(code { _ = try key.pkcs8 } == .unsupported)
        let request = try CertificationRequest.make(renewing: certificate, key: key)
        let folder = try TemporaryFolder()
        let path = folder.path("request.der")
        try Data(request.der).write(to: URL(fileURLWithPath: path))
        #expect(try openssl("req", "-inform", "DER", "-in", path, "-verify", "-noout").contains("verify OK"))
        let identity = try Identity(name: "token", chain: TestPKI.chain(name), key: key)
        #expect(identity.leaf == certificate)
    }

    /// libcurl registers all engines when it starts. An engine that registered its methods would sign for all keys of
    /// the process.
    @Test func aTokenInUseLeavesKeysInMemoryAlone() throws {
        _ = try PKCS11Token.key(at: uri("client-a"), pin: Self.pin)
        // libssh2 does this when libcurl starts.
        csn_ENGINE_register_all_complete()
        for key in [try PrivateKey.generateP256(), try PrivateKey.generateRSA(bits: 2048)] {
            let request = try CertificationRequest.make(subject: SubjectName("CN=memory"), key: key)
            #expect(!request.der.isEmpty)
        }
    }

    @Test func objectsAreFoundByTheirIdentifierToo() throws {
        let byID = try TokenURI("pkcs11:token=work;id=%b1;type=private?module-path=\(SoftToken.modulePath)")
        #expect(try PKCS11Token.key(at: byID, pin: Self.pin).matches(TestPKI.leaf("client-b")))
        #expect(try PKCS11Token.certificate(at: byID, pin: Self.pin) == TestPKI.leaf("client-b"))
    }

    @Test func whatIsNotThereIsNamed() throws {
        #expect(code { _ = try PKCS11Token.key(at: uri("nobody"), pin: Self.pin) } == .noKey)
        #expect(code { _ = try PKCS11Token.certificate(at: uri("nobody"), pin: Self.pin) } == .noCertificate)
        let other = try TokenURI("pkcs11:token=other;object=client-a?module-path=\(SoftToken.modulePath)")
        #expect(code { _ = try PKCS11Token.key(at: other, pin: Self.pin) } == .noKey)
        for module in ["/nowhere/module.so", "/bin/sh"] {
            let nowhere = try TokenURI("pkcs11:token=work;object=client-a?module-path=\(module)")
            #expect(code { _ = try PKCS11Token.key(at: nowhere, pin: Self.pin) } == .unavailable)
        }
    }

    /// Prints the time of a signature, which decides whether a handshake may sign on the event loop. Asserts nothing
    /// about it.
    @Test(arguments: ["client-a", "client-b"])
    func signaturesOfManyThreadsAreGood(name: String) async throws {
        let key = try PKCS11Token.key(at: uri(name), pin: Self.pin)
        let start = ContinuousClock.now
        try await withThrowingTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<10 {
                        _ = try CertificationRequest.make(subject: SubjectName("CN=x"), key: key)
                    }
                }
            }
            try await group.waitForAll()
        }
        print("\(name): \((ContinuousClock.now - start) / 40) a signature, verified")
    }
}

struct TokenURITests {
    @Test(arguments: [
        ("pkcs11:token=work;object=a", "pkcs11:token=work;object=a"),
        ("PKCS11:object=a;type=private;token=My%20Token", "pkcs11:token=My%20token;object=a"),
        ("pkcs11:id=%00%a1x", "pkcs11:id=%00%a1%78"),
        (
            "pkcs11:serial=1;model=m;manufacturer=n;object=%C3%BC",
            "pkcs11:manufacturer=n;serial=1;model=m;object=%c3%bc"
        ),
        ("pkcs11:object=a?module-path=/usr/lib/a%20b.so", "pkcs11:object=a?module-path=/usr/lib/a%20b.so"),
    ])
    func urisHaveOneForm(text: String, form: String) throws {
        let uri = try TokenURI(text)
        #expect(uri.description.lowercased() == form.lowercased())
        #expect(try TokenURI(uri.description) == uri)
    }

    @Test func theModuleOfTheURIWins() throws {
        #expect(try TokenURI("pkcs11:object=a", defaultModulePath: "/d.so").modulePath == "/d.so")
        #expect(try TokenURI("pkcs11:object=a?module-path=/m.so", defaultModulePath: "/d.so").modulePath == "/m.so")
        #expect(try TokenURI("pkcs11:object=a").modulePath == nil)
    }

    @Test(arguments: [
        ("pkcs11:object=a?pin-value=canary", CertificateError.Code.unsupported),
        ("pkcs11:object=a?pin-source=file:/canary", .unsupported), ("pkcs11:object=a;pin-value=canary", .unsupported),
        ("pkcs11:object=a;slot-id=1", .unsupported), ("pkcs11:object=a?module-name=softhsm", .unsupported),
        ("pkcs11:token=work", .malformed), ("pkcs11:", .malformed), ("file:a", .malformed), ("", .malformed),
        ("pkcs11:object=a;object=b", .malformed), ("pkcs11:object=", .malformed), ("pkcs11:object", .malformed),
        ("pkcs11:object=%4", .malformed), ("pkcs11:object=%zz", .malformed), ("pkcs11:object=a b", .malformed),
        ("pkcs11:object=%00", .malformed), ("pkcs11:object=a?module-path=relative.so", .malformed),
        ("pkcs11:object=a?module-path=/a%0Ab", .malformed),
    ])
    func othersAreRefusedWithoutRepeatingAPIN(text: String, expected: CertificateError.Code) {
        do {
            _ = try TokenURI(text)
            Issue.record("\(text) was taken")
        } catch {
            #expect(error == CertificateError(expected, ""), "\(text): \(error)")
            #expect(!error.detail.contains("canary"))
        }
    }
}
