// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignChallenges

/// Answers that are sent before a challenge, because earlier requests were accepted.
@Suite struct LearnedExchangeTests {
    private static let before = ThreeChecks.Check.yes("basic was accepted here before")

    @Test func aLearnedAnswerGoesWithTheRequest() {
        let exchange = play(
            .site(hasBody: true, accepted: .basic),
            [
                .event(.started), .expect(.send(.basic)),
                .checks(.checks(Self.before, .enrolled)),
                .response(200), .expect(.deliver(.accepted(.basic, realm: "Wiki"))),
            ])
        #expect(exchange.roundsAnswered == 1)
    }

    @Test(arguments: ["Basic realm=\"Wiki\"", "NTLM, Basic realm=\"Other\", basic realm=Wiki"])
    func aLearnedAnswerIsRejectedByItsOwnRealm(field: String) {
        play(
            .site(accepted: .basic),
            [
                .event(.started), .expect(.send(.basic)),
                .response(401, field), .expect(.deliver(.rejected(.basic, Self.before))),
            ])
    }

    @Test func anotherRealmIsAskedAboutOnce() {
        for second in ["Basic realm=\"Inner\"", "Basic realm=\"Wiki\"", "Basic realm=\"Third\""] {
            let exchange = play(
                .site(accepted: .basic),
                [
                    .event(.started), .expect(.send(.basic)),
                    .response(401, "Basic realm=\"Inner\""), .expect(.ask(.basic("Inner"))),
                    .checks(.checks(.offered)),
                    .decision(.jdoe), .expect(.send(.basic)),
                    .response(401, second), .expect(.deliver(.rejected(.basic, .offered))),
                ])
            #expect(exchange.roundsAnswered == 2)
        }
    }

    @Test func aLearnedAnswerMeetsOtherSchemes() {
        play(
            .site(accepted: .basic),
            [
                .event(.started), .expect(.send(.basic)),
                .response(401, "NTLM"), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .token([1]), .expect(.sendOpening(.opening)),
                .response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
                .token([3]), .expect(.send(.answer)),
                .response(200), .expect(.deliver(.accepted(.ntlm))),
            ])
        let reason: Refusal = "origin offers Digest, which this version cannot answer"
        play(
            .site(accepted: .basic),
            [
                .event(.started), .expect(.send(.basic)),
                .response(401, "Digest realm=\"Wiki\""), .expect(.deliver(.handedBack(.no(reason)))),
            ])
    }

    /// The origin has not accepted the answer, even if its challenge is faulty.
    @Test(arguments: ["Basic a b", "\"Basic\" realm=\"Wiki\"", "Basic realm=\"Wiki\" oops"])
    func aLearnedAnswerIsRejectedByAChallengeWithAFault(field: String) {
        play(
            .site(accepted: .basic),
            [
                .event(.started), .expect(.send(.basic)),
                .response(401, field), .expect(.deliver(.rejected(.basic, Self.before))),
            ])
    }

    @Test(arguments: [AcceptedAnswer.basic, .ntlm(.ntlm), .ntlm(.ntlmInNegotiate)])
    func whatTheLineNoLongerPermitsIsNotUsed(learned: AcceptedAnswer) {
        let other: [AuthenticationScheme] = learned == .basic ? [.ntlm] : [.basic]
        play(
            .site(permitted: other, accepted: learned),
            [.event(.started), .expect(.send(nil)), .response(200), .expect(.deliver(.notChallenged))])
    }

    /// A server that does not challenge would act on the opening, and then on the request.
    @Test(arguments: [OfferKind.ntlm, .ntlmInNegotiate])
    func noDialogueIsOpenedUnaskedForARequestWithContent(kind: OfferKind) {
        play(
            .site(hasBody: true, accepted: .ntlm(kind)),
            [.event(.started), .expect(.send(nil)), .response(200), .expect(.deliver(.notChallenged))])
        play(
            .site(hasBody: true, accepted: .ntlm(kind)),
            [
                .event(.started), .expect(.send(nil)), .checks(.checks(nil)),
                .response(401, "\(kind.authenticator.schemeName)"),
                .expect(.ask(kind == .ntlm ? .ntlm : .ntlmInNegotiate)),
                .decision(.jdoe), .expect(.computeToken(kind, .jdoe, serverToken: nil)),
                .token([1]),
                .expect(
                    .sendOpening(
                        .fixed(AuthorizationField(scheme: kind.authenticator.schemeName, credentials: [1])))),
            ])
    }

    /// The first token may be the whole answer, as Kerberos' is.
    @Test func aTokenThatIsTheWholeAnswerGoesWithTheContent() {
        let learned = AcceptedAnswer(
            OfferKind.ntlm.offer(), at: .wiki, credential: PasswordCredential.jdoe.reference, preemption: .token)
        play(
            .site(hasBody: true, accepted: learned),
            [
                .event(.started), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .event(.tokenComputed(DialogueToken([1], expectsReply: false))), .expect(.send(.opening)),
                .response(200), .expect(.deliver(.accepted(.ntlm))),
            ])
    }

    @Test func aLearnedDialogueIsOpenedAtOnce() {
        let exchange = play(
            .site(accepted: .ntlm(.ntlm)),
            [
                .event(.started), .expect(.ask(.ntlm)),
                .checks(.checks(.yes("ntlm was accepted here before"))),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .token([1]), .expect(.sendOpening(.opening)),
                .response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
                .token([3]), .expect(.send(.answer)),
                .response(200), .expect(.deliver(.accepted(.ntlm))),
            ])
        #expect(exchange.roundsAnswered == 2)
    }

    /// The weaker challenge may be the reply to the token. Only a request without a token shows the origin's offers.
    @Test func aLearnedDialogueTheOriginNoLongerOffersIsNotFollowedByAWeakerScheme() {
        play(
            .site(accepted: .ntlm(.ntlm)),
            [
                .event(.started), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .token([1]), .expect(.sendOpening(.opening)), .sameConnection(true),
                .response(401, "Basic realm=\"Wiki\""), .expect(.send(nil)), .sameConnection(false),
                .response(401, "Basic realm=\"Wiki\""), .expect(.ask(.basic("Wiki"))),
                .checks(.checks(.offered)),
                .decision(.jdoe), .expect(.send(.basic)),
                .response(200), .expect(.deliver(.accepted(.basic, realm: "Wiki"))),
            ])
        play(
            .site(accepted: .ntlm(.ntlm)),
            [
                .event(.started), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .token([1]), .expect(.sendOpening(.opening)),
                .response(401, "NTLM, Basic realm=\"Wiki\""),
                .expect(
                    .deliver(
                        .handedBack(.yes("ntlm was accepted here before"), .no(.notContinued)))),
            ])
    }

    @Test(arguments: [
        CredentialDecision.none, .rejectProtectionSpace(reason: "no"), .useCredential(.identity(named: "laptop")),
    ])
    func aLearnedDialogueNobodyAnswersGoesAsItCame(disposition: CredentialDecision) {
        play(
            .site(accepted: .ntlm(.ntlm)),
            [
                .event(.started), .expect(.ask(.ntlm)),
                .decision(disposition), .expect(.send(nil)), .checks(.checks(nil)),
                .response(401, "NTLM"), .expect(.ask(.ntlm)),
                .decision(.none),
                .expect(.deliver(.handedBack(.ntlmOffered, .no("no credential \"enrollment\"")))),
            ])
    }

    @Test func aLearnedDialogueWithoutATokenGoesAsItCame() {
        play(
            .site(accepted: .ntlm(.ntlm)),
            [
                .event(.started), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .event(.tokenFailed(reason: "no", isUnavailable: true)), .expect(.send(nil)), .checks(.checks(nil)),
                .response(200), .expect(.deliver(.notChallenged)),
            ])
    }

    /// A second attempt would fail for the same reason.
    @Test func aLearnedDialogueWithoutATokenIsNotTriedTwice() {
        let beginning: [Line] = [
            .event(.started), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .event(.tokenFailed(reason: "no", isUnavailable: true)), .expect(.send(nil)),
        ]
        play(
            .site(accepted: .ntlm(.ntlm)),
            beginning + [.response(401, "NTLM"), .expect(.deliver(.handedBack(.ntlmOffered, .no(.noTicket("no")))))])
        play(
            .site(accepted: .ntlm(.ntlm)),
            beginning + [
                .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.ask(.basic("Wiki"))),
                .decision(.jdoe), .expect(.send(.basic)),
                .response(200), .expect(.deliver(.accepted(.basic, realm: "Wiki"))),
            ])
    }

    /// A scheme whose first token is the whole answer, such as Kerberos, learns only from the response that the path
    /// belongs to another one.
    @Test func aTokenForAPathWithAnotherSchemeIsNotRejected() {
        play(
            .site(accepted: .ntlm(.ntlm)),
            [
                .event(.started), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .event(.tokenComputed(DialogueToken([1], expectsReply: false))), .expect(.send(.opening)),
                .response(401, "Basic realm=\"Wiki\""), .expect(.send(nil)), .sameConnection(false),
                .response(401, "Basic realm=\"Wiki\""), .expect(.ask(.basic("Wiki"))),
                .checks(.checks(.offered)),
                .decision(.jdoe), .expect(.send(.basic)),
                .response(200), .expect(.deliver(.accepted(.basic, realm: "Wiki"))),
            ])
    }

    /// The origin accepted the scheme before, refuses it now, and offers something weaker instead.
    @Test func aRefusedTokenIsNotFollowedByAWeakerScheme() {
        let refused: [Line] = [
            .event(.started), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .event(.tokenComputed(DialogueToken([1], expectsReply: false))), .expect(.send(.opening)),
            .response(401, "Basic realm=\"Wiki\""), .expect(.send(nil)),
        ]
        play(
            .site(accepted: .ntlm(.ntlm)),
            refused + [
                .response(401, "NTLM, Basic realm=\"Wiki\""), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .event(.tokenComputed(DialogueToken([1], expectsReply: false))), .expect(.send(.opening)),
                .response(401, "Basic realm=\"Wiki\""), .expect(.deliver(.rejected(.ntlm, .ntlmOffered))),
            ])
        play(.site(accepted: .ntlm(.ntlm)), refused + [.response(200), .expect(.deliver(.notChallenged))])
        play(
            .site(accepted: .ntlm(.ntlm)),
            refused + [
                .event(.replayImpossible(reason: "too long")), .expect(.deliver(.handedBack(.no("too long")))),
            ])
    }

    /// The same for an answer that is not a token, with a stronger scheme that was accepted before.
    @Test func aRefusedAnswerIsNotFollowedByAWeakerScheme() {
        let table = AuthenticatorTable([OfferKind.basic.authenticator, OfferKind.ntlm.authenticator])
        play(
            .site(accepted: .basic).with { $0.authenticators = table },
            [
                .event(.started), .expect(.send(.basic)),
                .response(401, "NTLM"), .expect(.send(nil)),
                .response(401, "NTLM"), .expect(.ask(.ntlm)),
            ])
    }

    /// The reply to a refused answer may offer a stronger scheme, too.
    @Test func aWeakerOfferIsNotAnsweredBesideAStrongerOneEither() {
        let table = AuthenticatorTable([
            OfferKind.ntlmInNegotiate.authenticator, OfferKind.basic.authenticator, OfferKind.ntlm.authenticator,
        ])
        play(
            .site(accepted: .basic).with { $0.authenticators = table },
            [
                .event(.started), .expect(.send(.basic)),
                .response(401, "Negotiate, NTLM"), .expect(.send(nil)),
                .response(401, "Negotiate, NTLM"), .expect(.ask(.ntlmInNegotiate)),
            ])
    }

    /// The connection was lost, so the token was computed twice, but the origin has challenged only once.
    @Test func aTokenThatIsRefusedAfterALostConnectionIsTheFirstToo() {
        play(
            .site(accepted: .ntlm(.ntlm)),
            [
                .event(.started), .expect(.ask(.ntlm)),
                .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .event(.tokenComputed(DialogueToken([1], expectsReply: false))), .expect(.send(.opening)),
                .event(.connectionLost(requestMayRepeat: true)),
                .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
                .event(.tokenComputed(DialogueToken([1], expectsReply: false))), .expect(.send(.opening)),
                .response(401, "Basic realm=\"Wiki\""), .expect(.send(nil)),
            ])
    }

    /// A failure other than a missing ticket permits nothing weaker, even after the challenge.
    @Test func aLearnedDialogueWhoseTokenFailsPermitsNothingWeaker() {
        let beginning: [Line] = [
            .event(.started), .expect(.ask(.ntlm)),
            .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
            .event(.tokenFailed(reason: "wrong clock", isUnavailable: false)), .expect(.send(nil)),
        ]
        play(
            .site(accepted: .ntlm(.ntlm)),
            beginning + [
                .response(401, "NTLM, Basic realm=\"Wiki\""),
                .expect(.deliver(.handedBack(.ntlmOffered, .no("wrong clock")))),
            ])
        // Where the scheme is not offered, its failure does not matter.
        let exchange = play(
            .site(accepted: .ntlm(.ntlm)),
            beginning + [
                .response(401, "Basic realm=\"Wiki\""), .expect(.ask(.basic("Wiki"))),
                .decision(.jdoe), .expect(.send(.basic)),
                .response(200), .expect(.deliver(.accepted(.basic, realm: "Wiki"))),
            ])
        #expect(exchange.reasonForWeaker == nil)
    }
}
