// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignChallenges

/// Tests the complete table: every combination of state and event.
@Suite struct ExchangeMachineTableTests {
    private typealias Exchange = ExchangeMachine

    static let ntlm = pending(.ntlm, nil)
    static let basic = pending(.basic, "Wiki")

    private static func pending(
        _ kind: OfferKind, _ realm: String?, weaker: [Offer] = [], isPreemptive: Bool = false
    ) -> ExchangeMachine.PendingAnswer {
        ExchangeMachine.PendingAnswer(
            offer: kind.offer(realm), weaker: weaker, credential: .password(.jdoe),
            reference: PasswordCredential.jdoe.reference,
            isPreemptive: isPreemptive)
    }

    private static func asked(_ pending: ExchangeMachine.PendingAnswer) -> ExchangeMachine.State {
        .asked(
            ExchangeMachine.PendingDecision(
                offer: pending.offer, weaker: [], isPreemptive: pending.isPreemptive))
    }

    static let events: [(name: String, event: ExchangeMachine.Event)] = [
        ("started", .started),
        ("200", .responseReceived(status: 200, challengeFields: [])),
        ("200 with a last token", .responseReceived(status: 200, challengeFields: ["Negotiate BQ=="])),
        ("401 Basic", .responseReceived(status: 401, challengeFields: ["Basic realm=\"Wiki\""])),
        ("401 NTLM with a token", .responseReceived(status: 401, challengeFields: ["NTLM Ag=="])),
        ("103", .responseReceived(status: 103, challengeFields: [])),
        ("credential granted", .decisionReceived(.jdoe)),
        ("credential refused", .decisionReceived(.none)),
        ("token to be answered", .tokenComputed(DialogueToken([1], expectsReply: true))),
        ("final token", .tokenComputed(DialogueToken([3], expectsReply: false))),
        ("token failed", .tokenFailed(reason: "no", isUnavailable: false)),
        ("nothing to answer with", .tokenFailed(reason: "no", isUnavailable: true)),
        ("connection lost", .connectionLost(requestMayRepeat: false)),
        ("connection lost (may repeat)", .connectionLost(requestMayRepeat: true)),
        ("replay impossible", .replayImpossible(reason: "no")),
    ]

    /// One letter per event: `s`end as the client sent it, `S`end with our answer, `o`pening, `a`sk, `c`ompute a token,
    /// `d`eliver, `f`ail, `w`ait. `.` denotes a mistake of the driver.
    static let table: [(state: ExchangeMachine.State, row: String)] = [
        //                                             2 2 4 4 1 d d t t t t l l r
        (.ready, /*                                */ "s . . . . . . . . . . . . . ."),
        (.untouched, /*                            */ ". d d d d w . . . . . . f f ."),
        (.awaitingChallenge, /*                    */ ". d d a a w . . . . . . f f d"),
        (.awaitingReuse(.basic), /*                */ ". d d d a w . . . . . . f f ."),
        (asked(ntlm), /*                           */ ". . . . . . c d . . . . w w d"),
        (asked(basic), /*                          */ ". . . . . . S d . . . . w w d"),
        (.computingOpening(ntlm), /*               */ ". . . . . . . . o S d d w w d"),
        (.awaitingToken(ntlm, .opening), /*        */ ". s s d c w . . . . . . c c d"),
        (.computingReply(ntlm), /*                 */ ". . . . . . . . o S d d w w d"),
        (.abandoningReply(ntlm), /*                */ ". . . . . . . . c c d d w w d"),
        (.awaitingVerdict(ntlm, .answer), /*       */ ". d c d d w . . . . . . f c d"),
        (.awaitingVerdict(basic, .basic), /*       */ ". d d d d w . . . . . . f S d"),
        (.verifyingAcceptance(ntlm, .answer), /*   */ ". . . . . . . . d d f f w w ."),
        (.awaitingOpen(ntlm.offer), /*             */ ". d d d d w . . . . . . f s f"),
        (.finished, /*                             */ ". . . . . . w w w w w w w w ."),
    ]

    /// States that decide differently in another context, with the difference.
    static let variants: [(difference: String, state: ExchangeMachine.State, context: RequestContext, row: String)] = [
        ("refused", .ready, .site().with { $0.site = .no("not listed") }, "s . . . . . . . . . . . . . ."),
        ("an answer was accepted before", .ready, .site(accepted: .basic), "S . . . . . . . . . . . . . ."),
        ("a dialogue was accepted before", .ready, withoutContent, "a . . . . . . . . . . . . . ."),
        ("a dialogue was accepted before, with content", .ready, learned, "s . . . . . . . . . . . . . ."),
        ("pre-emptive", asked(preemptive), learned, ". . . . . . c s . . . . w w d"),
        ("pre-emptive", .computingOpening(preemptive), learned, ". . . . . . . . o S s s w w d"),
        ("pre-emptive", .awaitingToken(preemptive, .opening), learned, ". s s s c w . . . . . . c c f"),
        ("pre-emptive", .awaitingVerdict(preemptive, .answer), learned, ". d c s d w . . . . . . f c f"),
        ("a weaker offer", .computingOpening(strongest), .site(), ". . . . . . . . o S d a w w d"),
        ("no content", .awaitingToken(ntlm, .opening), .site(), ". d d d c w . . . . . . c c d"),
    ]

    private static let strongest = pending(.ntlm, nil, weaker: [OfferKind.basic.offer("Wiki")])
    private static let learned = RequestContext.site(hasBody: true, accepted: .ntlm(.ntlm))
    private static let withoutContent = RequestContext.site(accepted: .ntlm(.ntlm))
    private static let preemptive = pending(.ntlm, nil, isPreemptive: true)

    /// A machine in `state`, on a connection with an opening. It holds a challenge unless it has sent an answer without
    /// one.
    static func machine(in state: ExchangeMachine.State, _ context: RequestContext) -> ExchangeMachine {
        var machine = ExchangeMachine(context)
        machine.state = state
        machine.holdsChallenge = true
        switch state {
        case .awaitingToken(let pending, _), .awaitingVerdict(let pending, _):
            machine.holdsChallenge = !pending.isPreemptive
        default: break
        }
        machine.requiresSameConnection = true
        return machine
    }

    @Test func everyPairIsDecided() {
        let rows = Self.table.map { ($0.state, RequestContext.site(hasBody: true), $0.row) }
        for (state, context, row) in rows + Self.variants.map({ ($0.state, $0.context, $0.row) }) {
            let cells = row.split(separator: " ")
            #expect(cells.count == Self.events.count)
            for ((_, event), cell) in zip(Self.events, cells) {
                var exchange = Self.machine(in: state, context)
                #expect(Self.letter(exchange.decide(event)) == cell, "\(state) meets \(event)")
            }
        }
    }

    @Test func theTableHasEveryState() {
        #expect(Set(Self.table.map { $0.state.name }).count == 13)
    }

    /// A mistake leaves the state unchanged.
    @Test func aMistakeOfTheDriverChangesNothing() {
        for (state, row) in Self.table {
            for ((_, event), cell) in zip(Self.events, row.split(separator: " ")) where cell == "." {
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
            _ = exchange.tokenComputed(DialogueToken([], expectsReply: false))
        }
    }

    /// If no challenge is held, these events fail the exchange.
    @Test(arguments: [Exchange.Event.tokenFailed(reason: "no", isUnavailable: true), .replayImpossible(reason: "no")])
    func withoutA401NothingIsHandedBack(event: ExchangeMachine.Event) {
        for state in [Exchange.State.computingOpening(Self.ntlm), .abandoningReply(Self.ntlm)] {
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
}

extension ExchangeMachine.State {
    /// The state's name in the diagram.
    var name: String {
        switch self {
        case .ready: "ready"
        case .untouched: "untouched"
        case .awaitingChallenge: "awaitingChallenge"
        case .awaitingReuse: "awaitingReuse"
        case .asked: "asked"
        case .computingOpening: "computingOpening"
        case .awaitingToken: "awaitingToken"
        case .computingReply: "computingReply"
        case .abandoningReply: "abandoningReply"
        case .awaitingVerdict: "awaitingVerdict"
        case .verifyingAcceptance: "verifyingAcceptance"
        case .awaitingOpen: "awaitingOpen"
        case .finished: "finished"
        }
    }
}
