// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignChallenges

@Suite struct BreakerTests {
    private static let refusal = Breaker.Decision.refused(
        reason: Refusal(
            .blocked("enrollment"), "credential \"enrollment\" was rejected here and has not changed since"))
    private static let stopped = Breaker.Decision.refused(
        reason: Refusal(
            .blocked("enrollment"),
            "credential \"enrollment\" was rejected twice and is not sent anywhere until it changes"))
    private static let key = key()

    private static func key(
        host: String = "wiki.corp.example", realm: String? = "r", password: String = "pw", name: String = "enrollment",
        generation: UInt64 = 7
    ) -> Breaker.Key {
        .test(host: host, realm: realm, password: password, name: name, generation: generation)
    }

    // MARK: One at a time

    /// Simulates an origin that rejects every answer and a thousand requests that follow the breaker's decisions.
    /// Returns how many answers the origin received.
    private func answersSeen(inFlight: Int) -> Int {
        let breaker = SharedBreaker()
        var (answers, waiting, trying, refused, arrived) = (0, 0, 0, 0, 0)
        func ask() {
            switch breaker.ask(Self.key) {
            case .free, .mayTry: trying += 1
            case .wait: waiting += 1
            case .refused, .unsuitable: refused += 1
            }
        }
        while refused + answers < 1000 || trying > 0 {
            while waiting + trying < inFlight, arrived < 1000 {
                arrived += 1
                ask()
            }
            guard trying > 0 else { continue }
            trying -= 1
            answers += 1
            breaker.end(Self.key, .rejected)
            let asking = waiting
            waiting = 0
            for _ in 0..<asking { ask() }
        }
        #expect(refused == 999)
        return answers
    }

    @Test(arguments: [1, 2, 10, 1000])
    func aThousandRequestsWithAWrongPasswordAreOneAnswer(inFlight: Int) {
        #expect(answersSeen(inFlight: inFlight) == 1)
    }

    @Test func anAcceptedCredentialIsTriedByAll() {
        let breaker = SharedBreaker()
        #expect(breaker.ask(Self.key) == .mayTry)
        #expect(breaker.ask(Self.key) == .wait)
        breaker.end(Self.key, .accepted)
        #expect(breaker.ask(Self.key) == .free)
        #expect(breaker.ask(Self.key, "/other") == .free)
        breaker.end(Self.key, .inconclusive)
        #expect(breaker.ask(Self.key) == .free)
    }

    @Test func anInconclusiveAttemptLetsTheNextTry() {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key, .inconclusive)
        #expect(breaker.ask(Self.key) == .mayTry)
        #expect(breaker.ask(Self.key) == .wait)
    }

    @Test(arguments: [Breaker.Result.accepted, .inconclusive, .rejected, .unanswered])
    func aRejectionOutlivesWhatIsOnItsWay(_ result: Breaker.Result) {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key, .accepted)
        #expect(breaker.ask(Self.key) == .free)
        breaker.end(Self.key, .rejected)
        breaker.end(Self.key, result)
        #expect(breaker.ask(Self.key) == Self.refusal)
        #expect(breaker.breaker.isRejected(Self.key, at: breaker.now))
    }

    @Test func noMoreSitesThanMayFailTryAtTheSameTime() {
        let breaker = SharedBreaker()
        let keys = (1...3).map { Self.key(host: "h\($0)") }
        #expect(breaker.ask(keys[0]) == .mayTry)
        #expect(breaker.ask(keys[1]) == .mayTry)
        #expect(breaker.ask(keys[2]) == .wait)
        breaker.end(keys[0], .rejected)
        #expect(breaker.ask(keys[2]) == .wait)
        breaker.end(keys[1], .accepted)
        #expect(breaker.ask(keys[2]) == .mayTry)
    }

    // MARK: How far a rejection reaches

    @Test func aRejectionIsForOnePasswordInOneRealm() {
        let breaker = SharedBreaker()
        #expect(breaker.attempt(Self.key, .rejected) == .rejected(.challenge, everywhere: false))
        #expect(breaker.ask(Self.key) == Self.refusal)
        #expect(breaker.ask(Self.key(generation: 8)) == Self.refusal)
        #expect(breaker.ask(Self.key(name: "the same under another name")) != .mayTry)
        for other in [Self.key(password: "changed"), Self.key(realm: "other"), Self.key(host: "mail.corp.example")] {
            #expect(breaker.ask(other) == .mayTry)
            breaker.end(other, .inconclusive)
        }
    }

    @Test(arguments: [(nil, "r"), ("r", nil), (nil, nil)] as [(String?, String?)])
    func aRejectionByASchemeWithoutRealmsIsForTheWholeSite(rejected: String?, asked: String?) {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key(realm: rejected), .rejected)
        #expect(breaker.ask(Self.key(realm: asked)) == Self.refusal)
    }

    @Test func afterTheSecondRejectionACredentialIsUsedNowhere() {
        let breaker = SharedBreaker()
        let accepted = Self.key(host: "mail.corp.example")
        breaker.attempt(accepted, .accepted)
        #expect(breaker.attempt(Self.key, .rejected) == .rejected(.challenge, everywhere: false))
        #expect(breaker.attempt(Self.key(realm: "other"), .rejected) == .rejected(.challenge, everywhere: true))
        #expect(breaker.ask(accepted) == Self.stopped)
        #expect(breaker.ask(Self.key(host: "third.corp.example")) == Self.stopped)
        #expect(!breaker.breaker.mayPreempt(accepted, at: breaker.now))
        #expect(breaker.ask(Self.key(host: "third.corp.example", password: "changed")) == .mayTry)
    }

    // MARK: Missing permission

    @Test func aRequestWithoutPermissionBlocksNothing() {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key, "/private/", .accepted)
        #expect(breaker.attempt(Self.key, "/forbidden/", .rejected) == .handedBack)
        // It is not sent again before the realm has accepted the credential again.
        guard case .unsuitable = breaker.ask(Self.key, "/forbidden/") else {
            Issue.record("the request is sent again")
            return
        }
        #expect(!breaker.breaker.mayPreempt(Self.key, at: breaker.now))
        breaker.attempt(Self.key, "/private/", .accepted)
        #expect(breaker.breaker.mayPreempt(Self.key, at: breaker.now))
        #expect(breaker.attempt(Self.key, "/forbidden/", .rejected) == .handedBack)
        #expect(breaker.elsewhere().ask(Self.key, "/private/") == .mayTry)
    }

    @Test func anAcceptanceProvesAnAccountForTenSecondsInOneProcess() {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key, .accepted)
        breaker.now += 9
        #expect(breaker.ask(Self.key) == .free)
        #expect(breaker.breaker.mayPreempt(Self.key, at: breaker.now))
        let other = breaker.elsewhere()
        #expect(!other.breaker.mayPreempt(Self.key, at: breaker.now))
        #expect((1...3).map { other.ask(Self.key, "/\($0)") } == [.mayTry, .mayTry, .wait])
        breaker.now += 1
        #expect(!breaker.breaker.mayPreempt(Self.key, at: breaker.now))
        #expect((1...3).map { breaker.ask(Self.key, "/\($0)") } == [.mayTry, .mayTry, .wait])
    }

    /// Each answer that needed no permission was sent soon after a proof.
    @Test func acceptancesKeepAnAccountProvenWhileTrafficFlows() {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key, .accepted)
        for _ in 1...100 {
            breaker.now += 5
            #expect(breaker.attempt(Self.key, .accepted) == .unremarkable)
            #expect(breaker.ask(Self.key) == .free)
        }
        breaker.now += 10
        breaker.end(Self.key, .accepted)
        #expect(breaker.ask(Self.key) == .mayTry)
    }

    @Test func aPageThatAcceptsAnAnswerUnaskedProvesNothing() {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key, .accepted)
        breaker.now += 9
        breaker.end(Self.key, .acceptedUnasked)
        breaker.now += 1
        #expect(!breaker.breaker.mayPreempt(Self.key, at: breaker.now))
        #expect(breaker.ask(Self.key) == .mayTry)
    }

    @Test func aSlowAcceptanceDoesNotProveThatThePasswordIsRightNow() {
        let breaker = SharedBreaker()
        #expect(breaker.ask(Self.key) == .mayTry)
        breaker.now += 21
        breaker.end(Self.key, .accepted)
        #expect(breaker.ask(Self.key) == .mayTry)
    }

    /// The password may have changed between the two.
    @Test func whatWasSentBeforeAFailureDoesNotRefuteIt() {
        let breaker = SharedBreaker()
        let keys = (1...3).map { Self.key(host: "h\($0)") }
        for key in keys { breaker.attempt(key, .accepted) }
        breaker.now += 10
        #expect(keys.map { breaker.ask($0) } == [.mayTry, .mayTry, .wait])
        breaker.end(keys[0], "/", .rejected)
        breaker.end(keys[1], "/", .accepted)
        #expect(keys[1...2].map { breaker.ask($0) } == [.mayTry, .wait])
        breaker.end(keys[1], "/", .accepted)
        #expect(breaker.ask(keys[2]) == .free)
    }

    @Test func aChallengeToAnAnswerThatNobodyAskedForLeavesOneAttempt() {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key, .accepted)
        #expect(breaker.end(Self.key, .challengedUnasked) == .unremarkable)
        #expect(!breaker.breaker.mayPreempt(Self.key, at: breaker.now))
        #expect((1...3).map { breaker.ask(Self.key, "/\($0)") } == [.mayTry, .wait, .wait])
        breaker.end(Self.key, "/1", .accepted)
        #expect(breaker.ask(Self.key, "/3") == .free)
    }

    /// No server locks an account because of a token.
    @Test func aTokenIsFreeWhereverItWasAccepted() {
        let breaker = SharedBreaker()
        let token = Breaker.Key(
            space: AuthenticationSpace(origin: Self.key.space.origin, realm: "r", scheme: .bearer),
            credential: Self.key.credential)
        breaker.attempt(token, .accepted)
        breaker.now += 3600
        breaker.restart()
        #expect(breaker.breaker.mayPreempt(token, at: breaker.now))
        #expect(breaker.ask(token) == .free)
        #expect(breaker.attempt(token, .invalid) == .rejected(.challenge, everywhere: false))
        #expect(!breaker.breaker.mayPreempt(token, at: breaker.now))
    }

    // MARK: Silence

    @Test func anOriginThatDoesNotAnswerReceivesACredentialTwice() {
        let breaker = SharedBreaker()
        #expect(breaker.attempt(Self.key, .unanswered) == .unanswered)
        #expect(breaker.attempt(Self.key, .unanswered) == .rejected(.silence, everywhere: false))
        #expect(
            breaker.ask(Self.key)
                == .refused(
                    reason: Refusal(
                        .heldBack("enrollment"),
                        "the origin closed the connection twice instead of answering credential \"enrollment\"; "
                            + "`countersign credential retry enrollment` permits an attempt")))
        guard case .refused = breaker.ask(Self.key(host: "new.corp.example")) else {
            Issue.record("a third site receives it")
            return
        }
    }

    @Test func anUnansweredAttemptIsForgottenAfterADay() {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key, .unanswered)
        breaker.now += 86_400
        #expect(breaker.attempt(Self.key, .unanswered) == .unanswered)
        #expect(breaker.attempt(Self.key, .unanswered) == .rejected(.silence, everywhere: false))
    }

    @Test func aSilentOriginIsTriedAgainAfterADay() {
        let breaker = SharedBreaker()
        for _ in 1...2 { breaker.attempt(Self.key, .unanswered) }
        breaker.now += 86_399
        #expect(breaker.ask(Self.key) != .mayTry)
        breaker.now += 1
        #expect(breaker.attempt(Self.key, .unanswered) == .unanswered)
    }

    @Test func aLateAnswerLiftsWhatSilenceMeans() {
        let breaker = SharedBreaker()
        for _ in 1...2 { breaker.attempt(Self.key, .unanswered) }
        breaker.end(Self.key, .accepted)
        #expect(!breaker.breaker.isRejected(Self.key, at: breaker.now))
        // It was sent before the others, so the present validity of the password is unknown.
        #expect(breaker.ask(Self.key) != .mayTry)
        breaker.now += 1800
        #expect(breaker.ask(Self.key) == .mayTry)
    }

    // MARK: Stops of an account everywhere

    @Test func silenceAndOneRejectionDoNotStopAnAccountEverywhere() {
        let breaker = SharedBreaker()
        let accepted = Self.key(host: "mail.corp.example")
        let stale = Self.key(host: "stale.corp.example")
        for key in [accepted, stale] { breaker.attempt(key, .accepted) }
        breaker.attempt(Self.key(host: "silent.corp.example"), .unanswered)
        #expect(breaker.attempt(stale, "/new", .rejected) == .handedBack)
        breaker.now += 1800
        #expect(breaker.attempt(stale, .rejected) == .rejected(.challenge, everywhere: false))
        breaker.now += 3600
        #expect(breaker.attempt(accepted, .accepted) == .unremarkable)
        #expect(breaker.attempt(accepted, .rejected) == .rejected(.challenge, everywhere: true))
    }

    @Test func silenceAndARetryDoNotStopAnAccountEverywhere() throws {
        let breaker = SharedBreaker()
        let accepted = Self.key(host: "mail.corp.example")
        breaker.attempt(accepted, .accepted)
        for _ in 1...2 { breaker.attempt(Self.key, .unanswered) }
        #expect(breaker.retry() == ["enrollment"])
        breaker.attempt(Self.key, .unanswered)
        let account = try #require(breaker.breaker.accounts[Self.key.account])
        #expect(!account.isStopped)
    }

    // MARK: Another attempt

    /// The first request after the user's permission is the only one, wherever it goes.
    @Test(arguments: [Breaker.Result.rejected, .unanswered, .unknown], ["/", "/new"])
    func aRetryIsOneAttempt(_ result: Breaker.Result, path: String) {
        let keys = (1...5).map { Self.key(host: "h\($0)") }
        for isAccepted in [true, false] {
            let breaker = SharedBreaker()
            if isAccepted { for key in keys { breaker.attempt(key, .accepted) } }
            breaker.now += 3600
            breaker.restart()
            for key in keys { _ = breaker.sends(key, path, .unknown) }
            #expect(!breaker.sends(keys[4], path, .unknown))
            #expect(breaker.retry() == ["enrollment"])
            #expect(keys.reversed().count { breaker.sends($0, path, result) } == 1)
        }
    }

    @Test func theUserMayPermitOneMoreAttempt() {
        let breaker = SharedBreaker()
        let other = Self.key(host: "mail.corp.example")
        let unrelated = Self.key(password: "another", name: "printer")
        for key in [Self.key, other] { breaker.attempt(key, .rejected) }
        breaker.attempt(unrelated, .rejected)
        #expect(breaker.retry("nobody") == [])
        #expect(breaker.retry("enrollment") == ["enrollment"])
        #expect(breaker.ask(other) == .mayTry)
        #expect(breaker.ask(Self.key) == .wait)
        #expect(breaker.end(other, .rejected) == .rejected(.challenge, everywhere: true))
        #expect(breaker.ask(Self.key) == Self.stopped)
        #expect(breaker.ask(unrelated) != .mayTry)
        #expect(breaker.retry() == ["enrollment", "printer"])
        #expect(breaker.attempt(Self.key, .accepted) == .unremarkable)
        #expect(breaker.attempt(other, .rejected) == .rejected(.challenge, everywhere: false))
    }

    // MARK: Room

    private func key(_ number: Int) -> Breaker.Key { Self.key(host: "h\(number)", password: "\(number)") }

    @Test func theOldestAcceptanceMakesRoom() {
        let breaker = SharedBreaker(capacity: 3)
        for number in 0..<3 {
            breaker.now += 1
            breaker.attempt(key(number), .accepted)
        }
        breaker.now += 1
        breaker.end(key(0), .accepted)
        // Of the three, the second was accepted least recently.
        breaker.attempt(key(3), .accepted)
        #expect(breaker.breaker.count == 3)
        #expect(breaker.ask(key(0)) == .free)
        #expect(breaker.ask(key(2)) == .free)
        #expect(breaker.ask(key(1)) == .mayTry)
    }

    @Test func rejectionsAreNeverForgottenForRoom() {
        let breaker = SharedBreaker(capacity: 3)
        for number in 0..<3 { breaker.attempt(key(number), .rejected) }
        #expect(breaker.ask(key(4)) == .refused(reason: "too many rejected credentials are remembered"))
        breaker.end(key(5), .rejected)
        for number in 0..<3 { #expect(breaker.ask(key(number)) == Self.refusal) }
        #expect(breaker.breaker.count == 3)
    }

    // MARK: Keys

    @Test func aLongRealmIsShortened() {
        let marked = "a" + String(repeating: "\u{301}", count: 10_000)
        #expect((Self.key(realm: marked).space.realm ?? "").utf8.count < 100)
        let long = String(repeating: "a", count: 10_000)
        let keys = [Self.key(realm: long), Self.key(realm: long + "b"), Self.key(realm: long)]
        #expect(keys[0] == keys[2] && keys[0] != keys[1])
        #expect((keys[0].space.realm ?? "").utf8.count < 100)
    }

    @Test func aTagRevealsNothingAndDistinguishesUsersAndPasswords() {
        let key = Secret(utf8: "key")
        func tag(_ user: String, _ password: String, _ key: Secret = key) -> CredentialTag {
            CredentialTag(user: user, password: Secret(utf8: password), key: key)
        }
        #expect(tag("jdoe", "pw") == tag("JDoe", "pw"))
        // One account of a directory.
        for user in ["ACME\\jdoe", "jdoe@acme.example"] { #expect(tag(user, "pw") == tag("jdoe", "pw")) }
        for user in ["ACME\\", "@acme.example", "a\\b\\jdoe"] {
            #expect(tag(user, "pw") != tag("", "pw") && tag(user, "pw") != tag("jdoe", "pw"))
        }
        let tags = [tag("jdoe", "pw"), tag("jdoe", "PW"), tag("jdo", "epw"), tag("jdoe", "pw", Secret([]))]
        #expect(Set(tags).count == 4)
        #expect(CredentialTag(bytes: tag("jdoe", "pw").bytes) == tag("jdoe", "pw"))
        #expect(CredentialTag(bytes: [1]) == nil)
        // printf 'jdoe\0pw' | openssl dgst -sha256 -hmac key
        #expect(Hex.encode(tag("jdoe", "pw").bytes) == "e46d4612c06a60a6771a020590dae473")
    }
}
