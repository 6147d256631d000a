// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignCryptography
import CountersignVault
import Testing

@testable import Countersign

/// Bearer tokens in the library: enrolled ones, and those of the program.
@Suite(.waiting) struct LibraryBearerTests {
    private static let token = "kanarie.to-ken=="
    private static let url = "https://git.corp.example/repository"
    private static let challenge = "Bearer realm=\"r\""

    private static func controller(_ options: String = "credential=api") throws -> ChallengeController {
        let home = try LibraryHome("https://git.corp.example \(options)\n")
        let vault = try SealedVault(home: home.path).open { () throws in Secret(utf8: LibraryHome.passphrase) }
        try vault.update { try $0.setToken(name: "api", token: Secret(utf8: token)) }
        return try home.controller()
    }

    /// An exchange up to its question.
    private static func asked(
        _ controller: ChallengeController, _ challenges: String...
    ) throws -> (exchange: ChallengeExchange, question: AuthenticationChallenge) {
        var exchange = try ChallengeExchange(url: url, serverIsTrusted: true, controller: controller)
        #expect(exchange.started() == .send(nil))
        let action = exchange.responseReceived(status: 401, challenges: challenges)
        guard case .ask(let question) = action else { throw Unasked(action: action) }
        return (exchange, question)
    }

    private struct Unasked: Error { let action: ChallengeExchange.Action }

    @Test func anEnrolledTokenAnswersTheChallenge() async throws {
        let controller = try Self.controller()
        var (exchange, question) = try Self.asked(controller, Self.challenge)
        #expect(question.protectionSpace == .git(.bearer))
        let (disposition, credential) = await controller.handle(question)
        #expect(disposition == .useCredential)
        guard case .token(let given)? = credential else {
            Issue.record("not a token: \(credential.debugDescription)")
            return
        }
        #expect(given.text == Self.token && given == BearerToken(Self.token))
        #expect(!"\(given) \(String(reflecting: credential))".contains("kanarie"))
        guard case .send(let authorization?) = exchange.dispositionReceived(disposition, credential) else {
            Issue.record("nothing is sent")
            return
        }
        #expect(authorization.scheme == "Bearer" && authorization.fieldValue == "Bearer \(Self.token)")
        #expect(exchange.responseReceived(status: 200, challenges: []) == .deliver(.accepted))
    }

    @Test func anInvalidTokenIsNotUsedAgainAndTheHintNamesTheCommand() async throws {
        let controller = try Self.controller()
        var (exchange, question) = try Self.asked(controller, Self.challenge)
        let (disposition, credential) = await controller.handle(question)
        _ = exchange.dispositionReceived(disposition, credential)
        let outcome = exchange.responseReceived(
            status: 401, challenges: ["Bearer realm=\"r\", error=\"invalid_token\""])
        #expect(outcome == .deliver(.rejected))
        let error = #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.bearer)) }
        #expect(
            error?.hint
                == "`countersign credential set api --token-stdin` with a valid token, or "
                + "`countersign credential retry api` permits an attempt")
        #expect(error?.remedy == .setToken(name: "api"))
    }

    @Test func anInsufficientScopeIsHandedBackAndTheTokenStaysUsable() async throws {
        let controller = try Self.controller()
        var (exchange, question) = try Self.asked(controller, Self.challenge)
        let (disposition, credential) = await controller.handle(question)
        _ = exchange.dispositionReceived(disposition, credential)
        let outcome = exchange.responseReceived(
            status: 403, challenges: ["Bearer realm=\"r\", error=\"insufficient_scope\", scope=\"admin\""])
        guard case .deliver(.handedBack(let error)) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(error.detail == "the token's scope is insufficient: the origin requires \"admin\"")
        #expect(try controller.canHandle(.git(.bearer)))
    }

    /// The program obtains its tokens itself, and is responsible for how often it tries them.
    @Test func aTokenOfTheProgramIsSentAndIsNotTheEnrolledOne() throws {
        let controller = try Self.controller()
        for _ in 1...2 {
            var (exchange, _) = try Self.asked(controller, Self.challenge)
            let own = try #require(BearerToken("own"))
            guard case .send(let authorization?) = exchange.dispositionReceived(.useCredential, .token(own)) else {
                Issue.record("nothing is sent")
                return
            }
            #expect(authorization.fieldValue == "Bearer own")
            let outcome = exchange.responseReceived(
                status: 401, challenges: ["Bearer realm=\"r\", error=\"invalid_token\""])
            #expect(outcome == .deliver(.rejected))
        }
        #expect(try controller.canHandle(.git(.bearer)))
    }

    @Test(arguments: ["", "two words", "line\n", "\u{E9}", "=", "a=b"])
    func otherTextIsNotAToken(text: String) {
        #expect(BearerToken(text) == nil)
    }

    @Test func aRejectedSpaceLeadsToTheNextScheme() throws {
        let controller = try Self.controller()
        var (exchange, question) = try Self.asked(controller, Self.challenge, "Basic realm=\"r\"")
        #expect(question.protectionSpace.authenticationMethod == .bearer)
        guard case .ask(let next) = exchange.dispositionReceived(.rejectProtectionSpace, nil) else {
            Issue.record("nothing is asked")
            return
        }
        #expect(next.protectionSpace.authenticationMethod == .basic)
    }
}
