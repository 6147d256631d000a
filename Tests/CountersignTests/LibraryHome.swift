// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import Foundation
import CountersignCryptography
import NIOConcurrencyHelpers
import CountersignTestOrigin
import CountersignVault

@testable import Countersign

import struct CountersignChallenges.Breaker

/// A home with a list, a vault and identities from TestPKI, for tests of the library.
final class LibraryHome: Sendable {
    static let user = "jdoe"
    /// A recognisable word that must not appear anywhere except at the origin.
    static let password = "kanarie-2b81d0"
    static let passphrase = "kanarie-door-77aa"

    let folder: TemporaryFolder

    var path: String { folder.file("home") }

    init(
        _ sites: String, credentials: [String: (user: String, password: String)] = ["enrollment": (user, password)],
        identities: [String] = [], anchors: [String] = [], openedBy key: NewVaultKey = .file
    ) throws {
        folder = try TemporaryFolder("library")
        try folder.write("home/AllowedSites/test.sites", sites)
        let vault = try SealedVault(home: folder.file("home")).create(openedBy: key)
        try vault.update { contents in
            for (name, credential) in credentials {
                try contents.setCredential(
                    name: name, user: credential.user, password: Secret(utf8: credential.password))
            }
        }
        for name in identities { try add(identity: name, to: vault) }
        for (index, anchor) in anchors.enumerated() {
            try folder.write("home/Certs/anchors/anchor-\(index).pem", TextFile.bytes(anchor))
        }
    }

    private func add(identity name: String, to vault: OpenVault) throws {
        let pki = try TestPKI.shared
        let (chain, key) = try IdentityFile.read(
            TextFile.bytes(pki.pkcs12(name)), password: Secret(utf8: pki.password))
        let file = Home(path: path).identityChain(named: name).path.dropFirst(folder.path.count + 1)
        try folder.write(String(file), chain.map(\.pem).joined())
        try vault.update { contents in
            try contents.setIdentityKey(
                IdentityKey(name: name, privateKey: key.pkcs8, leafSHA256: chain[0].sha256Fingerprint))
        }
    }

    /// Replaces the list.
    func write(sites: String) throws { try folder.write("home/AllowedSites/test.sites", sites) }

    /// Enrols a password, as another process would.
    func enroll(_ name: String = "enrollment", user: String = user, password: String = password) throws {
        let vault = try SealedVault(home: path).open { () throws in Secret(utf8: Self.passphrase) }
        try vault.update { try $0.setCredential(name: name, user: user, password: Secret(utf8: password)) }
    }

    /// Opens a controller. The home is deleted at the end of the test run.
    func controller() throws -> ChallengeController {
        Self.kept.withLockedValue { $0.append(self) }
        return try ChallengeController(home: URL(filePath: path))
    }

    private static let kept = NIOLockedValueBox<[LibraryHome]>([])
}

/// Waits without blocking a thread until a condition holds. Returns whether it did within a minute.
func eventually(_ isSo: () async throws -> Bool) async throws -> Bool {
    let end = ContinuousClock.now + .seconds(60)
    while try await !isSo() {
        guard ContinuousClock.now < end else { return false }
        try await Task.sleep(for: .milliseconds(5))
    }
    return true
}

extension ChallengeController {
    /// The breaker's key of the enrolled credential for `https://git.corp.example`.
    func key(_ method: AuthenticationMethod = .basic) throws -> Breaker.Key? {
        try answer(to: .git(method), of: nil, under: currentPolicy()).key
    }

    /// The events of a stream up to now. Call it once per stream.
    func told(_ events: AsyncStream<ChallengeEvent>) async -> [ChallengeEvent] {
        let end = ChallengeEvent.refreshed(identity: "the end of the test")
        listeners.tell(end)
        return await events.prefix { $0 != end }.reduce(into: []) { $0.append($1) }
    }
}

extension ProtectionSpace {
    /// The space of `https://git.corp.example` with the given method.
    static func git(_ method: AuthenticationMethod, scheme: String = "https") -> ProtectionSpace {
        ProtectionSpace(scheme: scheme, host: "git.corp.example", realm: "r", authenticationMethod: method)
    }
}

extension LibraryHome {
    /// Enrols an identity at `server`, with the credential `enrollment`.
    func enroll(_ name: String, at server: ESTServer) async throws {
        let vault = try SealedVault(home: path).open { () throws in throw HarnessError("no passphrase") }
        let record = EnrollmentRecord(
            name: name, server: server.address(), subject: "CN=\(name)", keySpecification: "ec-p256",
            anchors: try Certificate.readPEM(TextFile.bytes(server.certificate("ca"))).map(\.der),
            credential: "enrollment")
        let renewal = IdentityRenewal(home: Home(path: path), vault: vault, now: ChallengeController.now)
        _ = try await renewal.enroll(record, replaces: false)
    }
}
