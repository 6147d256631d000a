// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignChallenges

/// Too many rounds, lost connections, and bodies that cannot be sent again.
@Suite struct InterruptedExchangeTests {
    private static let toOpening: [Line] = [
        .event(.started), .expect(.send(nil)),
        .response(401, "NTLM"), .expect(.ask(.ntlm)),
        .decision(.jdoe), .expect(.computeToken(.ntlm, .jdoe, serverToken: nil)),
        .token([1]), .expect(.sendOpening(.opening)),
    ]
    private static let toAnswer: [Line] =
        toOpening + [.response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2]))]
    private static let again = Line.expect(.computeToken(.ntlm, .jdoe, serverToken: nil))

    @Test func anOpeningLostStartsTheDialogueAgainOnce() {
        let exchange = play(
            Self.toOpening + [
                .sameConnection(true), .lost, Self.again, .sameConnection(false),
                .token([1]), .expect(.sendOpening(.opening)), .sameConnection(true),
                .response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
                .token([3]), .expect(.send(.answer)),
                .response(200), .expect(.deliver(.accepted(.ntlm))),
            ])
        #expect(exchange.roundsAnswered == 3)
        play(
            Self.toOpening + [
                .lost, Self.again, .token([1]), .expect(.sendOpening(.opening)),
                .lost, .expect(.fail(reason: "the origin closed the connection twice before a response")),
            ])
    }

    @Test func aRequestWhoseOpeningWasIgnoredLeavesItsConnectionOnce() {
        let closed = Line.expect(.fail(reason: "the origin closed the connection before a response"))
        let toRequest = Self.toOpening + [.response(200), .expect(.send(nil)), .sameConnection(true)]
        play(
            .site(hasBody: true),
            toRequest + [
                .lostButMayRepeat, .expect(.send(nil)), .sameConnection(false),
                .response(200), .expect(.deliver(.notChallenged)),
            ])
        play(.site(hasBody: true), toRequest + [.lostButMayRepeat, .expect(.send(nil)), .lostButMayRepeat, closed])
        play(.site(hasBody: true), toRequest + [.lost, closed])
    }

    @Test func aConnectionLostWhileTheAnswerIsMadeStartsAgainWhenThatIsDone() {
        play(
            Self.toAnswer + [
                .lost, .expect(.wait), .sameConnection(false),
                .lost, .expect(.wait),
                .token([3]), Self.again,
                .lost, .expect(.wait),
                .token([1]), .expect(.sendOpening(.opening)),
                .response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
                .lost, .expect(.deliver(.handedBack(.no("the origin closed the connection twice")))),
                .token([3]), .expect(.wait),
            ])
        play(
            Self.toAnswer + [
                .lost, .expect(.wait),
                .event(.tokenFailed(reason: "no", isUnavailable: true)),
                .expect(.deliver(.handedBack(.ntlmOffered, .no(.noTicket("no"))))),
            ])
    }

    @Test func aWholeRequestThatMayNotRepeatIsNotSentAgain() {
        let closed = Line.expect(.fail(reason: "the origin closed the connection before a response"))
        play(Self.toAnswer + [.token([3]), .expect(.send(.answer)), .lost, closed])
        play(
            Self.toAnswer + [
                .token([3]), .expect(.send(.answer)),
                .lostButMayRepeat, Self.again, .sameConnection(false),
                .token([1]), .expect(.sendOpening(.opening)),
            ])
        let toBasic: [Line] = [
            .event(.started), .expect(.send(nil)),
            .response(401, "Basic realm=\"Wiki\""), .expect(.ask(.basic("Wiki"))),
            .decision(.jdoe), .expect(.send(.basic)),
        ]
        play(toBasic + [.lost, closed])
        let exchange = play(
            toBasic + [
                .lostButMayRepeat, .expect(.send(.basic)),
                .response(200), .expect(.deliver(.accepted(.basic, realm: "Wiki"))),
            ])
        #expect(exchange.roundsAnswered == 2)
        play(
            toBasic + [
                .lostButMayRepeat, .expect(.send(.basic)), .lostButMayRepeat,
                .expect(.fail(reason: "the origin closed the connection twice before a response")),
            ])
    }

    @Test func aFourthRoundIsNotSent() {
        let start: [Line] = [
            .event(.started), .expect(.send(.basic)),
            .response(401, "NTLM"), .expect(.ask(.ntlm)),
            .decision(.jdoe), Self.again,
            .token([1]), .expect(.sendOpening(.opening)),
        ]
        let exchange = play(
            .site(accepted: .basic),
            start + [
                .lost, Self.again, .token([1]), .expect(.sendOpening(.opening)),
                .response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
                .token([3]), .expect(.deliver(.handedBack(.no("more than 3 rounds")))),
            ])
        #expect(exchange.roundsAnswered == 3)
        // Without a held 401, there is nothing to hand back.
        play(
            .site(accepted: .basic),
            start + [
                .response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
                .token([3]), .expect(.send(.answer)),
                .lostButMayRepeat, Self.again,
                .token([1]), .expect(.fail(reason: "more than 3 rounds")),
            ])
    }

    @Test func aBodyThatCannotBeSentAgainHandsBackThe401() {
        let reason: Refusal = "the request body is longer than 1 MiB"
        let handedBack = Line.expect(.deliver(.handedBack(.no(reason))))
        let impossible = Line.event(.replayImpossible(reason: reason))
        play(Array(Self.toOpening.prefix(4)) + [impossible, handedBack, .decision(.jdoe), .expect(.wait)])
        play(Array(Self.toOpening.prefix(6)) + [impossible, handedBack, .token([1]), .expect(.wait)])
        play(Self.toOpening + [impossible, handedBack])
        play(
            Self.toAnswer + [
                impossible, handedBack, .event(.tokenFailed(reason: "no", isUnavailable: true)), .expect(.wait),
            ])
        play(Self.toAnswer + [.token([3]), .expect(.send(.answer)), impossible, handedBack, .lost, .expect(.wait)])
        // The 401 was discarded with its connection.
        play(Self.toOpening + [.lost, Self.again, impossible, .expect(.fail(reason: reason.text))])
        play(
            .site(hasBody: true),
            Self.toOpening + [.response(200), .expect(.send(nil)), impossible, .expect(.fail(reason: reason.text))])
    }

    @Test(arguments: [100, 102, 103, 199])
    func interimResponsesChangeNothing(status: Int) {
        play(
            Array(Self.toOpening.prefix(2)) + [.response(status), .expect(.wait)] + Self.toOpening.dropFirst(2) + [
                .response(status), .expect(.wait),
                .response(401, "NTLM Ag=="), .expect(.computeToken(.ntlm, .jdoe, serverToken: [2])),
                .token([3]), .expect(.send(.answer)),
                .response(status, "NTLM"), .expect(.wait),
                .response(200), .expect(.deliver(.accepted(.ntlm))),
            ])
    }

    @Test func a407SaysNothingOfOurAnswer() {
        play(
            .site(accepted: .basic),
            [.event(.started), .expect(.send(.basic)), .response(407), .expect(.deliver(.notChallenged))])
        play(
            Self.toAnswer + [
                .token([3]), .expect(.send(.answer)),
                .response(407, "NTLM"), .expect(.deliver(.notChallenged)), .sameConnection(true),
            ])
    }
}
