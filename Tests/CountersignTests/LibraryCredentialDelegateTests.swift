// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Foundation
import FoundationNetworking
import Synchronization
import CountersignTestOrigin
import Testing
import CountersignVault

@testable import Countersign
@testable import CountersignNIO
@testable import CountersignURLSession

/// Supplies the same password for every site, and records the questions.
final class FixedPassword: CredentialDelegate {
    let asked = Mutex<[CredentialQuestion]>([])
    private let answer: SuppliedCredential?

    init(_ answer: SuppliedCredential?) { self.answer = answer }

    func credential(for question: CredentialQuestion) async -> SuppliedCredential? {
        asked.withLock { $0.append(question) }
        return answer
    }
}

/// Sites that have a password of their own.
@Suite(.waiting) struct LibraryCredentialDelegateTests {
    private static func home() throws -> LibraryHome {
        let origins = try LibraryOrigins.shared
        return try LibraryHome(
            "\(origins.basicURL) answer=basic\n\(origins.ntlmURL) answer=ntlm domain=ACME\n",
            credentials: ["enrollment": (LibraryHome.user, "kanarie-elsewhere")],
            anchors: [try TestPKI.shared.originAnchor])
    }

    private static func url(_ kind: String) throws -> URL {
        let origins = try LibraryOrigins.shared
        return try #require(
            URL(string: kind == "basic" ? "\(origins.basicURL)/basic/index" : "\(origins.ntlmURL)/file"))
    }

    private static func statuses(
        _ count: Int, _ proxy: ChallengeProxy, _ url: URL, body: Data? = nil
    ) async throws -> [Int] {
        let session = URLSession(configuration: try await URLSessionConfiguration.ephemeral.answering(through: proxy))
        var statuses: [Int] = []
        for _ in 0..<count {
            var request = URLRequest(url: url)
            if let body {
                request.httpMethod = "POST"
                request.httpBody = body
            }
            let (_, response) = try await session.data(for: request)
            statuses.append((response as? HTTPURLResponse)?.statusCode ?? 0)
        }
        return statuses
    }

    @Test(arguments: ["basic", "ntlm"], [true, false])
    func aSiteWithItsOwnPasswordIsAskedAboutOnce(_ kind: String, _ isKept: Bool) async throws {
        let home = try Self.home()
        let url = try Self.url(kind)
        let delegate = FixedPassword(
            SuppliedCredential(user: LibraryHome.user, password: Password(LibraryHome.password), isKept: isKept))
        try await withProxy(home, passwords: delegate) { proxy, _ in
            let statuses = try await Self.statuses(3, proxy, url)
            #expect(statuses == [200, 200, 200])
        }
        let asked = delegate.asked.withLock { $0 }
        #expect(asked.count == 1)
        #expect(asked.first?.protectionSpace.host == url.host)
        #expect(asked.first?.credential == "enrollment")
        #expect(asked.first?.user == LibraryHome.user)

        // A stored password is available in the next run and to the controller. Others are discarded.
        let silent = FixedPassword(nil)
        try await withProxy(home, passwords: silent) { proxy, controller in
            let statuses = try await Self.statuses(2, proxy, url)
            #expect(statuses == (isKept ? [200, 200] : [401, 401]))
            let space = ProtectionSpace(
                host: url.host ?? "", port: url.port, realm: kind == "basic" ? "Apache" : nil,
                authenticationMethod: kind == "basic" ? .basic : .ntlm)
            let isAnswered =
                await controller.handle(AuthenticationChallenge(protectionSpace: space)).0 == .useCredential
            #expect(isAnswered == isKept)
        }
        #expect(silent.asked.withLock { $0.count } == (isKept ? 0 : 1))
    }

    @Test func aBodyIsSentAgainWithTheSuppliedPassword() async throws {
        let delegate = FixedPassword(
            SuppliedCredential(user: LibraryHome.user, password: Password(LibraryHome.password)))
        let origins = try LibraryOrigins.shared
        let url = try #require(URL(string: "\(origins.ntlmURL)/echo"))
        try await withProxy(try Self.home(), passwords: delegate) { proxy, _ in
            let body = Data(repeating: 0x61, count: 100_000)
            let statuses = try await Self.statuses(1, proxy, url, body: body)
            #expect(statuses == [200])
        }
    }

    /// Supplies the passwords of a list in order, then none.
    private final class Answers: CredentialDelegate {
        let left: Mutex<[SuppliedCredential?]>
        let asked = Mutex(0)

        init(_ answers: SuppliedCredential?...) { left = Mutex(answers) }

        func credential(for question: CredentialQuestion) async -> SuppliedCredential? {
            asked.withLock { $0 += 1 }
            return left.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        }
    }

    @Test(arguments: ["basic", "ntlm"])
    func aStoredPasswordIsNotUsedAfterItWasRemoved(_ kind: String) async throws {
        let home = try Self.home()
        let url = try Self.url(kind)
        let delegate = Answers(
            SuppliedCredential(user: LibraryHome.user, password: Password(LibraryHome.password), isKept: true), nil)
        try await withProxy(home, passwords: delegate) { proxy, controller in
            let before = try await Self.statuses(2, proxy, url)
            #expect(before == [200, 200])
            #expect(delegate.asked.withLock { $0 } == 1)
            // The response does not wait until the password is in the vault.
            await proxy.finishStoringPasswords()

            let vault = try SealedVault(home: home.path).open { () throws in Secret(utf8: LibraryHome.passphrase) }
            try vault.update { contents in
                for name in contents.credentials.keys where name != "enrollment" {
                    _ = contents.removeCredential(named: name)
                }
            }
            controller.keeper.refresh()
            let after = try await Self.statuses(2, proxy, url)
            #expect(after == [401, 401])
            #expect(delegate.asked.withLock { $0 } == 2)
        }
    }

    @Test func concurrentRequestsShareOneQuestion() async throws {
        let delegate = FixedPassword(
            SuppliedCredential(user: LibraryHome.user, password: Password(LibraryHome.password)))
        let url = try Self.url("basic")
        try await withProxy(try Self.home(), passwords: delegate) { proxy, _ in
            let statuses = try await withThrowingTaskGroup(of: [Int].self) { group in
                for _ in 0..<8 { group.addTask { try await Self.statuses(1, proxy, url) } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(statuses == [Int](repeating: 200, count: 8))
        }
        #expect(delegate.asked.withLock { $0.count } == 1)
    }

    @Test func aSuppliedPasswordThatIsRejectedIsAskedAboutAndNotRepeated() async throws {
        let origin = try ChallengingOrigin(.basic, user: LibraryHome.user, password: LibraryHome.password)
        let site = "https://own.test.localhost:\(origin.port)"
        let home = try LibraryHome("\(site)\n", anchors: [try TestPKI.shared.originAnchor])
        try home.enroll(password: "kanarie-elsewhere")
        let delegate = FixedPassword(SuppliedCredential(user: LibraryHome.user, password: Password("wrong again")))
        let url = try #require(URL(string: "\(site)/file"))
        try await withProxy(home, passwords: delegate) { proxy, _ in
            let statuses = try await Self.statuses(1, proxy, url)
            #expect(statuses == [401])
        }
        // The stored password and the supplied one, each once.
        #expect(delegate.asked.withLock { $0.count } == 2)
        #expect(origin.log.requests.filter { $0.auth == "basic" }.count == 2)

        // The next process does not send them either.
        try await withProxy(home, passwords: delegate) { proxy, _ in
            let statuses = try await Self.statuses(2, proxy, url)
            #expect(statuses == [401, 401])
        }
        #expect(origin.log.requests.filter { $0.auth == "basic" }.count == 2)
    }

    @Test func aSuppliedPasswordIsStoredOnlyAfterItWasAccepted() async throws {
        let origin = try ChallengingOrigin(.basic, user: LibraryHome.user, password: LibraryHome.password)
        let site = "https://own.test.localhost:\(origin.port)"
        let home = try LibraryHome(
            "\(site)\n", credentials: ["enrollment": (LibraryHome.user, "kanarie-elsewhere")],
            anchors: [try TestPKI.shared.originAnchor])
        let delegate = Answers(
            SuppliedCredential(user: LibraryHome.user, password: Password("wrong again"), isKept: true),
            SuppliedCredential(user: LibraryHome.user, password: Password(LibraryHome.password), isKept: true))
        let url = try #require(URL(string: "\(site)/echo"))
        try await withProxy(home, passwords: delegate) { proxy, _ in
            let statuses = try await Self.statuses(2, proxy, url)
            #expect(statuses == [200, 200])
        }
        let vault = try SealedVault(home: home.path).open { () throws in Secret(utf8: LibraryHome.passphrase) }
        let stored = vault.contents.credentials.filter { $0.key != "enrollment" }
        #expect(stored.map(\.value.password.utf8Text) == [LibraryHome.password])
        #expect(stored.keys.allSatisfy { $0.hasPrefix("https_own.test.localhost_\(origin.port)_") })
    }

    /// The site has a password of its own, which is replaced by that of its line.
    @Test func aStoredPasswordThatIsRejectedGivesWayToThatOfTheLine() async throws {
        let origin = try ChallengingOrigin(.basic, user: LibraryHome.user, password: LibraryHome.password)
        let site = "https://own.test.localhost:\(origin.port)"
        let home = try LibraryHome(
            "\(site)\n",
            credentials: [
                "enrollment": (LibraryHome.user, LibraryHome.password),
                "https_own.test.localhost_\(origin.port)": (LibraryHome.user, "stale"),
            ], anchors: [try TestPKI.shared.originAnchor])
        let url = try #require(URL(string: "\(site)/echo"))
        try await withProxy(home, passwords: FixedPassword(nil)) { proxy, _ in
            let statuses = try await Self.statuses(3, proxy, url)
            #expect(statuses == [401, 200, 200])
        }
    }

    /// Never answers, and records whether its task was cancelled.
    private final class SilentPerson: CredentialDelegate {
        let isAsked = Mutex(false)
        let wasCancelled = Mutex(false)

        func credential(for question: CredentialQuestion) async -> SuppliedCredential? {
            isAsked.withLock { $0 = true }
            do {
                try await Task.sleep(for: .seconds(3600))
            } catch {
                wasCancelled.withLock { $0 = true }
            }
            return nil
        }
    }

    @Test func aStoppingProxyDoesNotWaitForTheDelegate() async throws {
        let person = SilentPerson()
        let url = try Self.url("basic")
        let began = Mutex(ContinuousClock.now)
        try await withProxy(try Self.home(), passwords: person) { proxy, _ in
            let configuration = try await URLSessionConfiguration.ephemeral.answering(through: proxy)
            let session = URLSession(configuration: configuration)
            Task { _ = try? await session.data(from: url) }
            let isAsked = try await eventually { person.isAsked.withLock { $0 } }
            #expect(isAsked)
            began.withLock { $0 = ContinuousClock.now }
        }
        #expect(ContinuousClock.now - began.withLock { $0 } < .seconds(9))
        #expect(person.wasCancelled.withLock { $0 })
    }
}
