// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignTestOrigin
import CountersignTesting
import Foundation
import Testing

/// Keys that a program takes from elsewhere into a home: key files, PKCS#11 tokens and keytabs.
@Suite(.waiting) struct IdentityImportTests {
    private let home: TemporaryHome
    private var manager: HomeManager { home.manager }

    init() throws { home = try TemporaryHome() }

    private func expect(
        _ code: ChallengeError.Code, at place: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
    ) async {
        do {
            try await body()
            Issue.record("no error; expected \(code)", sourceLocation: place)
        } catch {
            #expect((error as? ChallengeError)?.code == code, "\(error)", sourceLocation: place)
        }
    }

    /// The first certificate of a PEM file.
    private static func leaf(of file: Data) throws -> X509Certificate {
        let end = Data("-----END CERTIFICATE-----\n".utf8)
        return try X509Certificate(file.prefix(upTo: try #require(file.firstRange(of: end)).upperBound))
    }

    @Test func aKeyFileBelongsToItsCertificates() async throws {
        let certificate = Data(TextFile.bytes(Tool.fixture("client-a.pem")))
        let key = Data(TextFile.bytes(Tool.fixture("client-a.key.pem")))
        let other = Data(TextFile.bytes(Tool.fixture("client-b.key.pem")))
        await expect(.certificateFaulty) {
            try await manager.importIdentity(certificates: certificate, key: .file(other), name: "a")
        }
        await expect(.certificateFaulty) { try await manager.importIdentity(certificates: nil, key: .file(key)) }
        #expect(try await manager.identities().isEmpty)
        #expect(try await manager.importIdentity(certificates: certificate, key: .file(key), name: "a") == "a")
        let stored = try #require(try await manager.identities().first)
        #expect(stored.name == "a" && stored.fault == nil)
        #expect(stored.certificate == (try Self.leaf(of: certificate)) && stored.chain.count == 2)
        await expect(.nameInUse) {
            try await manager.importIdentity(certificates: certificate, key: .file(key), name: "a")
        }
        try await manager.importIdentity(certificates: certificate, key: .file(key), name: "a", replacing: true)
    }

    @Test func aKeyStaysInItsToken() async throws {
        _ = try SoftToken.shared.get()
        let source = IdentityKeySource.token(IdentityToken(SoftToken.uri("client-a"), pin: Password(SoftToken.pin)))
        let name = try await manager.importIdentity(certificates: nil, key: source, name: "card")
        #expect(name == "card")
        let stored = try #require(try await manager.identities().first)
        #expect(stored.certificate == (try Self.leaf(of: Data(TextFile.bytes(Tool.fixture("client-a.pem"))))))
        #expect(stored.fault == nil && stored.name == "card")
        await expect(.nameInUse) { try await manager.importIdentity(certificates: nil, key: source, name: "card") }
        // The certificate of another key.
        let certificate = Data(TextFile.bytes(Tool.fixture("client-b.pem")))
        await expect(.certificateFaulty) {
            try await manager.importIdentity(certificates: certificate, key: source, name: "other")
        }
        for uri in [SoftToken.uri("nobody"), "pkcs11:nonsense", "file:card"] {
            await expect(.certificateFaulty) {
                try await manager.importIdentity(
                    certificates: nil, key: .token(IdentityToken(uri, pin: Password(SoftToken.pin))), name: "none")
            }
        }
        #expect(try await manager.identities().map(\.name) == ["card"])
        try await manager.removeIdentity("card")
        #expect(try await manager.identities().isEmpty)
    }

    @Test func aCertificateIsIssuedForAKeyInAToken() async throws {
        _ = try SoftToken.shared.get()
        let server = try ESTServer(#"{"auth": "basic", "clientCertificate": "optional"}"#)
        try await manager.setPassword(Password(ESTServer.password), user: ESTServer.user)
        var enrollment = IdentityEnrollment(name: "card", server: try #require(URL(string: server.address())))
        enrollment.serverAnchors = [try X509Certificate(Data(TextFile.bytes(server.certificate("ca"))))]
        enrollment.token = IdentityToken(SoftToken.uri("nobody"), pin: Password(SoftToken.pin))
        let absent = enrollment
        await expect(.certificateFaulty) { _ = try await manager.enrollIdentity(absent) }
        enrollment.token = IdentityToken(SoftToken.uri("fresh"), pin: Password(SoftToken.pin))
        let outcome = try await manager.enrollIdentity(enrollment)
        let stored = try #require(try await manager.identities().first)
        #expect(outcome == .renewed(try #require(stored.certificate)))
        #expect(stored.name == "card" && stored.fault == nil && stored.server?.absoluteString == server.address())
        // The key in the token signs the renewal, too.
        #expect(try await manager.refreshIdentity("card") != outcome)
    }

    /// MIT's library reads the file.
    @Test func aKeytabHasTheKeysOfItsPrincipal() async throws {
        let file = home.folder.appending(path: "batch.keytab")
        try Data(Self.keytab("batch", "CORP.EXAMPLE")).write(to: file)
        try await manager.setPrincipal("batch@CORP.EXAMPLE", keytab: file, name: "batch")
        #expect(
            try await manager.credentials() == [
                StoredCredential(name: "batch", kind: .keytab, user: "batch@CORP.EXAMPLE")
            ])
        for (principal, path) in [("jdoe@CORP.EXAMPLE", file), ("batch@CORP.EXAMPLE", file.appending(path: "none"))] {
            await expect(.valueFaulty) { try await manager.setPrincipal(principal, keytab: path, name: "other") }
        }
        await expect(.valueFaulty) { try await manager.setPrincipal("batch", keytab: file, name: "other") }
        #expect(try await manager.credentials().count == 1)
    }

    /// A keytab of version 2 with one key of aes256-cts-hmac-sha1-96, all of whose bytes are 7.
    private static func keytab(_ name: String, _ realm: String) -> [UInt8] {
        func counted(_ bytes: [UInt8]) -> [UInt8] { [0, UInt8(bytes.count)] + bytes }
        let principal = [0, 1] + counted(Array(realm.utf8)) + counted(Array(name.utf8)) + [0, 0, 0, 1]
        let entry = principal + [0, 0, 0, 0, 1, 0, 18] + counted([UInt8](repeating: 7, count: 32)) + [0, 0, 0, 1]
        return [5, 2, 0, 0, 0, UInt8(entry.count)] + entry
    }
}
