// SPDX-License-Identifier: Apache-2.0

import Synchronization
import CountersignTestOrigin
import Testing

@testable import Countersign

import struct CountersignChallenges.Breaker

/// A credential that has not been accepted yet is used by one caller at a time, and never again after a rejection.
@Suite(.waiting) struct LibraryOneAtATimeTests {
    private typealias Server = LibraryExchangeTests.Server
    private typealias Given = (ChallengeDisposition, Credential?)
    private static let site = LibraryExchangeTests.site
    private static let basic = ["Basic realm=\"r\""]

    private static func controller(
        _ sites: String = site, limit: Duration = BreakerPermit.limit
    ) throws -> ChallengeController {
        let controller = try LibraryHome(sites).controller()
        controller.firstTryLimit.withLock { $0 = limit }
        return controller
    }

    /// An exchange that has asked, and its challenge.
    private static func asking(
        _ controller: ChallengeController
    ) throws -> (ChallengeExchange, AuthenticationChallenge) {
        var exchange = try LibraryExchangeTests.exchange(controller)
        _ = exchange.started()
        let action = exchange.responseReceived(status: 401, challenges: basic)
        return (exchange, try #require(LibraryExchangeTests.question(action)))
    }

    /// An exchange that has sent its answer.
    private static func trying(_ controller: ChallengeController) async throws -> ChallengeExchange {
        var (exchange, question) = try asking(controller)
        let (disposition, credential) = await controller.handle(question)
        guard case .send(_?) = exchange.dispositionReceived(disposition, credential) else {
            throw HarnessError("no answer was sent")
        }
        return exchange
    }

    /// Waits until `count` callers wait for the first use of the enrolled credential to end.
    private static func waiting(_ count: Int, _ controller: ChallengeController) async throws {
        let key = try #require(try controller.key())
        let doWait = try await eventually { controller.breaker.waiting(for: key) == count }
        try #require(doWait)
    }

    private static func code(_ action: ChallengeExchange.Action) -> ChallengeError.Code? {
        if case .deliver(.handedBack(let error)) = action { error.code } else { nil }
    }

    // MARK: Exchanges

    @Test func aSecondExchangeWaitsForTheOutcomeOfTheFirst() async throws {
        let controller = try Self.controller()
        var first = try await Self.trying(controller)
        let (_, question) = try Self.asking(controller)
        let patient = Task { await controller.handle(question) }
        try await Self.waiting(1, controller)
        #expect(first.responseReceived(status: 401, challenges: Self.basic) == .deliver(.rejected))
        #expect(await patient.value.0 == .performDefaultHandling)
    }

    @Test func aCancelledExchangeStopsWaiting() async throws {
        let controller = try Self.controller()
        let first = try await Self.trying(controller)
        var (second, question) = try Self.asking(controller)
        let given = Mutex<Given?>(nil)
        let waiting = Task { [question] in
            let answer = await controller.handle(question)
            given.withLock { $0 = answer }
        }
        try await Self.waiting(1, controller)
        waiting.cancel()
        try #require(try await eventually { given.withLock { $0 != nil } }, "a cancelled task waits on")
        let answer = try #require(given.withLock { $0 })
        #expect(answer.0 == .cancelAuthenticationChallenge)
        #expect(second.dispositionReceived(answer.0, answer.1) == .fail(reason: "the challenge was cancelled"))
        withExtendedLifetime(first) {}
    }

    @Test func aReleasedExchangeLetsTheNextOneTry() async throws {
        let controller = try Self.controller()
        do {
            let (dropped, question) = try Self.asking(controller)
            #expect(await controller.handle(question).0 == .useCredential)
            withExtendedLifetime(dropped) {}
        }
        var exchange = try LibraryExchangeTests.exchange(controller)
        var server = Server(.basic)
        let actions = try await LibraryExchangeTests.drive(&exchange, &server) { await controller.handle($0) }
        #expect(actions.last == .deliver(.accepted))
    }

    /// The server's verdict on the answer is unknown.
    @Test func anExchangeThatIsDroppedBeforeTheResponseCounts() async throws {
        let controller = try Self.controller()
        for _ in 1...2 { _ = try await Self.trying(controller) }
        let (third, question) = try Self.asking(controller)
        #expect(await controller.handle(question).0 == .performDefaultHandling)
        withExtendedLifetime(third) {}
    }

    @Test func anUnfinishedAnswerThatExpiresCountsOnce() async throws {
        let controller = try Self.controller(limit: .milliseconds(100))
        let key = try #require(try controller.key())
        do {
            let kept = try await Self.trying(controller)
            try #require(try await eventually { !controller.breaker.isTried(key) })
            #expect(controller.breaker.record(of: key)?.unaccepted.count == 1)
            withExtendedLifetime(kept) {}
        }
        #expect(controller.breaker.record(of: key)?.unaccepted.count == 1)
    }

    /// A gateway responds for a server that takes long, perhaps because it delays the 401 to a wrong password.
    @Test(arguments: [502, 503, 504])
    func aGatewaysErrorDoesNotAcceptAnAnswer(status: Int) async throws {
        let controller = try Self.controller()
        let key = try #require(try controller.key())
        var exchange = try await Self.trying(controller)
        #expect(exchange.responseReceived(status: status, challenges: []) == .deliver(.accepted))
        let record = try #require(controller.breaker.record(of: key))
        #expect(record.acceptedAt == nil && record.attempts.isEmpty && record.unaccepted.count == 1)
    }

    @Test func anExchangeIsTheRequestThatTheProxyKnows() async throws {
        let controller = try Self.controller()
        let url = "https://GIT.corp.example:443/repository?x=1#part"
        var exchange = try ChallengeExchange(url: url, method: "PUT", serverIsTrusted: true, controller: controller)
        _ = exchange.started()
        let question = try #require(
            LibraryExchangeTests.question(exchange.responseReceived(status: 401, challenges: Self.basic)))
        let (disposition, credential) = await controller.handle(question)
        _ = exchange.dispositionReceived(disposition, credential)
        #expect(exchange.responseReceived(status: 200, challenges: []) == .deliver(.accepted))
        let key = try #require(try controller.key())
        let tag = Breaker.RequestTag(method: "PUT", target: "/repository?x=1")
        #expect(controller.breaker.record(of: key)?.accepted == [tag])
    }

    @Test func anUnfinishedExchangeMakesOthersWaitOnlyForALimitedTime() async throws {
        let controller = try Self.controller(limit: .seconds(1))
        var kept = try await Self.trying(controller)
        let (other, question) = try Self.asking(controller)
        #expect(await controller.handle(question).0 == .useCredential)
        // Its outcome still counts.
        #expect(kept.responseReceived(status: 401, challenges: Self.basic) == .deliver(.rejected))
        #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.basic)) }
        withExtendedLifetime(other) {}
    }

    @Test func aChallengeThatWaitsTooLongIsHandedBack() async throws {
        let controller = try Self.controller()
        controller.patience.withLock { $0 = .milliseconds(300) }
        let key = try #require(try controller.key())
        // As the proxy does while an origin does not respond.
        #expect(controller.breaker.requestAtOnce(key) == .go)
        let (exchange, question) = try Self.asking(controller)
        #expect(await controller.handle(question).0 == .performDefaultHandling)
        let disposition = await withCheckedContinuation { continuation in
            let will = controller.handleChallenge(AuthenticationChallenge(protectionSpace: .git(.basic))) { said, _ in
                continuation.resume(returning: said)
            }
            #expect(will)
        }
        #expect(disposition == .performDefaultHandling)
        withExtendedLifetime(exchange) {}
    }

    // MARK: Only permitted credentials are sent

    @Test func aRejectedPasswordThatTheUserTypedDoesNotCountAgainstTheEnrolledOne() async throws {
        let controller = try Self.controller()
        var (exchange, question) = try Self.asking(controller)
        let events = controller.events
        #expect(await controller.handle(question).0 == .useCredential)
        _ = exchange.dispositionReceived(.useCredential, .password(user: "jdoe", Password("typed")))
        // The enrolled credential is not in use.
        let (other, second) = try Self.asking(controller)
        #expect(await controller.handle(second).0 == .useCredential)
        #expect(exchange.responseReceived(status: 401, challenges: Self.basic) == .deliver(.rejected))
        #expect(try controller.canHandle(.git(.basic)))
        #expect(await controller.told(events).count == 2)
        withExtendedLifetime(other) {}
    }

    @Test func anAcceptedPasswordOfTheProgramDoesNotCountForTheEnrolledOne() async throws {
        let controller = try Self.controller()
        var (exchange, question) = try Self.asking(controller)
        #expect(await controller.handle(question).0 == .useCredential)
        _ = exchange.dispositionReceived(.useCredential, .password(user: "jdoe", Password("typed")))
        #expect(exchange.responseReceived(status: 200, challenges: []) == .deliver(.accepted))
        let first = try await Self.trying(controller)
        let key = try #require(try controller.key())
        #expect(controller.breaker.isTried(key))
        withExtendedLifetime(first) {}
    }

    @Test func aReusedCredentialIsNotSentAfterItsRejection() async throws {
        let controller = try Self.controller()
        var (first, question) = try Self.asking(controller)
        let (disposition, kept) = await controller.handle(question)
        _ = first.dispositionReceived(disposition, kept)
        #expect(first.responseReceived(status: 401, challenges: Self.basic) == .deliver(.rejected))
        for _ in 0..<2 {
            var (again, _) = try Self.asking(controller)
            #expect(Self.code(again.dispositionReceived(.useCredential, kept)) == .nothingToAnswerWith)
        }
    }

    @Test func aReusedCredentialIsNotSentWhileAnotherExchangeTriesIt() async throws {
        let controller = try Self.controller()
        var (first, question) = try Self.asking(controller)
        let (disposition, kept) = await controller.handle(question)
        _ = first.dispositionReceived(disposition, kept)
        var (second, _) = try Self.asking(controller)
        #expect(Self.code(second.dispositionReceived(.useCredential, kept)) == .nothingToAnswerWith)
        // Once it has been accepted, it is sent, and its outcome is reported.
        #expect(first.responseReceived(status: 200, challenges: []) == .deliver(.accepted))
        var (third, _) = try Self.asking(controller)
        guard case .send(_?) = third.dispositionReceived(.useCredential, kept) else {
            Issue.record("the credential is not sent")
            return
        }
        #expect(third.responseReceived(status: 401, challenges: Self.basic) == .deliver(.rejected))
        #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.basic)) }
    }

    // MARK: Changes during a wait

    enum Change: CaseIterable { case siteRemoved, switchedOff, passwordChanged, nothing }

    @Test(arguments: Change.allCases, [true, false])
    func anAnswerReflectsTheHomeAtTheEndOfTheWait(_ change: Change, _ isDialogue: Bool) async throws {
        let home = try LibraryHome(Self.site)
        let controller = try home.controller()
        var first: ChallengeExchange? = try await Self.trying(controller)
        let (exchange, question) = try Self.asking(controller)
        let asked = isDialogue ? question : AuthenticationChallenge(protectionSpace: .git(.basic))
        let patient = Task { await controller.handle(asked) }
        try await Self.waiting(1, controller)
        switch change {
        case .siteRemoved: try home.write(sites: "https://other.example\n")
        case .switchedOff: controller.isIntegratedAuthenticationEnabled = false
        case .passwordChanged: try home.enroll(password: "changed")
        case .nothing: break
        }
        #expect(first != nil)
        first = nil
        let (disposition, credential) = await patient.value
        switch change {
        case .siteRemoved, .switchedOff:
            #expect(disposition == .performDefaultHandling)
            #expect(credential == nil)
        case .passwordChanged: #expect(credential == .password(user: "jdoe", Password("changed")))
        case .nothing: #expect(credential == .password(user: "jdoe", Password(LibraryHome.password)))
        }
        withExtendedLifetime(exchange) {}
    }

    // MARK: Callers without an exchange

    private static let asked = AuthenticationChallenge(protectionSpace: .git(.basic))
    private static let failed = AuthenticationChallenge(protectionSpace: .git(.basic), previousFailureCount: 1)

    private final class Count: Sendable { let value = Mutex(0) }

    @Test func aWrongPasswordIsTriedOnceByManyConcurrentCallers() async throws {
        let controller = try Self.controller()
        let key = try #require(try controller.key())
        let given = Count()
        let tries = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    guard await controller.handle(Self.asked).0 == .useCredential else { return 0 }
                    given.value.withLock { $0 += 1 }
                    // It fails once every caller has the credential or waits for it.
                    _ = try? await eventually {
                        given.value.withLock { $0 } + controller.breaker.waiting(for: key) == 20
                    }
                    _ = await controller.handle(Self.failed)
                    return 1
                }
            }
            return await group.reduce(0, +)
        }
        #expect(tries == 1)
    }

    @Test(arguments: [true, false])
    func theOthersContinueAsSoonAsSuccessIsReported(_ isProposed: Bool) async throws {
        let controller = try Self.controller()
        let (_, credential) = await controller.handle(Self.asked)
        let others = (0..<9).map { _ in Task { await controller.handle(Self.asked).0 } }
        try await Self.waiting(9, controller)
        // The success of another password has no effect.
        controller.answerAccepted(
            AuthenticationChallenge(
                protectionSpace: .git(.basic), proposedCredential: .password(user: "jdoe", Password("typed"))))
        controller.answerAccepted(
            AuthenticationChallenge(
                protectionSpace: ProtectionSpace(host: "other.example", authenticationMethod: .basic)))
        try await Self.waiting(9, controller)
        controller.answerAccepted(
            AuthenticationChallenge(
                protectionSpace: .git(.basic), proposedCredential: isProposed ? credential : nil))
        for other in others { #expect(await other.value == .useCredential) }
        let key = try #require(try controller.key())
        #expect(controller.breaker.requestAtOnce(key) == .go)
        #expect(!controller.breaker.isTried(key))
    }

    @Test func withoutAReportedFailureTheCredentialIsGivenToAllCallersInTheEnd() async throws {
        let controller = try Self.controller(limit: .seconds(1))
        let began = ContinuousClock.now
        #expect(await controller.handle(Self.asked).0 == .useCredential)
        let others = (0..<5).map { _ in Task { await controller.handle(Self.asked).0 } }
        for other in others { #expect(await other.value == .useCredential) }
        #expect(ContinuousClock.now - began > .milliseconds(500))
        // An exchange, which will report the outcome, uses it as for the first time.
        let first = try await Self.trying(controller)
        let key = try #require(try controller.key())
        #expect(controller.breaker.isTried(key))
        withExtendedLifetime(first) {}
        // A late failure still counts.
        _ = await controller.handle(Self.failed)
        #expect(await controller.handle(Self.asked).0 == .performDefaultHandling)
    }

    @Test(arguments: [true, false])
    func aCallerWaitsForTheProxysAttempt(_ isAccepted: Bool) async throws {
        let controller = try Self.controller()
        let key = try #require(try controller.key())
        #expect(controller.breaker.requestAtOnce(key) == .go)
        let caller = Task { await controller.handle(Self.asked).0 }
        try await Self.waiting(1, controller)
        controller.breaker.ended(key, isAccepted ? .accepted : .rejected)
        #expect(await caller.value == (isAccepted ? .useCredential : .performDefaultHandling))
    }

    @Test func aFailureOfACredentialThatWasNotGivenOutIsIgnored() async throws {
        let controller = try Self.controller("https://*.corp.example\n")
        let (_, credential) = await controller.handle(Self.asked)
        // Given out for another site than the one that rejected it, or for an unlisted one.
        for number in 0..<10 {
            for domain in ["corp.example", "elsewhere.example"] {
                let space = ProtectionSpace(host: "h\(number).\(domain)", authenticationMethod: .basic)
                let challenge = AuthenticationChallenge(
                    protectionSpace: space, proposedCredential: credential, previousFailureCount: 1)
                #expect(await controller.handle(challenge).0 == .performDefaultHandling)
            }
        }
        // The permit of the first call, while it is open.
        #expect(controller.breaker.count <= 1)
    }

    @Test func aFailureAtAnUnlistedSiteIsReportedAsSuch() async throws {
        let controller = try Self.controller()
        let events = controller.events
        for space in [
            ProtectionSpace(host: "other.example", authenticationMethod: .basic), .git(.other("Hawk")), .git(.basic),
        ] {
            _ = await controller.handle(AuthenticationChallenge(protectionSpace: space, previousFailureCount: 1))
        }
        let errors = await controller.told(events).compactMap { event -> ChallengeError? in
            if case .handedBack(_, let error) = event { error } else { nil }
        }
        #expect(errors.map(\.check) == [.site, .method, .credential])
        #expect(errors.allSatisfy { $0.hint != nil })
        #expect(errors.map(\.listLine) == [nil, "AllowedSites/test.sites:1", "AllowedSites/test.sites:1"])
    }
}
