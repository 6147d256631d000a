// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import CountersignVault
import Foundation
import Synchronization
import Testing

@testable import Countersign

import class CountersignCryptography.Secret

/// A home that a program manages.
@Suite(.waiting, .timeLimit(.minutes(15))) struct HomeManagerTests {
    private let folder: TemporaryFolder
    private let manager: HomeManager
    private var path: String { folder.file("home") }

    /// A home that does not exist yet.
    init() throws {
        folder = try TemporaryFolder("manager")
        manager = try HomeManager(home: URL(filePath: folder.file("home")))
    }

    /// Expects an error with this code.
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

    // MARK: Credentials

    @Test func theFirstCredentialCreatesTheHome() async throws {
        #expect(try await manager.credentials().isEmpty)
        #expect(!FileManager.default.fileExists(atPath: path))
        try await manager.setPassword(Password("kanarie-1"), user: "jdoe")
        try await manager.setToken(try #require(BearerToken("kanarie-2")), name: "api")
        try await manager.setPrincipal("jdoe@CORP.EXAMPLE", password: Password("kanarie-3"), name: "krb")
        #expect(
            try await manager.credentials() == [
                StoredCredential(name: "api", kind: .token, user: nil),
                StoredCredential(name: "enrollment", kind: .password, user: "jdoe"),
                StoredCredential(name: "krb", kind: .principal, user: "jdoe@CORP.EXAMPLE"),
            ])
        try await manager.removeCredential("api")
        #expect(try await manager.credentials().map(\.name) == ["enrollment", "krb"])
        await expect(.credentialMissing) { try await manager.removeCredential("api") }
        // Another process sees the same.
        let vault = try SealedVault(home: path).open { () throws in Secret(utf8: "") }
        #expect(vault.contents.credentials["enrollment"]?.password == Secret(utf8: "kanarie-1"))
    }

    @Test func aHomeThatWasRemovedIsCreatedAgain() async throws {
        try await manager.setPassword(Password("kanarie-1"), user: "jdoe")
        try FileManager.default.removeItem(at: manager.folder)
        #expect(try await manager.credentials().isEmpty)
        try await manager.setPassword(Password("kanarie-2"), user: "jdoe", name: "work")
        #expect(try await manager.credentials().map(\.name) == ["work"])
    }

    @Test(arguments: ["", "a b", "../x", String(repeating: "n", count: 65)])
    func aFaultyNameIsRefusedBeforeTheVaultIsOpened(_ name: String) async throws {
        await expect(.valueFaulty) { try await manager.setPassword(Password("p"), user: "u", name: name) }
        await expect(.valueFaulty) { try await manager.setPassword(Password("p"), user: "u\n") }
        await expect(.valueFaulty) { try await manager.setPrincipal("none", password: Password("p"), name: "k") }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func aRejectedCredentialIsShownAndPermittedAgain() async throws {
        let home = try LibraryHome("https://git.corp.example answer=basic\n")
        let controller = try home.controller()
        let manager = HomeManager(controller)
        let space = ProtectionSpace.git(.basic)
        var changes = manager.changes.makeAsyncIterator()
        let (_, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: space))
        let again = AuthenticationChallenge(
            protectionSpace: space, proposedCredential: credential, previousFailureCount: 1)
        _ = await controller.handle(again)
        // The records are written by another thread.
        while try await manager.credentials().first?.block == nil {
            #expect(await changes.next() == HomeChange(.breaker))
        }
        let block = try #require(try await manager.credentials().first?.block)
        #expect(block.sites == ["https://git.corp.example:443"] && !block.isEverywhere)
        // The same password, stored again, stays blocked.
        let stored = try await manager.setPassword(Password(LibraryHome.password), user: LibraryHome.user)
        #expect(stored?.sites == block.sites)
        #expect(try await manager.permitRetry() == ["enrollment"])
        #expect(try await manager.credentials().first?.block == nil)
        await expect(.credentialMissing) { try await manager.permitRetry(ofCredential: "other") }
        let (disposition, _) = await controller.handle(AuthenticationChallenge(protectionSpace: space))
        #expect(disposition == .useCredential)
    }

    // MARK: Sites

    @Test func sitesAreAddedCheckedAndRemoved() async throws {
        let added = try await manager.addSite("https://git.corp.example answer=basic credential=work")
        #expect(added.location == "AllowedSites/local.sites:1" && added.credential == "work")
        _ = try await manager.addSite("https://*.wiki.corp.example identity=laptop intercept=no", file: "work")
        #expect(try await manager.sites().map(\.site) == ["https://git.corp.example", "https://*.wiki.corp.example"])
        #expect(try await manager.checkSite("git.corp.example/tools.git") == SiteCheck(site: added, reason: nil))
        let tunnelled = try await manager.checkSite("https://a.wiki.corp.example")
        #expect(
            tunnelled.site?.identity == "laptop" && tunnelled.reason == "AllowedSites/work.sites:1 says intercept=no")
        #expect(try await manager.checkSite("https://evil.example").site == nil)
        try await manager.removeSite("git.corp.example")
        #expect(try await manager.sites().count == 1)
        await expect(.siteMissing) { try await manager.removeSite("git.corp.example") }
    }

    @Test func aFaultyLineHasAColumn() async throws {
        let line = "https://git.corp.example awnser=basic"
        let problem = SiteProblem(
            file: "the line", line: 1, column: 26, message: "unknown option \"awnser\"", hint: "did you mean answer=?")
        let found = manager.problems(inSite: line)
        #expect(found.map(\.column) == [26] && found.first?.message == problem.message, "\(found)")
        let error = await #expect(throws: ChallengeError.self) { try await manager.addSite(line) }
        #expect(error?.code == .listFaulty && error?.siteProblems == found)
        #expect(manager.problems(inSite: "https://git.corp.example answer=basic").isEmpty)
        #expect(!FileManager.default.fileExists(atPath: "\(path)/AllowedSites/local.sites"))
    }

    @Test func aFaultyListIsReportedWithFileLineAndColumn() async throws {
        try folder.write("home/AllowedSites/work.sites", "# mine\nhttps://git.corp.example anwer=basic\n")
        let error = await #expect(throws: ChallengeError.self) { try await manager.sites() }
        let problem = try #require(error?.siteProblems.first)
        #expect(error?.code == .listFaulty && problem.file == "AllowedSites/work.sites")
        #expect(problem.line == 2 && problem.column == 26)
    }

    // MARK: Identities

    @Test func anIdentityIsImportedListedAndRemoved() async throws {
        let pki = try TestPKI.shared
        let file = Data(TextFile.bytes(pki.pkcs12("laptop")))
        await expect(.certificateFaulty) { try await manager.importIdentity(file) }
        await expect(.certificateFaulty) { try await manager.importIdentity(file, password: Password("no")) }
        let name = try await manager.importIdentity(file, password: Password(pki.password), name: "laptop")
        let identity = try #require(try await manager.identities().first)
        #expect(name == "laptop" && identity.name == "laptop" && identity.server == nil && identity.fault == nil)
        let certificate = try #require(identity.certificate)
        #expect(try X509Certificate(Data(certificate.der)) == certificate)
        #expect(try X509Certificate(Data(certificate.pem.utf8)) == certificate)
        let end = try #require(identity.expirationDate)
        #expect(identity.daysLeft(at: end.addingTimeInterval(-5.5 * 86_400)) == 5)
        #expect(identity.daysLeft(at: end.addingTimeInterval(60)) == -1)
        let renewal = try #require(identity.renewalDate)
        #expect(renewal < end && identity.needsRenewal(at: renewal) && !identity.needsRenewal(at: renewal - 1))
        await expect(.nameInUse) {
            try await manager.importIdentity(file, password: Password(pki.password), name: "laptop")
        }
        try await manager.removeIdentity("laptop")
        #expect(try await manager.identities().isEmpty)
        await expect(.identityMissing) { try await manager.removeIdentity("laptop") }
    }

    @Test func aDeviceIsEnrolledAndItsCertificateRenewed() async throws {
        let server = try ESTServer(#"{"auth": "basic", "clientCertificate": "optional"}"#)
        try await manager.setPassword(Password(ESTServer.password), user: ESTServer.user)
        var enrollment = IdentityEnrollment(name: "laptop", server: try #require(URL(string: server.address())))
        enrollment.serverAnchors = [try X509Certificate(Data(TextFile.bytes(server.certificate("ca"))))]
        let progress = Recorded<IdentityProgress>()
        let outcome = try await manager.enrollIdentity(enrollment) { progress.add($0) }
        let identity = try #require(try await manager.identities().first)
        #expect(identity.server == URL(string: server.address()) && !identity.needsRenewal())
        #expect(outcome == .renewed(try #require(identity.certificate)))
        #expect(progress.all.contains { $0.kind == .asking })
        let renewed = try await manager.refreshIdentity("laptop")
        #expect(renewed != outcome)
        await expect(.identityMissing) { _ = try await manager.refreshIdentity("desk") }
        try server.set(
            #"{"auth": "basic", "clientCertificate": "optional", "fault": "500", "faultFor": "simplereenroll"}"#)
        await expect(.refreshFailed) { _ = try await manager.refreshIdentity("laptop") }
        enrollment.name = "desk"
        enrollment.issuerFingerprint = "sha256:" + String(repeating: "0", count: 64)
        let strange = enrollment
        await expect(.refreshFailed) { _ = try await manager.enrollIdentity(strange) }
    }

    // MARK: Trust

    @Test func aServerIsTrustedUntilADate() async throws {
        let fingerprint = "sha256:" + String(repeating: "ab", count: 32)
        let end = Date(timeIntervalSince1970: 4_000_000_000)
        try await manager.allowServer(
            host: "Printer.corp.example", port: 8443, fingerprint: fingerprint, until: end, answeringChallenges: true)
        let found = try #require(try await manager.trustExceptions().first)
        #expect(found.host == "printer.corp.example" && found.port == 8443 && found.fingerprint == fingerprint)
        #expect(found.expirationDate == end && found.answersChallenges)
        #expect(found.isInEffect(at: end) && !found.isInEffect(at: end + 1))
        await expect(.valueFaulty) {
            try await manager.allowServer(
                host: "printer.corp.example", fingerprint: fingerprint, until: Date(timeIntervalSinceNow: -60),
                answeringChallenges: false)
        }
        await expect(.valueFaulty) {
            try await manager.allowServer(host: "a.example", fingerprint: "sha256:00", answeringChallenges: false)
        }
        await expect(.trustMissing) { try await manager.forgetServer(host: "printer.corp.example") }
        try await manager.forgetServer(host: "printer.corp.example", port: 8443)
        #expect(try await manager.trustExceptions().isEmpty)
    }

    @Test func anchorsAreAddedAndRemoved() async throws {
        let root = Data(try TextFile.bytes(TestPKI.shared.originAnchor))
        let added = try await manager.addTrustAnchors(root, name: "corp")
        #expect(added.map(\.file) == ["Certs/anchors/corp.pem"])
        #expect(try await manager.trustAnchors() == added)
        await expect(.valueFaulty) { try await manager.addTrustAnchors(Data("no".utf8), name: "x") }
        try await manager.removeTrustAnchor(fingerprint: added[0].certificate.fingerprint)
        #expect(try await manager.trustAnchors().isEmpty)
        await expect(.trustMissing) {
            try await manager.removeTrustAnchor(fingerprint: added[0].certificate.fingerprint)
        }
    }

    // MARK: The vault

    @Test func aLockedControllerIsUnlockedWithATypedPassphrase() async throws {
        let home = try LibraryHome(
            "https://git.corp.example answer=basic\n", openedBy: .passphrase(Secret(utf8: LibraryHome.passphrase)))
        let controller = try ChallengeController(home: URL(filePath: home.path), startsLocked: true)
        let manager = HomeManager(controller)
        let challenge = AuthenticationChallenge(protectionSpace: .git(.basic))
        #expect(controller.isVaultLocked)
        #expect(await controller.handle(challenge).0 == .performDefaultHandling)
        await expect(.vaultLocked) { try await manager.unlockVault(passphrase: Password("wrong")) }
        await expect(.vaultLocked) { _ = try await manager.credentials() }
        try await manager.unlockVault(passphrase: Password(LibraryHome.passphrase))
        #expect(!controller.isVaultLocked)
        #expect(await controller.handle(challenge).0 == .useCredential)
        #expect(try await manager.credentials().map(\.name) == ["enrollment"])
        try await manager.lockVault()
        #expect(controller.isVaultLocked)
        #expect(await controller.handle(challenge).0 == .performDefaultHandling)
    }

    @Test func theVaultIsRekeyed() async throws {
        try await manager.setPassword(Password("kanarie-1"), user: "jdoe")
        #expect(try await manager.vaultState().key == .file)
        try await manager.rekeyVault(passphrase: Password("a new door"))
        #expect(try await manager.vaultState().key == .passphrase)
        let others = try HomeManager(home: URL(filePath: path)) { Password("a new door") }
        #expect(try await others.credentials().map(\.name) == ["enrollment"])
        await expect(.valueFaulty) { try await manager.rekeyVault(passphrase: Password("")) }
        await expect(.vaultLocked) {
            _ = try await HomeManager(home: URL(filePath: path)) { Password("another door") }.credentials()
        }
        let closed: [(HomeManager, String)] = [
            (try HomeManager(home: URL(filePath: path)), "the vault requires a passphrase, and none was given"),
            (
                try HomeManager(home: URL(filePath: path)) { throw CancellationError() },
                "the vault requires a passphrase, and the closure threw an error"
            ),
        ]
        for (manager, detail) in closed {
            do {
                _ = try await manager.credentials()
                Issue.record("the vault was opened")
            } catch {
                let error = try #require(error as? ChallengeError)
                #expect(error.code == .vaultLocked && error.detail == detail)
            }
        }
        await expect(.notRunning) { try await manager.lockVault() }
    }

    // MARK: The switch and events

    @Test func aPausedHomeAnswersNothingInAnyProcess() async throws {
        let home = try LibraryHome("https://git.corp.example answer=basic\n")
        let controller = try home.controller()
        let manager = try HomeManager(home: URL(filePath: home.path))
        #expect(try await manager.isIntegratedAuthenticationEnabled())
        try await manager.setIntegratedAuthenticationEnabled(false)
        let challenge = AuthenticationChallenge(protectionSpace: .git(.basic))
        #expect(await controller.handle(challenge).0 == .performDefaultHandling)
        let error = #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.basic)) }
        #expect(error?.detail.contains("switched off") == true)
        let later = try ChallengeController(home: URL(filePath: home.path))
        #expect(await later.handle(challenge).0 == .performDefaultHandling)
        try await manager.setIntegratedAuthenticationEnabled(true)
        #expect(await controller.handle(challenge).0 == .useCredential)
    }

    @Test func changesByAnotherProcessArriveAsEvents() async throws {
        let home = try LibraryHome("https://git.corp.example answer=basic\n")
        let manager = try HomeManager(home: URL(filePath: home.path))
        var changes = manager.changes.makeAsyncIterator()
        try home.enroll("work", user: "other")
        #expect(await changes.next() == HomeChange(.credential, name: "work"))
        try home.write(sites: "https://wiki.corp.example\n")
        #expect(await changes.next() == HomeChange(.sites))
        let other = try HomeManager(home: URL(filePath: home.path))
        try await other.setIntegratedAuthenticationEnabled(false)
        #expect(await changes.next() == HomeChange(.integratedAuthentication))
        try await other.addTrustAnchors(Data(try TextFile.bytes(TestPKI.shared.originAnchor)), name: "corp")
        #expect(await changes.next() == HomeChange(.trustAnchors))
        try await other.removeCredential("work")
        #expect(await changes.next() == HomeChange(.credential, name: "work"))
    }
}

/// Values that a closure has received, from any thread.
private final class Recorded<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])
    var all: [Value] { values.withLock { $0 } }
    func add(_ value: Value) { values.withLock { $0.append(value) } }
}
