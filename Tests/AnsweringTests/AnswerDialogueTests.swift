// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import Synchronization
import Testing

@testable import CountersignAnswering
@testable import CountersignChallenges

/// The rules of answering, as transcripts: an event, and the action in short.
@Suite struct AnswerDialogueTests {
    private static let basic = "Basic realm=\"r\""
    private static let bearer = "Bearer realm=\"r\""
    private static let invalid = "Bearer realm=\"r\", error=\"invalid_token\""
    private static let rejection = "credential \"enrollment\" was rejected by the origin"

    private static func lines(_ exchange: AnsweredExchange) -> [String] { exchange.news.lines.withLock { $0 } }

    private static func tag(_ target: String) -> Breaker.RequestTag { .init(method: "GET", target: target) }

    /// The site accepts the password, for this request or for another one.
    private static func accepting(_ exchange: AnsweredExchange, target: String = "/p?q") throws {
        let key = exchange.key(.basic)
        let permission = exchange.breaker.request(key, for: tag(target)) {}
        guard case .permitted(let attempt) = permission else { throw Mistake() }
        exchange.breaker.ended(key.used(by: attempt), for: tag(target), .accepted)
    }

    private struct Mistake: Error {}

    // MARK: The breaker

    @Test func anAnswerHasAPermissionAndAResult() throws {
        let exchange = try AnsweredExchange("answer=basic")
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "send answer")
        #expect(exchange.breaker.isTried(exchange.key(.basic)))
        #expect(exchange.respond(200) == "accepted")
        #expect(!exchange.breaker.isTried(exchange.key(.basic)))
        #expect(exchange.breaker.record(of: exchange.key(.basic))?.acceptedAt == 1000)
        #expect(exchange.used == ["enrollment"] && exchange.answered == ["enrollment"])
        #expect(Self.lines(exchange) == ["answered with enrollment /p"])
    }

    @Test func aRejectedPasswordIsNotSentAgain() throws {
        let exchange = try AnsweredExchange("answer=basic")
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "send answer")
        #expect(exchange.respond(401, Self.basic) == "rejected: \(Self.rejection)")
        #expect(exchange.breaker.isRejected(exchange.key(.basic)))
        #expect(exchange.forgotten == 1)
        #expect(exchange.begin() == "send")
        #expect(
            exchange.respond(401, Self.basic)
                == "handed back: credential \"enrollment\" was rejected here and has not changed since")
        #expect(Self.lines(exchange).first == "rejected enrollment")
    }

    @Test func aSpaceThatHasAcceptedThePasswordRejectsOnlyTheRequest() throws {
        let exchange = try AnsweredExchange("answer=basic")
        try Self.accepting(exchange, target: "/other")
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "send answer")
        let reason = "credential \"enrollment\" is accepted here, but not for this request"
        #expect(exchange.respond(401, Self.basic) == "handed back: \(reason)")
        #expect(!exchange.breaker.isRejected(exchange.key(.basic)))
        #expect(exchange.answered == ["enrollment"] && exchange.forgotten == 0)
        #expect(Self.lines(exchange) == ["handed back Basic: \(reason)"])
    }

    @Test func anotherRequestsAttemptIsAwaited() throws {
        let exchange = try AnsweredExchange("answer=basic")
        let key = exchange.key(.basic)
        guard case .permitted(let attempt) = exchange.breaker.request(key, for: Self.tag("/x"), again: {}) else {
            throw Mistake()
        }
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "wait for turn")
        let later = try #require(exchange.later)
        let turns = Atomic(0)
        later.start { result in if case .over = result { turns.add(1, ordering: .relaxed) } }
        #expect(turns.load(ordering: .relaxed) == 0)
        exchange.breaker.ended(key.used(by: attempt), for: Self.tag("/x"), .accepted)
        #expect(turns.load(ordering: .relaxed) == 1)
        #expect(try exchange.resume(.over) == "send answer")
        // The turn that is over is no longer awaited.
        #expect(exchange.play(exchange.dialogue.resumed(later, with: .over, for: exchange)) == "wait")
    }

    /// It may come before the driver starts to wait for it.
    @Test func aTurnThatHasComeIsNotMissed() {
        let turn = Turn()
        let turns = Atomic(0)
        turn.come()
        turn.whenCome { turns.add(1, ordering: .relaxed) }
        #expect(turns.load(ordering: .relaxed) == 1)
    }

    @Test(arguments: [(Breaker.Result.unanswered, 1), (.unknown, 0)])
    func anAnswerWithoutAResponseCounts(_ result: Breaker.Result, unanswered: Int) throws {
        let exchange = try AnsweredExchange("answer=basic")
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "send answer")
        exchange.dialogue.lost(result, for: exchange)
        let record = try #require(exchange.breaker.record(of: exchange.key(.basic)))
        #expect(record.attempts.isEmpty && record.unanswered == unanswered && record.unaccepted.count == 1)
    }

    /// A permission whose answer was not sent says nothing.
    @Test func aPermissionThatIsNotUsedCountsNothing() throws {
        let exchange = try AnsweredExchange("answer=basic")
        #expect(exchange.begin() == "send")
        _ = exchange.dialogue.responseReceived(
            status: 401, challengeFields: [ChallengeField(Self.basic)], for: exchange)
        #expect(exchange.breaker.isTried(exchange.key(.basic)))
        exchange.dialogue.lost(.unanswered, for: exchange)
        let record = exchange.breaker.record(of: exchange.key(.basic))
        #expect(record?.attempts.isEmpty != false && record?.unaccepted.count ?? 0 == 0)
    }

    @Test func aDriverThatDecidesItselfGoesOnOnlyWithoutAnAttempt() throws {
        let exchange = try AnsweredExchange("answer=basic")
        #expect(exchange.begin() == "send")
        let beforeTheAnswer = exchange.dialogue.mayGoOn(withoutResponse: .unanswered, for: exchange)
        #expect(beforeTheAnswer)
        #expect(exchange.respond(401, Self.basic) == "send answer")
        #expect(exchange.dialogue.awaitsVerdict)
        let afterTheAnswer = exchange.dialogue.mayGoOn(withoutResponse: .unanswered, for: exchange)
        #expect(!afterTheAnswer)
        #expect(!exchange.dialogue.awaitsVerdict)
        #expect(exchange.breaker.record(of: exchange.key(.basic))?.unanswered == 1)
    }

    /// A password is not sent twice because a connection was lost.
    @Test func aPasswordIsNotSentAgainAfterALostConnection() throws {
        let exchange = try AnsweredExchange("answer=basic")
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "send answer")
        let action = exchange.dialogue.connectionLost(requestMayRepeat: true, for: exchange)
        #expect(exchange.play(action).hasPrefix("fail: "))
        #expect(exchange.breaker.record(of: exchange.key(.basic))?.unanswered == 1)
    }

    /// A parent examines the answer before it turns to the origin, which may be down for days.
    @Test(arguments: [ChallengeSource.origin, .parentProxy], [502, 503, 504])
    func aGatewaysResponseAcceptsOnlyWhatItExamines(_ source: ChallengeSource, _ status: Int) throws {
        let exchange = try AnsweredExchange("answer=basic")
        exchange.context.source = source
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(source.status, Self.basic) == "send answer")
        #expect(exchange.respond(status) == "accepted")
        let record = try #require(exchange.breaker.record(of: exchange.key(.basic)))
        #expect((record.acceptedAt != nil) == (source == .parentProxy))
        #expect(record.unaccepted.count == (source == .parentProxy ? 0 : 1))
    }

    // MARK: Before a challenge

    private static func unasked(_ exchange: AnsweredExchange) throws {
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "send answer")
        let action = exchange.dialogue.responseReceived(status: 200, challengeFields: [], for: exchange)
        guard case .deliver(.accepted(let accepted)) = action else { throw Mistake() }
        exchange.context.accepted = accepted
        #expect(exchange.begin() == "send answer")
    }

    @Test func anAnswerThatNobodyAskedForAndThatGetsNoResponseCounts() throws {
        let exchange = try AnsweredExchange("answer=basic")
        try Self.unasked(exchange)
        #expect(exchange.dialogue.awaitsVerdict && exchange.dialogue.hasSentUnaskedPassword)
        exchange.dialogue.lost(.unanswered, for: exchange)
        #expect(exchange.breaker.record(of: exchange.key(.basic))?.unanswered == 1)
        // Only once.
        exchange.dialogue.lost(.unanswered, for: exchange)
        #expect(exchange.breaker.record(of: exchange.key(.basic))?.unanswered == 1)
    }

    @Test func aChallengeToAnAnswerThatNobodyAskedForRejectsIt() throws {
        let exchange = try AnsweredExchange("answer=basic")
        try Self.unasked(exchange)
        // This request was accepted before, so that the password has changed.
        #expect(exchange.respond(401, Self.basic) == "rejected: \(Self.rejection)")
        #expect(exchange.breaker.isRejected(exchange.key(.basic)))
    }

    @Test func anotherRequestsDoubtWithdrawsWhatIsSentUnasked() throws {
        let exchange = try AnsweredExchange("answer=basic")
        try Self.unasked(exchange)
        #expect(!exchange.dialogue.mustWithdraw(exchange.breaker))
        exchange.breaker.ended(exchange.key(.basic), for: Self.tag("/x"), .unanswered)
        #expect(exchange.dialogue.mustWithdraw(exchange.breaker))
    }

    // MARK: A second look

    @Test func aTicketIsLookedForASecondTime() throws {
        let scheme = LookingScheme()
        let exchange = try AnsweredExchange("answer=basic", scheme: scheme)
        exchange.breaker.ended(scheme.key(0), for: Self.tag("/x"), .rejected)
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, "Look realm=\"r\"") == "wait for look")
        let later = try #require(exchange.later)
        #expect(!later.isOthersTime)
        later.start { _ in }
        #expect(scheme.looks.load(ordering: .relaxed) == 1)
        #expect(try exchange.resume(.over) == "send answer")
        #expect(exchange.breaker.isTried(scheme.key(1)))
    }

    @Test func thereIsOneSecondLook() throws {
        let scheme = LookingScheme()
        let exchange = try AnsweredExchange("answer=basic", scheme: scheme)
        exchange.breaker.ended(scheme.key(0), for: Self.tag("/x"), .rejected)
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, "Look realm=\"r\"") == "wait for look")
        // There was no further look-up, so nothing has changed.
        #expect(try exchange.resume(.over) == "handed back: nothing has changed")
    }

    // MARK: Weaker offers

    @Test func aWeakerOfferIsAnsweredWithWhatThereIs() throws {
        let exchange = try AnsweredExchange("answer=bearer,basic")
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.bearer, Self.basic) == "send answer")
        #expect(exchange.breaker.isTried(exchange.key(.basic)))
        #expect(!exchange.breaker.isTried(exchange.key(.bearer)))
    }

    /// The breaker's refusal is not a reason for a weaker offer.
    @Test func aRefusedCredentialIsNoReasonForAWeakerOffer() throws {
        let exchange = try AnsweredExchange("answer=digest,basic")
        exchange.breaker.ended(exchange.key(.digest), for: Self.tag("/x"), .rejected)
        #expect(exchange.begin() == "send")
        let digest = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5"
        #expect(exchange.respond(401, digest, Self.basic).hasPrefix("handed back: "))
        #expect(!exchange.breaker.isTried(exchange.key(.basic)))
    }

    @Test func anObstacleOfTheDriverIsTheReason() throws {
        let exchange = try AnsweredExchange("answer=basic")
        exchange.clientObstacle = "the client is no longer there"
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "handed back: the client is no longer there")
        exchange.trustObstacle = "no trust"
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "handed back: no trust")
        #expect(!exchange.breaker.isTried(exchange.key(.basic)))
    }

    // MARK: Access tokens

    private static let renewer = TokenRenewer { _, _ in .unchanged }

    @Test func anExpiredTokenIsRenewedBeforeItIsSent() throws {
        let exchange = try AnsweredExchange("answer=bearer", token: "old", expiry: 999, renewer: Self.renewer)
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.bearer) == "wait for renewal")
        #expect(exchange.later?.isOthersTime == true)
        #expect(try exchange.resume(.renewed(.renewed(AnsweredExchange.token("new", 2)))) == "send answer")
        #expect(exchange.dialogue.sent == AuthorizationField(scheme: "Bearer", token68: Secret(utf8: "new")))
        #expect(exchange.respond(200) == "accepted")
    }

    @Test func aTokenThatCannotBeRenewedIsNotSent() throws {
        let exchange = try AnsweredExchange("answer=bearer", token: "old", expiry: 999, renewer: Self.renewer)
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.bearer) == "wait for renewal")
        #expect(try exchange.resume(.renewed(.unavailable(reason: "signed out"))) == "handed back: signed out")
    }

    @Test func aTokenThatTheServerCallsInvalidIsRenewedOnce() throws {
        let exchange = try AnsweredExchange("answer=bearer", token: "old", renewer: Self.renewer)
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.bearer) == "send answer")
        #expect(exchange.respond(401, Self.invalid) == "wait for renewal")
        // Others do not wait for the provider, and the old token does not count.
        #expect(!exchange.breaker.isTried(exchange.key(.bearer)))
        #expect(try exchange.resume(.renewed(.renewed(AnsweredExchange.token("new", 2)))) == "send")
        #expect(exchange.beginnings == 1)
        #expect(exchange.respond(401, Self.bearer) == "send answer")
        #expect(exchange.dialogue.sent == AuthorizationField(scheme: "Bearer", token68: Secret(utf8: "new")))
        #expect(exchange.respond(401, Self.invalid) == "rejected: \(Self.rejection)")
        #expect(!exchange.breaker.isRejected(exchange.key(.bearer)))
    }

    @Test(arguments: [false, true])
    func aTokenThatIsInvalidAndStaysIsRejected(isUnavailable: Bool) throws {
        let exchange = try AnsweredExchange("answer=bearer", token: "old", renewer: Self.renewer)
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.bearer) == "send answer")
        #expect(exchange.respond(401, Self.invalid) == "wait for renewal")
        let outcome: TokenRenewer.Outcome = isUnavailable ? .unavailable(reason: "signed out") : .unchanged
        let reason = isUnavailable ? "signed out" : Self.rejection
        #expect(try exchange.resume(.renewed(outcome)) == "rejected: \(reason)")
        #expect(exchange.breaker.isRejected(exchange.key(.bearer)))
        #expect(Self.lines(exchange) == ["rejected enrollment"])
    }

    @Test func aRequestThatCannotBeginAgainKeepsItsToken() throws {
        let exchange = try AnsweredExchange("answer=bearer", token: "old", renewer: Self.renewer)
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.bearer) == "send answer")
        exchange.mayBegin = false
        #expect(exchange.respond(401, Self.invalid) == "rejected: \(Self.rejection)")
    }

    @Test func aTokenThatTheBreakerRefusesIsRenewed() throws {
        let exchange = try AnsweredExchange("answer=bearer", token: "old", renewer: Self.renewer)
        exchange.breaker.ended(exchange.key(.bearer), for: Self.tag("/x"), .invalid)
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.bearer) == "wait for renewal")
        #expect(try exchange.resume(.renewed(.unchanged)).hasPrefix("handed back: credential \"enrollment\" was"))
    }

    /// An error that this version does not know does not count against the token.
    @Test func anUnknownErrorOfATokenRejectsNothing() throws {
        let exchange = try AnsweredExchange("answer=bearer", token: "old", renewer: Self.renewer)
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.bearer) == "send answer")
        #expect(
            exchange.respond(401, "Bearer realm=\"r\", error=\"insufficient_claims\"")
                == "handed back: the origin does not accept the token for this request (insufficient_claims)")
        #expect(!exchange.breaker.isRejected(exchange.key(.bearer)))
        #expect(!exchange.breaker.isTried(exchange.key(.bearer)))
    }

    // MARK: Passwords

    private static let other = PasswordCredential(
        name: "other", user: "jdoe", password: Secret(utf8: "new"), generation: 2)

    @Test func aRejectedPasswordIsReplaced() throws {
        let exchange = try AnsweredExchange("answer=basic")
        exchange.asksPerson = true
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "send answer")
        #expect(exchange.respond(401, Self.basic) == "wait for question")
        #expect(exchange.later?.isOthersTime == true && exchange.later?.outcome != nil)
        #expect(exchange.breaker.isRejected(exchange.key(.basic)))
        #expect(try exchange.resume(.supplied(Self.other)) == "send")
        #expect(exchange.respond(401, Self.basic) == "send answer")
        #expect(exchange.respond(200) == "accepted")
        #expect(exchange.used == ["enrollment", "other", "other"])
    }

    @Test func aPersonWithoutAnotherPasswordGetsTheChallenge() throws {
        let exchange = try AnsweredExchange("answer=basic")
        exchange.asksPerson = true
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "send answer")
        #expect(exchange.respond(401, Self.basic) == "wait for question")
        #expect(try exchange.resume(.supplied(nil)) == "rejected: \(Self.rejection)")
        #expect(Self.lines(exchange) == ["rejected enrollment"])
    }

    @Test func aPersonIsAskedThreeTimesAtMost() throws {
        let exchange = try AnsweredExchange("answer=basic")
        exchange.asksPerson = true
        #expect(exchange.begin() == "send")
        for number in 1...3 {
            #expect(exchange.respond(401, Self.basic) == "send answer")
            #expect(exchange.respond(401, Self.basic) == "wait for question")
            let next = PasswordCredential(
                name: "other", user: "jdoe", password: Secret(utf8: "\(number)"), generation: UInt64(number) + 1)
            #expect(try exchange.resume(.supplied(next)) == "send")
        }
        #expect(exchange.respond(401, Self.basic) == "send answer")
        #expect(exchange.respond(401, Self.basic).hasPrefix("rejected: "))
    }

    // MARK: The end

    @Test func theVerdictOfALateResponseCounts() throws {
        let exchange = try AnsweredExchange("answer=basic")
        exchange.asksPerson = true
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "send answer")
        let outcome = exchange.dialogue.lateResponseReceived(
            status: 401, challengeFields: [ChallengeField(Self.basic)], for: exchange)
        guard case .rejected? = outcome else { throw Mistake() }
        #expect(exchange.breaker.isRejected(exchange.key(.basic)))
    }

    @Test func aLateChallengeIsNotAnswered() throws {
        let exchange = try AnsweredExchange("answer=basic")
        #expect(exchange.begin() == "send")
        let outcome = exchange.dialogue.lateResponseReceived(
            status: 401, challengeFields: [ChallengeField(Self.basic)], for: exchange)
        #expect(outcome == nil && !exchange.breaker.isTried(exchange.key(.basic)))
    }

    @Test func whatIsGivenUpIsHandedBack() throws {
        let exchange = try AnsweredExchange("answer=basic")
        #expect(exchange.begin() == "send")
        #expect(exchange.respond(401, Self.basic) == "send answer")
        exchange.dialogue.givenUp(because: "too slow", for: exchange)
        #expect(Self.lines(exchange) == ["handed back Basic: too slow"])
    }
}

/// A scheme with a proof that is not enrolled: the breaker knows it by a version, which a look-up increments.
private final class LookingScheme: Authenticator {
    let looks = Atomic<UInt64>(0)

    var schemeName: String { "Look" }
    var scheme: AuthenticationScheme { .basic }

    func obstacle(to credential: EnrolledCredential, _ context: RequestContext) -> String? { nil }

    func proof<Proof>(for request: CredentialRequest, from source: some ProofSource<Proof>) -> Proof { source.ticket }

    func permitKey(of credential: CredentialReference, in space: AuthenticationSpace) -> Breaker.Key? {
        key(looks.load(ordering: .relaxed))
    }

    func key(_ version: UInt64) -> Breaker.Key {
        Breaker.Key(
            space: AuthenticationSpace(origin: AnsweredExchange.origin, realm: "r", scheme: .basic),
            credential: CredentialReference.ticket.ticket(version: version, at: AnsweredExchange.origin))
    }

    func secondLook(for credential: CredentialReference) -> SecondLook? {
        SecondLook(unchanged: "nothing has changed") { [self] done in
            looks.add(1, ordering: .relaxed)
            done()
        }
    }

    func reply(
        to challenge: Challenge, with credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> Reply {
        .answer(.fixed(AuthorizationField(scheme: schemeName, token68: Secret(utf8: "ticket"))))
    }

    func preemption(after answer: Answer) -> Preemption { .none }
}
