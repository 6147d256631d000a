// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignNIO
import CountersignTestOrigin
import CountersignTesting
import Foundation
import Synchronization
import Testing

/// The code of the articles about managing a home, compiled and run.
@Suite(.waiting, .timeLimit(.minutes(15))) struct ManageAHomeCode {
    private let home: TemporaryHome
    private var manager: HomeManager { home.manager }

    init() throws { home = try TemporaryHome() }

    // MARK: StoreAPassword

    func save(user: String, password: String, in manager: HomeManager) async -> String {
        do {
            let block = try await manager.setPassword(Password(password), user: user)
            guard let block else { return "stored" }
            // A site has rejected exactly this password before, and does not get it again.
            return "stored, but \(block.reason)"
        } catch let error as ChallengeError {
            return error.recoverySuggestion.map { "\(error.detail): \($0)" } ?? error.detail
        } catch {
            return "\(error)"
        }
    }

    func blocked(in manager: HomeManager) async throws -> [String] {
        try await manager.credentials().compactMap { credential in
            credential.block.map { "\(credential.name): \($0.reason)" }
        }
    }

    func retry(_ name: String, in manager: HomeManager) async throws {
        try await manager.permitRetry(ofCredential: name)
    }

    @Test func aTypedPasswordAnswersTheSite() async throws {
        let origin = try await FakeOrigin.start(.basic)
        try await home.add(origin, answering: "basic")
        #expect(await save(user: "", password: "x", in: manager).contains("user name is empty"))
        #expect(await save(user: FakeOrigin.user, password: FakeOrigin.password, in: manager) == "stored")
        let controller = try home.controller()
        let space = ProtectionSpace(host: origin.host, port: origin.port, authenticationMethod: .basic)
        let answer = await controller.handle(AuthenticationChallenge(protectionSpace: space))
        #expect(answer.0 == .useCredential)
        let again = AuthenticationChallenge(
            protectionSpace: space, proposedCredential: answer.1, previousFailureCount: 1)
        #expect(await controller.handle(again).0 == .performDefaultHandling)
        var changes = manager.changes.makeAsyncIterator()
        while try await blocked(in: manager).isEmpty { _ = await changes.next() }
        #expect(try await blocked(in: manager).first?.hasPrefix("enrollment: rejected at \(origin.url)") == true)
        #expect(await save(user: FakeOrigin.user, password: FakeOrigin.password, in: manager).hasPrefix("stored, but"))
        try await retry("enrollment", in: manager)
        #expect(try await blocked(in: manager).isEmpty)
        await origin.stop()
    }

    // MARK: EnrolThisDevice

    func enrol(
        at server: URL, trusting anchors: [X509Certificate], in manager: HomeManager,
        show: @escaping @Sendable (String) -> Void
    ) async throws -> Date? {
        var enrollment = IdentityEnrollment(name: "laptop", server: server)
        enrollment.serverAnchors = anchors
        enrollment.replaces = true
        switch try await manager.enrollIdentity(enrollment, progress: { show($0.description) }) {
        case .renewed(let certificate):
            show("valid until \(certificate.notAfter)")
            return certificate.notAfter
        case .pending(let date):
            show("the authority decides later; the next attempt is at \(date)")
            return nil
        }
    }

    @Test func aDeviceIsEnrolledWithProgress() async throws {
        let server = try ESTServer(#"{"auth": "basic", "clientCertificate": "optional"}"#)
        try await manager.setPassword(Password(ESTServer.password), user: ESTServer.user)
        let anchor = try X509Certificate(Data(TextFile.bytes(server.certificate("ca"))))
        let shown = Mutex<[String]>([])
        let address = try #require(URL(string: server.address()))
        let end = try await enrol(at: address, trusting: [anchor], in: manager) { text in
            shown.withLock { $0.append(text) }
        }
        let identity = try #require(try await manager.identities().first)
        #expect(identity.name == "laptop" && identity.expirationDate == end)
        #expect(shown.withLock { $0 }.first == "asking \(server.address())")
        try server.set(#"{"auth": "basic", "clientCertificate": "optional", "pending": 1, "retryAfter": "60"}"#)
        #expect(try await enrol(at: address, trusting: [anchor], in: manager) { _ in } == nil)
    }

    // MARK: ShowWhenACertificateExpires

    func badge(for identities: [InstalledIdentity], at date: Date) -> String? {
        let days = identities.compactMap { $0.daysLeft(at: date) }.min()
        switch days {
        case nil: return nil
        case let days? where days < 0: return "certificate expired"
        case 0?: return "certificate expires today"
        case 1?: return "certificate expires tomorrow"
        case let days?: return days > 14 ? nil : "certificate expires in \(days) days"
        }
    }

    func keepBadge(of manager: HomeManager, show: @Sendable (String?) -> Void) async throws {
        let changes = manager.changes
        show(badge(for: try await manager.identities(), at: .now))
        for await change in changes where change.kind == .identity {
            show(badge(for: try await manager.identities(), at: .now))
        }
    }

    @Test func aBadgeSaysWhenTheCertificateExpires() async throws {
        let origin = try await FakeOrigin.start(.clientCertificate)
        let shown = AsyncStream.makeStream(of: String?.self)
        let manager = manager
        let task = Task { try await keepBadge(of: manager) { shown.continuation.yield($0) } }
        var badges = shown.stream.makeAsyncIterator()
        #expect(await badges.next() == .some(nil))
        // The fake identity is valid for a day.
        try await home.add(origin)
        var found = await badges.next()
        while found == .some(nil) { found = await badges.next() }
        #expect(found == "certificate expires today" || found == "certificate expires tomorrow")
        let identity = try #require(try await manager.identities().first)
        let end = try #require(identity.expirationDate)
        #expect(badge(for: [identity], at: end - 5.5 * 86_400) == "certificate expires in 5 days")
        #expect(badge(for: [identity], at: end + 1) == "certificate expired")
        #expect(badge(for: [identity], at: end - 20 * 86_400) == nil)
        task.cancel()
        await origin.stop()
    }

    // MARK: EditTheListOfSites

    func rows(of manager: HomeManager) async throws -> [String] {
        try await manager.sites().map { "\($0.location): \($0.line)" }
    }

    func marks(for line: String, in manager: HomeManager) -> [String] {
        manager.problems(inSite: line).map { problem in
            let mark = String(repeating: " ", count: problem.column - 1) + "^"
            return "\(mark) \(problem.message)\(problem.hint.map { "; \($0)" } ?? "")"
        }
    }

    func add(_ line: String, to manager: HomeManager) async throws -> AllowedSite {
        try await manager.addSite(line)
    }

    func remove(_ site: AllowedSite, from manager: HomeManager) async throws {
        try await manager.removeSite(site.site)
    }

    func faults(of manager: HomeManager) async throws -> [SiteProblem] {
        do {
            _ = try await manager.sites()
            return []
        } catch let error as ChallengeError where error.code == .listFaulty {
            return error.siteProblems
        }
    }

    @Test func aSettingsPageAddsAndRemovesSites() async throws {
        let site = try await add("https://git.corp.example answer=basic", to: manager)
        #expect(try await rows(of: manager) == ["AllowedSites/local.sites:1: https://git.corp.example answer=basic"])
        #expect(
            marks(for: "wiki.corp.example anwser=ntlm", in: manager).first?.hasPrefix(
                String(repeating: " ", count: 18) + "^ unknown option") == true)
        try await remove(site, from: manager)
        #expect(try await rows(of: manager).isEmpty)
        let list = home.folder.appending(path: "AllowedSites/local.sites")
        try Data("git.corp.example\nwiki.corp.example answer=magic\n".utf8).write(to: list)
        let faults = try await faults(of: manager)
        #expect(faults.map(\.line) == [2] && faults.map(\.column) == [26])
    }

    // MARK: TrustAServerForSomeTime

    func trust(
        _ question: ServerTrustQuestion, until end: Date, in manager: HomeManager
    ) async throws -> ServerTrustException? {
        guard let leaf = question.verdict.leaf else { return nil }
        return try await manager.allowServer(
            host: question.host, port: question.port, fingerprint: leaf.fingerprint, until: end,
            answeringChallenges: true)
    }

    /// Refuses every server, and remembers the question.
    private final class Refusing: ServerTrustDelegate {
        let asked = Mutex<ServerTrustQuestion?>(nil)

        func decide(_ question: ServerTrustQuestion) async -> ServerTrustDecision {
            asked.withLock { $0 = question }
            return .refuse
        }
    }

    @Test func aPrinterIsTrustedUntilFridayAndAnswered() async throws {
        let printer = try await FakeOrigin.start(.untrusted)
        try await home.add(printer, answering: "basic")
        let delegate = Refusing()
        let proxy = ChallengeProxy(try home.controller(), serverTrustDelegate: delegate)
        let running = Task { try await proxy.run() }
        let folder = try TemporaryFolder("curl")
        func get() async throws -> String {
            let arguments = [
                "-s", "--proxy", "\(try await proxy.address)", "--cacert", proxy.trustBundlePath,
                "\(printer.url.absoluteString)/",
            ]
            // A blocked thread of the pool would keep the delegate from its answer.
            return try await Command.detached {
                try Command.run("/usr/bin/curl", arguments, in: folder).output
            }
        }
        #expect(try await get() == "")
        let question = try #require(delegate.asked.withLock { $0 })
        let exception = try await trust(question, until: .now + 86_400, in: manager)
        #expect(exception?.answersChallenges == true)
        // The proxy hears of the exception from the file system.
        let isAnswered = try await eventually { try await get().contains("Basic, as \(FakeOrigin.user)") }
        #expect(isAnswered)
        proxy.stop()
        try await running.value
        await printer.stop()
    }

    // MARK: UnlockTheVaultLater

    func start(home: URL) throws -> ChallengeController {
        try ChallengeController(home: home, startsLocked: true)
    }

    func unlock(_ controller: ChallengeController, with typed: String) async -> Bool {
        do {
            try await controller.unlockVault(passphrase: Password(typed))
            return true
        } catch {
            return false
        }
    }

    func screenWasLocked(_ controller: ChallengeController) async {
        await controller.lockVault()
    }

    @Test func theVaultIsUnlockedLaterAndLockedWithTheScreen() async throws {
        try await manager.addSite("https://git.corp.example answer=basic")
        try await manager.setPassword(Password("p"), user: "u")
        try await manager.rekeyVault(passphrase: Password("typed later"))
        let controller = try start(home: home.folder)
        let space = ProtectionSpace(host: "git.corp.example", authenticationMethod: .basic)
        let challenge = AuthenticationChallenge(protectionSpace: space)
        #expect(await controller.handle(challenge).0 == .performDefaultHandling)
        #expect(await !unlock(controller, with: "something else"))
        #expect(await unlock(controller, with: "typed later"))
        #expect(await controller.handle(challenge).0 == .useCredential)
        await screenWasLocked(controller)
        #expect(controller.isVaultLocked)
        #expect(await controller.handle(challenge).0 == .performDefaultHandling)
    }
}
