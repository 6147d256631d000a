// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignChallenges

@Suite struct ExchangeMachineTests {
    // MARK: Challenges that are not answered

    @Test(arguments: [200, 204, 302, 403, 407, 500, 101])
    func whatIsNo401IsDelivered(status: Int) {
        let exchange = play([
            .event(.started), .expect(.send(nil)),
            .response(status, "Basic realm=\"Wiki\""), .expect(.deliver(.notChallenged)),
        ])
        #expect(exchange.roundsAnswered == 0)
    }

    @Test(arguments: [
        (
            RequestContext.site().with { $0.site = .no("not listed") },
            ThreeChecks(site: .no("not listed"))
        ),
        (.site().with { $0.originTrusted = false }, ThreeChecks(site: .no(.untrusted))),
        (
            .site().with { $0.clientAuthorizes = true },
            .checks(.no(Refusal(.ownAuthorization, "the client sent its own Authorization")))
        ),
    ])
    func nothingOfOursIsSentWhereACheckFailedBefore(context: RequestContext, checks: ThreeChecks) {
        for learned in [nil, AcceptedAnswer.basic, .ntlm(.ntlm)] {
            let context = context.with { $0.accepted = learned }
            let exchange = play(
                context,
                [
                    .event(.started), .expect(.send(nil)),
                    .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.deliver(.handedBack(checks))),
                ])
            #expect(exchange.roundsAnswered == 0)
            play(context, [.event(.started), .expect(.send(nil)), .response(200), .expect(.deliver(.notChallenged))])
        }
    }

    @Test(arguments: [
        ([], "the 401 has no challenge"),
        ([""], "the 401 has no challenge"),
        (["Digest realm=\"x\", Bearer"], "origin offers Digest, Bearer, which this version cannot answer"),
        (["Digest"], "origin offers Digest, which this version cannot answer"),
        (["A, B, C, D, E, F"], "origin offers A, B, C, D, E, which this version cannot answer"),
        (
            ["\"Basic\" realm=\"x\"", "Basic realm=\"x\", realm=\"y\""],
            "unparsable challenge: challenge field 1, byte 1: expected a scheme, found \"\"\""
        ),
        (
            ["NTLM", "Basic realm=\"" + String(repeating: "x", count: 16384)],
            "unparsable challenge: challenges of more than 16384 bytes"
        ),
    ])
    func a401WithNothingToAnswerIsHandedBack(fields: [String], reason: String) {
        play([
            .event(.started), .expect(.send(nil)),
            .event(.responseReceived(status: 401, challengeFields: fields.map { ChallengeField($0) })),
            .expect(.deliver(.handedBack(.no(Refusal(reason))))),
        ])
    }

    @Test(arguments: [
        (
            [AuthenticationScheme.basic], "NTLM, Negotiate",
            "origin offers NTLM, Negotiate; the site's line permits basic", [AuthenticationScheme.ntlm]
        ),
        ([.ntlm], "Basic realm=x", "origin offers Basic; the site's line permits ntlm", [.basic]),
        (
            [.certificate, .negotiate], "NTLM, Negotiate, Basic realm=x",
            "origin offers NTLM, Negotiate, Basic; the site's line permits nothing to answer a 401 with",
            [.ntlm, .basic]
        ),
    ])
    func aSchemeTheLineDoesNotPermitIsNotAnswered(
        permitted: [AuthenticationScheme], field: String, reason: String, offered: [AuthenticationScheme]
    ) {
        play(
            .site(permitted: permitted),
            [
                .event(.started), .expect(.send(nil)),
                .response(401, field), .expect(.deliver(.handedBack(.no(Refusal(.notPermitted(offered), reason))))),
            ])
    }

    @Test(arguments: ["Basic realm=\"x\"", "NTLM", "Negotiate"])
    func overPlainHTTPNothingIsAnsweredUnlessTheLineSaysSo(field: String) {
        #expect(Refusal.plaintext.text == "site is http and its line does not say plaintext=yes")
        for learned in [nil, AcceptedAnswer.basic, .ntlm(.ntlm)] {
            play(
                .site(.printer, accepted: learned),
                [
                    .event(.started), .expect(.send(nil)),
                    .response(401, field), .expect(.deliver(.handedBack(.no(.plaintext)))),
                ])
        }
    }

    @Test func overPlainHTTPALineMaySayPlaintext() {
        play(
            .site(.printer).with { $0.plaintextPermitted = true },
            [
                .event(.started), .expect(.send(nil)),
                .response(401, "Basic realm=\"x\""), .expect(.ask(.basic("x", at: .printer))),
                .decision(.jdoe), .expect(.send(.basic)),
                .response(200), .expect(.deliver(.accepted(.basic, realm: "x", at: .printer))),
            ])
    }

    // MARK: Basic

    @Test func basicIsAnsweredOnce() {
        let exchange = play([
            .event(.started), .expect(.send(nil)),
            .response(401, "Basic realm=\"Wiki\""), .expect(.ask(.basic("Wiki"))),
            .checks(.checks(.offered)),
            .decision(.jdoe), .expect(.send(.basic)),
            .checks(.checks(.offered, .enrolled)),
            .response(200), .expect(.deliver(.accepted(.basic, realm: "Wiki"))),
            .sameConnection(false),
        ])
        #expect(exchange.roundsAnswered == 1)
        #expect(exchange.checks.answers)
    }

    @Test(arguments: [
        "Basic realm=\"Wiki\"", "Basic realm=\"Other\"", "NTLM", "Digest realm=\"x\", Basic realm=\"Wiki\"", "",
        "Basic realm=\"",
    ])
    func a401ToABasicAnswerIsARejectionWhateverItOffers(field: String) {
        let exchange = play([
            .event(.started), .expect(.send(nil)),
            .response(401, "Basic realm=\"Wiki\""), .expect(.ask(.basic("Wiki"))),
            .decision(.jdoe), .expect(.send(.basic)),
            .response(401, field), .expect(.deliver(.rejected(.basic, .offered))),
        ])
        #expect(exchange.roundsAnswered == 1)
    }

    @Test func domainAndCharsetGoIntoTheAnswer() {
        let answer = AuthorizationField(scheme: "Basic", credentials: Array("ACME\\jdoe:caf\u{E9}".utf8))
        let credential = PasswordCredential(
            name: "enrollment", user: "jdoe", password: Secret(utf8: "cafe\u{301}"), generation: 7)
        play(
            .site().with { $0.domain = "ACME" },
            [
                .event(.started), .expect(.send(nil)),
                .response(401, "Basic realm=\"Wiki\", charset=\"UTF-8\""), .expect(.ask(.basic("Wiki"))),
                .decision(.useCredential(.password(credential))), .expect(.send(.fixed(answer))),
                .response(200), .expect(.deliver(.accepted(.basic, realm: "Wiki"))),
            ])
    }

    @Test func aUserNameThatBasicCannotCarryIsHandedBack() {
        let credential = PasswordCredential(name: "enrollment", user: "a:b", password: Secret([]), generation: 7)
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "Basic realm=\"Wiki\""), .expect(.ask(.basic("Wiki"))),
            .decision(.useCredential(.password(credential))),
            .expect(.deliver(.handedBack(.offered, .no(Refusal(.noCredential, "the user name contains a colon"))))),
        ])
    }

    // MARK: NTLM

    @Test(arguments: [true, false])
    func ntlmTakesThreeSendsOnOneConnection(hasBody: Bool) {
        let exchange = play(
            .site(hasBody: hasBody),
            [
                .event(.started), .expect(.send(nil)),
                .response(401, "Negotiate", "NTLM", "Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
                .sameConnection(false),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .token([1]), .expect(.sendOpening(.opening)),
                .sameConnection(true),
                .response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
                .token([3]), .expect(.send(.answer)),
                .response(200), .expect(.deliver(.accepted(.ntlm))),
                .sameConnection(true), .checks(.checks(.ntlmOffered, .enrolled)),
            ])
        #expect(exchange.roundsAnswered == 2)
    }

    /// Without a ticket, for example. Nothing was sent, so nothing was rejected.
    @Test func ifThereIsNothingToAnswerWithTheNextSchemeIsTried() {
        let exchange = play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Negotiate, Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            // NTLM in Negotiate is the same space.
            .event(.tokenFailed(reason: "no ticket", isUnavailable: true)), .expect(.ask(.basic("Wiki"))),
            .decision(.jdoe), .expect(.send(.basic)),
            .response(200), .expect(.deliver(.accepted(.basic, realm: "Wiki"))),
            .sameConnection(false),
        ])
        #expect(exchange.reasonForWeaker == "no ticket")
    }

    /// With a wrong clock, for example.
    @Test func ifAFirstTokenFailsForAnotherReasonNothingWeakerIsTried() {
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .event(.tokenFailed(reason: "wrong clock", isUnavailable: false)),
            .expect(.deliver(.handedBack(.checks(.ntlmOffered, .no("wrong clock"))))),
        ])
    }

    @Test func theReasonsOfAllSchemesThatFailedAreReported() {
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .event(.tokenFailed(reason: "no ticket", isUnavailable: true)), .expect(.ask(.basic("Wiki"))),
            .decision(.performDefaultHandling(reason: "no credential")),
            .expect(.deliver(.handedBack(.checks(.offered, .no("no ticket; no credential"))))),
        ])
    }

    /// The server may have rejected the credential.
    @Test func ifALaterTokenCannotBeComputedNothingWeakerIsTried() {
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .token([1]), .expect(.sendOpening(.opening)),
            .response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
            .event(.tokenFailed(reason: "damaged", isUnavailable: false)),
            .expect(.deliver(.handedBack(.checks(.ntlmOffered, .no("damaged"))))),
        ])
    }

    @Test func ntlmInsideNegotiateKeepsThatWord() {
        let opening = AuthorizationField(scheme: "Negotiate", credentials: [1])
        let answer = AuthorizationField(scheme: "Negotiate", credentials: [3])
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "negotiate"), .expect(.ask(.ntlmInNegotiate)),
            .decision(.jdoe), .expect(.computeToken(.ntlmInNegotiate, .jdoe, serverToken: nil)),
            .token([1]), .expect(.sendOpening(.fixed(opening))),
            .response(401, "NTLM BAQE, NEGOTIATE Ag==, Basic realm=x"),
            .expect(.computeToken(.ntlmInNegotiate, .jdoe, serverToken: [2])),
            .token([3]), .expect(.send(.fixed(answer))),
            .response(200, "Negotiate BQ=="),
            .expect(
                .computeToken(
                    TokenRequest(OfferKind.ntlmInNegotiate.offer(), .password(.jdoe), .conclude([5])))),
            .event(.tokenComputed(DialogueToken([], expectsReply: false))),
            .expect(.deliver(.accepted(.ntlmInNegotiate))),
        ])
    }

    @Test(arguments: ["NTLM", "NTLM, Basic realm=\"Wiki\"", "NTLM Ag==", "Basic realm=\"Wiki\""])
    func a401ToTheLastMessageIsARejectionAndNothingWeakerIsTried(field: String) {
        let exchange = play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .token([1]), .expect(.sendOpening(.opening)),
            .response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
            .token([3]), .expect(.send(.answer)),
            .response(401, field), .expect(.deliver(.rejected(.ntlm, .ntlmOffered))),
        ])
        #expect(exchange.roundsAnswered == 2)
    }

    /// The challenge was offered and permitted: it is the credential that does not lead on.
    @Test(arguments: [["NTLM"], ["NTLM", "Basic realm=\"Wiki\""], ["Basic realm=\"Wiki\""], ["Negotiate Ag=="], []])
    func anOpeningThatIsNotContinuedFailsTheThirdCheck(fields: [String]) {
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .token([1]), .expect(.sendOpening(.opening)),
            .event(.responseReceived(status: 401, challengeFields: fields.map { ChallengeField($0) })),
            .expect(.deliver(.handedBack(.ntlmOffered, .no(.notContinued)))),
        ])
    }

    @Test(arguments: [
        (["NTLM Ag==, NTLM BA=="], "origin sent 2 NTLM tokens at once"),
        (["NTLM A"], "NTLM token is not Base64"),
        (["NTLM A-_="], "NTLM token is not Base64"),
        (["NTLM=Ag==", "\""], "unparsable challenge: challenge field 1, byte 5: expected a comma, found \"=\""),
    ])
    func anOpeningWithoutOneTokenInReplyIsHandedBack(fields: [String], reason: String) {
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .token([1]), .expect(.sendOpening(.opening)),
            .event(.responseReceived(status: 401, challengeFields: fields.map { ChallengeField($0) })),
            .expect(.deliver(.handedBack(.no(Refusal(reason))))),
        ])
    }

    @Test(arguments: [(200, 200), (404, 500), (407, 201)])
    func anIgnoredOpeningIsFollowedByTheWholeRequest(first: Int, second: Int) {
        play(
            .site(hasBody: true),
            [
                .event(.started), .expect(.send(nil)),
                .response(401, "NTLM"), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .token([1]), .expect(.sendOpening(.opening)),
                .response(first), .expect(.send(nil)),
                .response(second), .expect(.deliver(.notChallenged)),
            ])
        play(
            .site(hasBody: false, accepted: .ntlm(.ntlm)),
            [
                .event(.started), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .token([1]), .expect(.sendOpening(.opening)),
                .response(first), .expect(.deliver(.notChallenged)),
            ])
    }

    @Test func aChallengeAfterAnOpenPathIsHandedBack() {
        play(
            .site(hasBody: true),
            [
                .event(.started), .expect(.send(nil)),
                .response(401, "NTLM"), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .token([1]), .expect(.sendOpening(.opening)),
                .response(200), .expect(.send(nil)),
                .response(401, "NTLM"),
                .expect(.deliver(.handedBack(.ntlmOffered, .no(.notContinued)))),
            ])
    }

    @Test func aTokenThatCannotBeMadeIsHandedBackAndNothingWeakerIsTried() {
        let failure = ExchangeMachine.Event.tokenFailed(reason: "origin offers NTLMv1 only", isUnavailable: false)
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Negotiate"), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .event(failure), .expect(.deliver(.handedBack(.ntlmOffered, .no("origin offers NTLMv1 only")))),
        ])
        let exchange = play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .token([1]), .expect(.sendOpening(.opening)),
            .response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
            .event(failure), .expect(.deliver(.handedBack(.ntlmOffered, .no("origin offers NTLMv1 only")))),
        ])
        #expect(exchange.roundsAnswered == 1)
    }

    // MARK: The decision about a credential

    @Test func aRefusedOfferLeadsToTheNextWeakerOne() {
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "Basic realm=\"a\", Basic realm=\"b\", Negotiate, NTLM"), .expect(.ask(.ntlm)),
            // One decision covers raw NTLM and NTLM in Negotiate.
            .decision(.rejectProtectionSpace(reason: "not here")), .expect(.ask(.basic("a"))),
            .checks(.checks(.offered)),
            .decision(.rejectProtectionSpace(reason: "nor here")), .expect(.ask(.basic("b"))),
            .decision(.jdoe), .expect(.send(.basic)),
            .response(200), .expect(.deliver(.accepted(.basic, realm: "b"))),
        ])
    }

    @Test func whenAllAreRefusedTheLastReasonIsGiven() {
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Basic realm=\"a\", Basic realm=\"a\""), .expect(.ask(.ntlm)),
            .decision(.rejectProtectionSpace(reason: "not here")), .expect(.ask(.basic("a"))),
            .decision(.rejectProtectionSpace(reason: "nor here")),
            .expect(.deliver(.handedBack(.offered, .no("nor here")))),
        ])
    }

    @Test(
        arguments: [
            (CredentialDecision.none, "no credential \"enrollment\""),
            (.useCredential(.identity(named: "laptop")), "identity \"laptop\" answers TLS and not a 401"),
        ] as [(CredentialDecision, Refusal)])
    func withoutACredentialTheChallengeIsHandedBack(disposition: CredentialDecision, reason: Refusal) {
        play([
            .event(.started), .expect(.send(nil)),
            .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
            .decision(disposition), .expect(.deliver(.handedBack(.ntlmOffered, .no(reason)))),
        ])
    }

    @Test func noActionOrStateShowsThePassword() {
        let exchange = play(
            .site(accepted: .basic).with { $0.domain = "ACME" },
            [
                .event(.started), .expect(.send(.basic)),
                .response(401, "NTLM"), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            ])
        var shown = "\(exchange)" + String(reflecting: exchange)
        dump(exchange, to: &shown)
        dump(ExchangeMachine.Action.computeToken(.ntlm, .jdoe, serverToken: nil), to: &shown)
        #expect(shown.contains("jdoe"))
        #expect(!shown.contains("canary-password"))
        #expect(!shown.contains(AuthorizationField.basic.fieldValue.dropFirst("Basic ".count)))
    }
}
