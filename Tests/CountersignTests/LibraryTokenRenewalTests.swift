// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import Countersign

/// Access tokens of sign-ins that the library renews: before they expire, and once if a site has called them invalid.
@Suite(.waiting) struct LibraryTokenRenewalTests {
    private static let challenge = #"Bearer realm="r""#
    private static let invalid = #"Bearer realm="r", error="invalid_token""#

    /// A person who has signed in, and a controller for the home.
    private static func signedIn(
        _ control: [String: any Sendable]
    ) async throws -> (home: EnrollmentHome, controller: ChallengeController) {
        let home = try EnrollmentHome(control)
        try await home.signIn()
        return (home, try ChallengeController(home: URL(filePath: home.path)))
    }

    private static func refreshes(_ home: EnrollmentHome) -> Int {
        home.provider.requests.count { $0.hasPrefix("POST /token refresh_token") }
    }

    private static func token(_ answer: (ChallengeDisposition, Credential?)) -> String? {
        if case (.useCredential, .token(let token)?) = answer { token.text } else { nil }
    }

    private static func question(_ failures: Int = 0, _ proposed: Credential? = nil) -> AuthenticationChallenge {
        AuthenticationChallenge(
            protectionSpace: .git(.bearer), proposedCredential: proposed, previousFailureCount: failures)
    }

    private struct Unasked: Error { let action: ChallengeExchange.Action }

    private static func asked(_ action: ChallengeExchange.Action) throws -> AuthenticationChallenge {
        guard case .ask(let question) = action else { throw Unasked(action: action) }
        return question
    }

    private static func exchange(_ controller: ChallengeController) throws -> ChallengeExchange {
        try ChallengeExchange(
            url: "https://git.corp.example/repository", serverIsTrusted: true, controller: controller)
    }

    // MARK: Before it expires

    @Test func anExpiredTokenIsRenewedBeforeItIsGivenOut() async throws {
        let (home, controller) = try await Self.signedIn(["lifetime": 0, "token": ["first", "second"]])
        try home.provider.change(["lifetime": 3600, "token": ["second"]])
        #expect(Self.token(await controller.handle(Self.question())) == "second")
        #expect(Self.token(await controller.handle(Self.question())) == "second")
        #expect(Self.refreshes(home) == 1)
        #expect(try home.vault.tokens["work"]?.token.utf8Text == "second")
    }

    @Test func manyCallersShareOneRenewal() async throws {
        let (home, controller) = try await Self.signedIn(["lifetime": 0])
        try home.provider.change(["lifetime": 3600, "token": ["second"], "hold": ["refresh_token": 1]])
        // The site is known, so that no caller waits for the outcome of another.
        let tokens = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    let question = Self.question()
                    let token = Self.token(await controller.handle(question))
                    controller.answerAccepted(question)
                    return token
                }
            }
            return await group.reduce(into: Set<String?>()) { $0.insert($1) }
        }
        #expect(tokens == ["second"])
        #expect(Self.refreshes(home) == 1)
    }

    @Test func aTokenThatCannotBeRenewedIsNotGivenOut() async throws {
        let (home, controller) = try await Self.signedIn(["lifetime": 0])
        try home.provider.change(["error": "invalid_grant"])
        let events = controller.events
        #expect(await controller.handle(Self.question()).0 == .performDefaultHandling)
        guard case .handedBack(_, let error?)? = await controller.told(events).first else {
            Issue.record("there is no event")
            return
        }
        #expect(error.code == .nothingToAnswerWith && error.detail.contains("invalid_grant"), "\(error)")
        let signIn = try #require(try await home.signIns.all().first)
        #expect(signIn.endReason?.contains("invalid_grant") == true && signIn.hasEnded(at: signIn.signedIn))
    }

    // MARK: invalid_token

    @Test func aRevokedTokenIsRenewedOnceInAnExchange() async throws {
        let (home, controller) = try await Self.signedIn(["token": ["first", "second", "third"]])
        var exchange = try Self.exchange(controller)
        _ = exchange.started()
        let first = try Self.asked(exchange.responseReceived(status: 401, challenges: [Self.challenge]))
        let (disposition, credential) = await controller.handle(first)
        #expect(Self.token((disposition, credential)) == "first")
        _ = exchange.dispositionReceived(disposition, credential)

        let second = try Self.asked(exchange.responseReceived(status: 401, challenges: [Self.invalid]))
        #expect(second.previousFailureCount == 1)
        let renewed = await controller.handle(second)
        #expect(Self.token(renewed) == "second")
        guard case .send(let sent?) = exchange.dispositionReceived(renewed.0, renewed.1) else {
            Issue.record("nothing is sent")
            return
        }
        #expect(sent.fieldValue == "Bearer second")
        var other = exchange
        #expect(other.responseReceived(status: 200, challenges: []) == .deliver(.accepted))
        // The second one is invalid, too: a third would be no better.
        #expect(exchange.responseReceived(status: 401, challenges: [Self.invalid]) == .deliver(.rejected))
        #expect(Self.refreshes(home) == 1)
    }

    @Test func theRenewedTokenCountsAsAccepted() async throws {
        let (home, controller) = try await Self.signedIn(["token": ["first", "second"]])
        var exchange = try Self.exchange(controller)
        _ = exchange.started()
        for challenge in [Self.challenge, Self.invalid] {
            let question = try Self.asked(exchange.responseReceived(status: 401, challenges: [challenge]))
            let (disposition, credential) = await controller.handle(question)
            _ = exchange.dispositionReceived(disposition, credential)
        }
        #expect(exchange.responseReceived(status: 200, challenges: []) == .deliver(.accepted))
        #expect(Self.token(await controller.handle(Self.question())) == "second")
        #expect(Self.refreshes(home) == 1)
    }

    @Test func aRevokedTokenThatCannotBeRenewedIsRejected() async throws {
        let (home, controller) = try await Self.signedIn(["token": ["first"]])
        try home.provider.change(["error": "invalid_grant"])
        var exchange = try Self.exchange(controller)
        _ = exchange.started()
        let first = try Self.asked(exchange.responseReceived(status: 401, challenges: [Self.challenge]))
        let (disposition, credential) = await controller.handle(first)
        _ = exchange.dispositionReceived(disposition, credential)
        let second = try Self.asked(exchange.responseReceived(status: 401, challenges: [Self.invalid]))
        let none = await controller.handle(second)
        #expect(none.0 == .performDefaultHandling)
        #expect(exchange.dispositionReceived(none.0, none.1) == .deliver(.rejected))
        #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.bearer)) }
    }

    /// A program that answers itself may decline, or cancel.
    @Test(arguments: [
        (ChallengeDisposition.rejectProtectionSpace, ChallengeExchange.Action.deliver(.rejected)),
        (.cancelAuthenticationChallenge, .fail(reason: "the challenge was cancelled")),
    ])
    func theSecondQuestionCanBeAnsweredByTheProgram(
        disposition: ChallengeDisposition, outcome: ChallengeExchange.Action
    ) async throws {
        let (home, controller) = try await Self.signedIn(["token": ["first"]])
        var exchange = try Self.exchange(controller)
        _ = exchange.started()
        let question = try Self.asked(exchange.responseReceived(status: 401, challenges: [Self.challenge]))
        let answer = await controller.handle(question)
        _ = exchange.dispositionReceived(answer.0, answer.1)
        _ = try Self.asked(exchange.responseReceived(status: 401, challenges: [Self.invalid]))
        var other = exchange
        let own = try #require(BearerToken("own"))
        guard case .send(let sent?) = other.dispositionReceived(.useCredential, .token(own)) else {
            Issue.record("nothing is sent")
            return
        }
        #expect(sent.fieldValue == "Bearer own")
        #expect(exchange.dispositionReceived(disposition, nil) == outcome)
        #expect(Self.refreshes(home) == 0)
    }

    /// Clients that do not use exchanges report a failure count.
    @Test func aTokenThatFailedIsRenewedOnceForOtherClients() async throws {
        let (home, controller) = try await Self.signedIn(["token": ["first", "second", "third"]])
        let first = await controller.handle(Self.question())
        let second = await controller.handle(Self.question(1, first.1))
        #expect(Self.token(second) == "second")
        #expect(await controller.handle(Self.question(2, second.1)).0 == .performDefaultHandling)
        #expect(Self.refreshes(home) == 1)
        #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.bearer)) }
    }

    @Test func anotherCredentialsFailureRenewsNothing() async throws {
        let (home, controller) = try await Self.signedIn(["token": ["first", "second"]])
        _ = await controller.handle(Self.question())
        let own = Credential.token(try #require(BearerToken("own")))
        #expect(await controller.handle(Self.question(1, own)).0 == .performDefaultHandling)
        #expect(Self.refreshes(home) == 0)
    }
}
