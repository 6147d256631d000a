// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Synchronization
import Testing

@testable import Countersign

/// An app whose provider requires a protection policy.
@Suite(.waiting) struct LibraryComplianceTests {
    private final class Delegate: ComplianceDelegate {
        let heard = Mutex<[String]>([])
        func remediated(_ result: ComplianceResult) async { heard.withLock { $0.append("\(result.status)") } }
        func saveState(before result: ComplianceResult) async { heard.withLock { $0.append("save") } }
    }

    private static func profile(_ service: ComplianceServer) -> [String: any Sendable] {
        let compliance: [String: any Sendable] = ["url": service.url]
        return ["compliance_service": compliance]
    }

    @Test func anAppRemediatesBeforeTheFirstToken() async throws {
        let service = try ComplianceServer(["restart": true])
        let home = try EnrollmentHome(["policy": service.policy])
        let agent = SignInAgent.custom(EnrollmentHome.Browser(home))
        let enrollment = try home.enrollment(Self.profile(service))
        #expect(enrollment.profile.complianceService == service.url)
        let error = await #expect(throws: ChallengeError.self) { try await enrollment.signIn(with: agent) }
        #expect(error?.code == .protectionPolicyRequired && error?.accountID == "jdoe@acme.example")

        let delegate = Delegate()
        let manager = ComplianceManager(home.signIns, delegate: delegate, languages: ["de-CH", "x\r\ny"])
        let silent = try await manager.remediate(accountID: "jdoe@acme.example", silent: true, with: agent)
        #expect(silent.status == .interactionRequired && silent.title == "Anmelden" && !silent.message.isEmpty)
        #expect(silent.page?.hasPrefix("http://127.0.0.1:\(service.port)/page") == true)
        let done = try await manager.remediate(accountID: "jdoe@acme.example", silent: false, with: agent)
        #expect(done.status == .compliant && done.title == "Alles bereit")
        #expect(delegate.heard.withLock { $0 } == ["interactionRequired", "save", "compliant"])
        #expect(service.requests.first { $0.action == "remediate" }?.language == "de-CH")
        #expect(try await enrollment.signIn(with: agent).account == "jdoe@acme.example")

        // Now the account has its identifier, and its sign-in gets a new token.
        let token = try home.vault.tokens["work"]
        let again = try await manager.remediate(accountID: "object-1", silent: false, with: agent)
        #expect(again.status == .compliant && again.signIn == "work" && again.tokenFailure == nil)
        #expect(try home.vault.tokens["work"]?.token != token?.token)
        await #expect(throws: ChallengeError.self) {
            try await manager.remediate(accountID: "somebody", silent: true, with: agent)
        }
    }

    /// The page is closed only when the other call has been made.
    private final class Waiting: UserAgent {
        let home: EnrollmentHome
        let isCalled = Mutex(false)
        init(_ home: EnrollmentHome) { self.home = home }
        func show(_ page: SignInPage) async throws {
            while !isCalled.withLock({ $0 }) { await Task.yield() }
            try await EnrollmentHome.Browser(home).show(page)
        }
    }

    @Test func aRepeatedCallForAnAccountJoinsTheFirst() async throws {
        let service = try ComplianceServer()
        let home = try EnrollmentHome()
        try await home.signIn(Self.profile(service))
        let delegate = Delegate()
        let manager = ComplianceManager(home.signIns, delegate: delegate)
        let agent = Waiting(home)
        async let first = manager.remediate(accountID: "object-1", silent: false, with: .custom(agent))
        while service.requests.isEmpty { await Task.yield() }
        async let second = manager.remediate(accountID: "object-1", silent: false, with: .custom(agent))
        agent.isCalled.withLock { $0 = true }
        let results = try await [first, second]
        #expect(results[0] == results[1] && results[0].status == .compliant)
        #expect(service.requests.count { $0.action == "remediate" } == 1)
        #expect(delegate.heard.withLock { $0 } == ["compliant"])
    }

    /// Remediates again, as the documentation of `interactionRequired` says.
    private final class Persistent: ComplianceDelegate {
        let home: EnrollmentHome
        let manager = Mutex<ComplianceManager?>(nil)
        let heard = Mutex<[ComplianceResult.Status]>([])
        init(_ home: EnrollmentHome) { self.home = home }
        func remediated(_ result: ComplianceResult) async {
            heard.withLock { $0.append(result.status) }
            guard result.status == .interactionRequired, let manager = manager.withLock({ $0 }) else { return }
            _ = try? await manager.remediate(
                accountID: result.accountID, silent: false, with: .custom(EnrollmentHome.Browser(home)))
        }
    }

    @Test(.timeLimit(.minutes(15))) func aDelegateMayRemediateAgain() async throws {
        let service = try ComplianceServer()
        let home = try EnrollmentHome()
        try await home.signIn(Self.profile(service))
        let delegate = Persistent(home)
        let manager = ComplianceManager(home.signIns, delegate: delegate)
        delegate.manager.withLock { $0 = manager }
        _ = try await manager.remediate(accountID: "object-1", silent: true)
        #expect(delegate.heard.withLock { $0 } == [.interactionRequired, .compliant])
    }

    // MARK: Cancelling

    /// A remediation whose page is shown and stays open.
    private static func showing(
        _ home: EnrollmentHome, _ manager: ComplianceManager
    ) async throws -> (Task<ComplianceResult, any Error>, PatientAgent) {
        let agent = PatientAgent()
        let call = Task { try await manager.remediate(accountID: "object-1", silent: false, with: .custom(agent)) }
        try #require(try await eventually { agent.isShowing })
        return (call, agent)
    }

    @Test(.timeLimit(.minutes(15))) func aCallThatIsCancelledEndsAtOnceAndTheRemediationWithTheLast() async throws {
        let service = try ComplianceServer()
        let home = try EnrollmentHome()
        try await home.signIn(Self.profile(service))
        let delegate = Delegate()
        let manager = ComplianceManager(home.signIns, delegate: delegate)
        let (first, agent) = try await Self.showing(home, manager)
        let second = Task { try await manager.remediate(accountID: "object-1", silent: false) }
        try #require(try await eventually { manager.callerCount == 2 })
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(!agent.hasEnded && manager.callerCount == 1)
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(try await eventually { agent.hasEnded })
        #expect(manager.callerCount == 0 && delegate.heard.withLock { $0 } == [])

        // The next one is a new remediation.
        let browser = SignInAgent.custom(EnrollmentHome.Browser(home))
        let result = try await manager.remediate(accountID: "object-1", silent: false, with: browser)
        #expect(result.status == .compliant)
        #expect(delegate.heard.withLock { $0 } == ["compliant"])
    }

    @Test(.timeLimit(.minutes(15))) func aPageThatIsOpenKeepsNothingElseWaiting() async throws {
        let service = try ComplianceServer()
        let home = try EnrollmentHome()
        try await home.signIn(Self.profile(service))
        let (call, agent) = try await Self.showing(home, ComplianceManager(home.signIns))
        #expect(try await home.signIns.all().map(\.name) == ["work"])
        let other = try home.enrollment(["name": "other", "sites": ["https://other.corp.example"]])
        #expect(try await other.signIn(with: .custom(EnrollmentHome.Browser(home))).name == "other")
        try await home.signIns.signOut("other")
        #expect(!agent.hasEnded)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(try await eventually { agent.hasEnded })
    }

    // MARK: The page

    /// Opens the page, unless told otherwise, and then the person closes it.
    private struct Closing: UserAgent {
        let home: EnrollmentHome
        let opens: Bool
        func show(_ page: SignInPage) async throws {
            if opens { try await EnrollmentHome.Browser(home).show(page) }
            throw CancellationError()
        }
    }

    @Test(.timeLimit(.minutes(15)), arguments: [(true, ComplianceResult.Status.compliant), (false, .userCancelled)])
    func aPersonWhoClosesThePageMayBeDone(opens: Bool, status: ComplianceResult.Status) async throws {
        let service = try ComplianceServer()
        let home = try EnrollmentHome()
        try await home.signIn(Self.profile(service))
        let agent = SignInAgent.custom(Closing(home: home, opens: opens))
        let result = try await ComplianceManager(home.signIns).remediate(
            accountID: "object-1", silent: false, with: agent)
        #expect(result.status == status)
        #expect(try home.vault.compliance["work"]?.isCompliant != false)
    }

    /// Before the first token, and after it.
    @Test(.timeLimit(.minutes(15)), arguments: [false, true])
    func anAgentThatFailsIsNotAPersonWhoCancels(isSignedIn: Bool) async throws {
        let service = try ComplianceServer()
        let home = try EnrollmentHome(isSignedIn ? [:] : ["policy": service.policy])
        if isSignedIn {
            try await home.signIn(Self.profile(service))
        } else {
            let enrollment = try home.enrollment(Self.profile(service))
            await #expect(throws: ChallengeError.self) {
                try await enrollment.signIn(with: .custom(EnrollmentHome.Browser(home)))
            }
        }
        let agent = SignInAgent.custom(PatientAgent(throwing: HarnessError("no window")))
        let account = isSignedIn ? "object-1" : "jdoe@acme.example"
        let error = await #expect(throws: ChallengeError.self) {
            try await ComplianceManager(home.signIns).remediate(accountID: account, silent: false, with: agent)
        }
        #expect(error?.code == .userAgentFailed && error?.description.contains("no window") == true)
    }
}
