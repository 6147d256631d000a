// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignChallenges

/// The whole table: each state meets each event.
@Suite struct ExchangeMachineTableTests {
    private typealias Exchange = ExchangeMachine

    private static let ntlm = Exchange.PendingAnswer(
        offer: Offer(kind: .ntlm, challenge: Challenge(scheme: "NTLM")), credential: .jdoe, isLearned: false)
    private static let basic = Exchange.PendingAnswer(
        offer: Offer(
            kind: .basic, challenge: Challenge(scheme: "Basic", parameters: [AuthParameter("realm", "Wiki")])),
        credential: .jdoe, isLearned: false)

    private static let events: [Exchange.Event] = [
        .started,
        .responseReceived(status: 200, challengeFields: []),
        .responseReceived(status: 401, challengeFields: ["Basic realm=\"Wiki\""]),
        .responseReceived(status: 401, challengeFields: ["NTLM Ag=="]),
        .responseReceived(status: 103, challengeFields: []),
        .decisionReceived(.jdoe),
        .decisionReceived(.none),
        .tokenComputed([1]),
        .tokenFailed(reason: "no"),
        .connectionLost(requestMayRepeat: false),
        .connectionLost(requestMayRepeat: true),
        .replayImpossible(reason: "no"),
    ]

    /// A letter for each event: `s`end as it came, `S`end with ours, `o`pening, `a`sk, `c`ompute, `d`eliver, `f`ail, `w`ait,
    /// `.` the driver's mistake.
    private static let table: [(state: Exchange.State, row: String)] = [
        //                                                  2 4 4 1 d d t t l l r
        (.ready, /*                                      */ "s . . . . . . . . . . ."),
        (.untouched, /*                                  */ ". d d d w . . . . f f ."),
        (.awaitingChallenge, /*                          */ ". d a a w . . . . f f ."),
        (.awaitingLearned(realm: "Wiki", credential: jdoe), ". d d a w . . . . f f ."),
        (.asked(Exchange.Question(offer: ntlm.offer, weaker: [], isLearned: false)), ". . . . . c d . . w w d"),
        (.asked(Exchange.Question(offer: basic.offer, weaker: [], isLearned: false)), ". . . . . S d . . w w d"),
        (.computingOpening(ntlm), /*                     */ ". . . . . . . o d w w d"),
        (.awaitingToken(ntlm), /*                        */ ". s d c w . . . . c c d"),
        (.computingAnswer(ntlm), /*                      */ ". . . . . . . S d w w d"),
        (.abandoningAnswer(ntlm), /*                     */ ". . . . . . . c d w w d"),
        (.awaitingVerdict(ntlm, .answer), /*             */ ". d d d w . . . . f c d"),
        (.awaitingVerdict(basic, .basic), /*             */ ". d d d w . . . . f S d"),
        (.awaitingOpen, /*                               */ ". d d d w . . . . f f f"),
        (.finished, /*                                   */ ". . . . . w w w w w w ."),
    ]
    private static let jdoe = PasswordCredential.jdoe.reference

    @Test func everyPairIsDecided() {
        for (state, row) in Self.table {
            let cells = row.split(separator: " ")
            #expect(cells.count == Self.events.count)
            for (event, cell) in zip(Self.events, cells) {
                var exchange = Exchange(.site(hasBody: true))
                exchange.state = state
                exchange.holdsChallenge = true
                #expect(Self.letter(exchange.decide(event)) == cell, "\(state) meets \(event)")
            }
        }
    }

    @Test func theTableHasEveryState() {
        #expect(Set(Self.table.map { Self.name($0.state) }).count == 12)
    }

    /// What a mistake leaves undone: the state is as it was.
    @Test func aMistakeOfTheDriverChangesNothing() {
        for (state, row) in Self.table {
            for (event, cell) in zip(Self.events, row.split(separator: " ")) where cell == "." {
                var exchange = Exchange(.site())
                exchange.state = state
                #expect(exchange.decide(event) == nil)
                #expect(exchange.state == state)
            }
        }
    }

    @Test func aMistakeOfTheDriverTraps() async {
        await #expect(processExitsWith: .failure) {
            var exchange = ExchangeMachine(.site())
            _ = exchange.tokenComputed([])
        }
    }

    /// With nothing in hand to hand back, what cannot go on fails.
    @Test(arguments: [Exchange.Event.tokenFailed(reason: "no"), .replayImpossible(reason: "no")])
    func withoutA401NothingIsHandedBack(event: ExchangeMachine.Event) {
        for state in [Exchange.State.computingOpening(Self.ntlm), .abandoningAnswer(Self.ntlm)] {
            var exchange = Exchange(.site())
            exchange.state = state
            #expect(exchange.decide(event) == .fail(reason: "no"))
        }
    }

    private static func letter(_ action: ExchangeMachine.Action?) -> Substring {
        switch action {
        case nil: "."
        case .send(nil): "s"
        case .send: "S"
        case .sendOpening: "o"
        case .ask: "a"
        case .computeToken: "c"
        case .deliver: "d"
        case .fail: "f"
        case .wait: "w"
        }
    }

    private static func name(_ state: ExchangeMachine.State) -> Int {
        switch state {
        case .ready: 0
        case .untouched: 1
        case .awaitingChallenge: 2
        case .awaitingLearned: 3
        case .asked: 4
        case .computingOpening: 5
        case .awaitingToken: 6
        case .computingAnswer: 7
        case .abandoningAnswer: 8
        case .awaitingVerdict: 9
        case .awaitingOpen: 10
        case .finished: 11
        }
    }
}
