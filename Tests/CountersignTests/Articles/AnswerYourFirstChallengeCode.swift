// SPDX-License-Identifier: Apache-2.0

import Countersign
import Foundation
import Synchronization
import Testing

/// The code of the article "Answer your first challenge", and of the module's overview.
struct AnswerYourFirstChallengeCode {
    private let said = Said()

    /// What an app does with an answer.
    private final class Said: Sendable {
        private let lines = Mutex<[String]>([])
        func add(_ line: String) { lines.withLock { $0.append(line) } }
        var all: [String] { lines.withLock { $0 } }
    }

    private func send(_ user: String, _ password: String?) { said.add("\(user):\(password ?? "")") }
    private func send(_ field: String) { said.add(field) }
    private func deliverChallengeUnchanged() { said.add("unchanged") }

    // MARK: The article

    func openHome() throws(ChallengeError) -> ChallengeController {
        try ChallengeController(home: URL(filePath: "home")) { Password("the passphrase that the user typed") }
    }

    private func check(_ controller: ChallengeController) {
        func print(_ text: String) { said.add(text) }
        do {
            let space = ProtectionSpace(host: "git.corp.example", authenticationMethod: .basic)
            if try controller.canHandle(space) { print("there is a credential") }
        } catch {
            print(error.detail)  // Basic is not among the site's answer=
            print(error.listLine ?? "")  // AllowedSites/work.sites:3
            print(error.hint ?? "")  // write answer=ntlm,basic to permit it
        }
    }

    private func answer(_ controller: ChallengeController, _ sslContext: OpaquePointer) async throws {
        let space = ProtectionSpace(host: "git.corp.example", authenticationMethod: .basic)
        let challenge = AuthenticationChallenge(protectionSpace: space)
        switch await controller.handle(challenge) {
        case (.useCredential, .password(let user, let password)?):
            send(user, password.text)
        case (.useCredential, .token(let token)?):
            send("Bearer \(token.text)")
        case (.useCredential, .identity(let identity)?):
            try identity.install(into: sslContext)
        default:
            deliverChallengeUnchanged()
        }
        controller.answerAccepted(challenge)
    }

    private func answer(
        _ challenge: AuthenticationChallenge, of controller: ChallengeController,
        _ answer: @escaping @Sendable (ChallengeDisposition, Credential?) -> Void
    ) {
        if !controller.handleChallenge(challenge, completionHandler: answer) {
            answer(.performDefaultHandling, nil)
        }
    }

    private func report(
        _ credential: Credential, rejectedAt space: ProtectionSpace, to controller: ChallengeController
    ) async -> ChallengeDisposition {
        let again = AuthenticationChallenge(
            protectionSpace: space, proposedCredential: credential, previousFailureCount: 1)
        let (disposition, _) = await controller.handle(again)
        return disposition
    }

    private func observe(_ controller: ChallengeController) {
        let said = said
        @Sendable func log(_ text: String) { said.add(text) }
        let events = controller.events
        Task {
            for await event in events { log("\(event)") }
        }
    }

    private func overview() async throws -> (ChallengeDisposition, Credential?) {
        let controller = try ChallengeController(home: URL(filePath: "/home/jdoe/.config/countersign"))
        let space = ProtectionSpace(host: "git.corp.example", realm: "Git", authenticationMethod: .basic)
        try controller.canHandle(space)
        let (disposition, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: space))
        return (disposition, credential)
    }

    // MARK: Tests

    private static func controller(_ options: String) throws -> ChallengeController {
        try LibraryHome("https://git.corp.example \(options)\n").controller()
    }

    private static func space() -> ProtectionSpace {
        ProtectionSpace(host: "git.corp.example", authenticationMethod: .basic)
    }

    /// An OpenSSL context is needed for certificates only.
    private static func noContext() throws -> OpaquePointer { try #require(OpaquePointer(bitPattern: 8)) }

    @Test func aHomeThatIsMissingIsAnError() async {
        #expect(throws: ChallengeError.self) { try openHome() }
        await #expect(throws: ChallengeError.self) { try await overview() }
    }

    @Test func aChallengeIsAnsweredWithThePassword() async throws {
        let controller = try Self.controller("answer=basic")
        check(controller)
        try await answer(controller, Self.noContext())
        #expect(said.all == ["there is a credential", "\(LibraryHome.user):\(LibraryHome.password)"])
    }

    @Test func aChallengeThatIsNotPermittedIsDeliveredWithTheLineAndAHint() async throws {
        let controller = try Self.controller("answer=ntlm")
        check(controller)
        try await answer(controller, Self.noContext())
        #expect(said.all.count == 4 && said.all.last == "unchanged")
        #expect(said.all[1] == "AllowedSites/test.sites:1")
        #expect(said.all[2].contains("answer=ntlm,basic"))
    }

    @Test(arguments: [true, false]) func aCompletionHandlerIsCalledOnce(_ isEnabled: Bool) async throws {
        let controller = try Self.controller("answer=basic")
        controller.isIntegratedAuthenticationEnabled = isEnabled
        let disposition = await withCheckedContinuation { continuation in
            answer(AuthenticationChallenge(protectionSpace: Self.space()), of: controller) { disposition, _ in
                continuation.resume(returning: disposition)
            }
        }
        #expect(disposition == (isEnabled ? .useCredential : .performDefaultHandling))
    }

    @Test func aFailureIsReportedAndSeenAsAnEvent() async throws {
        let controller = try Self.controller("answer=basic")
        observe(controller)
        let (_, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: Self.space()))
        let used = try #require(credential)
        #expect(await report(used, rejectedAt: Self.space(), to: controller) == .performDefaultHandling)
        let isSeen = try await eventually { said.all.contains { $0.contains("rejected") } }
        #expect(isSeen, "\(said.all)")
    }
}
