// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignChallenges

/// How often a password that has become stale is sent, and that a good one is not kept from being used.
@Suite struct UnacceptedAnswerTests {
    private static let key = Breaker.Key.test()
    private static let sites = (1...10).map { Breaker.Key.test(host: "h\($0).corp.example") }

    /// A breaker of a new process, in which each of `keys` was accepted an hour ago, for `/` and then for `paths`.
    private static func accepted(_ keys: [Breaker.Key] = [key], _ paths: [String] = []) -> SharedBreaker {
        let breaker = SharedBreaker()
        for key in keys {
            for path in ["/"] + paths { breaker.attempt(key, path, .accepted) }
        }
        breaker.now += 3600
        breaker.restart()
        return breaker
    }

    private func isUnsuitable(_ decision: Breaker.Decision) -> Bool {
        if case .unsuitable = decision { true } else { false }
    }

    /// The site refuses these requests, while another one accepts the account.
    private func refuse(_ paths: [String], _ breaker: SharedBreaker) {
        for path in paths {
            #expect(breaker.attempt(Self.key, path, .rejected) == .handedBack)
            breaker.acceptElsewhere()
        }
    }

    // MARK: In one space

    @Test(arguments: [Breaker.Result.unanswered, .unknown])
    func aStalePasswordIsSentToASilentSiteTwiceAndThenMoreAndMoreRarely(_ result: Breaker.Result) {
        let breaker = Self.accepted()
        var sent: [Int64] = []
        for minute in Int64(0)..<24 * 60 {
            // A command per minute, for a request that the site has accepted before.
            if breaker.sends(Self.key, "/", result) { sent.append(minute) }
            breaker.now += 60
            breaker.restart()
        }
        #expect(sent == [0, 1, 31, 91, 211, 451, 691, 931, 1171, 1411])
    }

    @Test func aKilledProcessCountsAsOneThatGaveUp() {
        let breaker = Self.accepted()
        for _ in 1...2 {
            #expect(breaker.ask(Self.key) == .mayTry)
            breaker.killAll()
        }
        #expect(isUnsuitable(breaker.ask(Self.key)))
        breaker.now += 1800
        #expect(breaker.attempt(Self.key, .accepted) == .unremarkable)
        #expect(breaker.ask(Self.key, "/other") == .free)
    }

    /// The reason for a pause, or for counting silence, also names the command that ends it.
    @Test func eachReasonForAPauseNamesTheCommandThatEndsIt() {
        func reason(_ decision: Breaker.Decision) -> String? {
            switch decision {
            case .refused(let reason), .unsuitable(let reason): reason.text
            case .free, .mayTry, .wait: nil
            }
        }
        let command = "`countersign credential retry enrollment`"
        let histories: [[Breaker.Result]] = [
            [.unanswered, .unanswered], [.unknown, .unknown], [.unknown, .unanswered],
        ]
        let elsewhere = Breaker.Key.test(host: "new.corp.example")
        var reasons: Set<String> = []
        for isAccepted in [true, false] {
            for results in histories {
                let breaker = isAccepted ? Self.accepted() : SharedBreaker()
                for result in results { breaker.attempt(Self.key, result) }
                let asked = [breaker.ask(Self.key), breaker.ask(Self.key, "/other"), breaker.ask(elsewhere)]
                reasons.formUnion(asked.compactMap(reason))
            }
        }
        #expect(reasons.count >= 4 && reasons.allSatisfy { $0.contains(command) }, "\(reasons)")
    }

    @Test func theFindingSaysHowLongNothingIsSent() {
        let breaker = Self.accepted()
        #expect(breaker.attempt(Self.key, .unanswered) == .unanswered)
        #expect(breaker.attempt(Self.key, .unanswered) == .paused(seconds: 1800))
        #expect(
            breaker.ask(Self.key)
                == .unsuitable(
                    reason: Refusal(
                        .heldBack("enrollment"),
                        "credential \"enrollment\" was sent here without a response, and is not sent for "
                            + "30 minutes; `countersign credential retry enrollment` permits an attempt")))
        breaker.now += 1799
        #expect(
            breaker.ask(Self.key)
                == .unsuitable(
                    reason: Refusal(
                        .heldBack("enrollment"),
                        "credential \"enrollment\" was sent here without a response, and is not sent for "
                            + "a minute; `countersign credential retry enrollment` permits an attempt")))
        breaker.now += 1
        #expect(breaker.attempt(Self.key, .unknown) == .paused(seconds: 3600))
    }

    @Test func aResponseEndsTheSilence() {
        let breaker = Self.accepted()
        for _ in 1...2 { breaker.attempt(Self.key, .unanswered) }
        breaker.now += 1800
        // A 401 for another request says that the origin responds.
        #expect(breaker.attempt(Self.key, "/new", .rejected) == .handedBack)
        breaker.now += 3600
        #expect(breaker.attempt(Self.key, .accepted) == .unremarkable)
        #expect(breaker.ask(Self.key, "/new") == .free)
    }

    @Test func aPageThatWasAcceptedMayDecideAfterOneThatCrashed() {
        let breaker = Self.accepted([Self.key], ["/good"])
        for _ in 1...9 {
            breaker.attempt(Self.key, "/crash", .unanswered)
            breaker.attempt(Self.key, "/good", .accepted)
        }
        #expect(breaker.ask(Self.key, "/new") == .free)
        for _ in 1...2 { breaker.attempt(Self.key, "/crash", .unanswered) }
        for path in ["/crash", "/good", "/new"] { #expect(isUnsuitable(breaker.ask(Self.key, path))) }
    }

    @Test(arguments: [true, false])
    func aPasswordThatHasBecomeStaleIsSentTwice(isRepeated: Bool) {
        let breaker = Self.accepted([Self.key], (1...20).map { "/\($0)" })
        var answers = 0
        for number in 1...1000 {
            let path = isRepeated ? "/\(number % 20 + 1)" : "/new/\(number)"
            if breaker.sends(Self.key, path, .rejected) { answers += 1 }
            breaker.restart()
        }
        #expect(answers == 2)
    }

    @Test func otherRequestsMayTryAgainHalfAnHourAfterAChallengeThatRejectedNothing() {
        let breaker = Self.accepted()
        for path in ["/a", "/b"] { #expect(breaker.attempt(Self.key, path, .rejected) == .handedBack) }
        #expect(isUnsuitable(breaker.ask(Self.key, "/c")))
        breaker.now += 1800
        #expect(breaker.attempt(Self.key, "/c", .rejected) == .handedBack)
        breaker.now += 1800
        #expect(isUnsuitable(breaker.ask(Self.key, "/d")))
        breaker.now += 1800
        #expect(breaker.ask(Self.key, "/d") == .mayTry)
    }

    @Test func anUnacceptedAnswerIsForgottenAfterADay() {
        let breaker = Self.accepted()
        for _ in 1...2 { breaker.attempt(Self.key, .unknown) }
        breaker.now += 86_400
        #expect(breaker.ask(Self.key) == .mayTry)
        #expect(breaker.end(Self.key, .unknown) == .unremarkable)
        #expect(breaker.ask(Self.key) == .mayTry)
    }

    // MARK: In many spaces

    @Test(arguments: [Breaker.Result.rejected, .unanswered, .unknown], ["/", "/new"])
    func tenSitesThatAcceptedAStalePasswordReceiveItTwice(_ result: Breaker.Result, path: String) {
        let breaker = Self.accepted(Self.sites)
        var sent = 0
        for _ in 1...3 {
            for site in Self.sites where breaker.sends(site, path, result) { sent += 1 }
        }
        #expect(sent == 2)
        // Two that were accepted before have decided.
        let isStopped = breaker.breaker.accounts[Self.key.account]?.isStopped
        #expect(isStopped == (result == .rejected && path == "/"))
    }

    @Test func tenSilentSitesReceiveAStalePasswordTwiceAndThenRarely() {
        let breaker = Self.accepted(Self.sites)
        func sent() -> Int { Self.sites.count { breaker.sends($0, "/", .unknown) } }
        #expect((1...3).map { _ in sent() } == [2, 0, 0])
        breaker.now += 1800
        #expect(sent() == 1)
        breaker.now += 1800
        #expect(sent() == 0)
        breaker.now += 1800
        #expect(sent() == 1)
    }

    @Test func anAcceptanceAnywhereEndsTheDoubtAboutTheAccount() {
        let breaker = Self.accepted(Self.sites)
        breaker.attempt(Self.sites[0], "/new", .rejected)
        #expect(Self.sites[1...2].map { breaker.ask($0) } == [.mayTry, .wait])
        breaker.end(Self.sites[1], "/", .accepted)
        #expect(breaker.ask(Self.sites[2]) == .free)
        #expect(breaker.ask(Self.sites[0]) == .mayTry)
    }

    @Test func anOutageOfOneSiteBlocksNoOtherThatIsUsed() {
        let breaker = Self.accepted(Self.sites)
        for _ in 1...2 {
            breaker.attempt(Self.sites[0], "/", .unanswered)
            breaker.attempt(Self.sites[1], "/new", .accepted)
        }
        // And neither does it block a site that has not accepted the password yet.
        #expect(breaker.ask(Self.key) == .mayTry)
        #expect(isUnsuitable(breaker.ask(Self.sites[0], "/")))
    }

    /// A site with a directory of its own still accepts the password.
    @Test func anAcceptanceElsewhereDoesNotEndThePauseOfASpace() {
        let breaker = Self.accepted(Self.sites)
        var sent = 0
        for number in 1...100 {
            if breaker.sends(Self.sites[0], "/new/\(number)", .rejected) { sent += 1 }
            breaker.attempt(Self.sites[1], "/", .accepted)
        }
        #expect(sent == 2)
    }

    @Test func aNewSiteIsNotTriedAfterTwoUnacceptedAnswers() {
        let breaker = Self.accepted(Self.sites)
        for site in Self.sites.prefix(2) { breaker.attempt(site, "/new", .rejected) }
        #expect(isUnsuitable(breaker.ask(Self.key)))
        breaker.now += 1800
        #expect(breaker.ask(Self.key) == .mayTry)
    }

    // MARK: At the same time

    @Test func atMostTwoRequestsTryAtATime() {
        let breaker = Self.accepted(Self.sites)
        let first = Array(repeating: Breaker.Decision.mayTry, count: 2)
        #expect(Self.sites.map { breaker.ask($0) } == first + Array(repeating: .wait, count: 8))
        breaker.end(Self.sites[0], .unknown)
        // One is left, and one was not accepted.
        #expect(breaker.ask(Self.sites[3]) == .wait)
        breaker.end(Self.sites[1], .inconclusive)
        #expect(Self.sites[3...4].map { breaker.ask($0) } == [.mayTry, .wait])
    }

    /// Both places may be in one space.
    @Test func aSlowRequestHoldsUpNoOtherOfItsSite() {
        let breaker = Self.accepted()
        #expect(breaker.ask(Self.key, "/slow") == .mayTry)
        breaker.attempt(Self.key, "/quick", .accepted)
        #expect(breaker.ask(Self.key, "/next") == .free)
    }

    /// The password may have changed after the directory has judged it.
    @Test func aSlowAcceptanceProvesTheTimeOfTheQuestion() {
        let breaker = Self.accepted()
        #expect(breaker.ask(Self.key, "/slow") == .mayTry)
        breaker.now += 9
        breaker.end(Self.key, "/slow", .accepted)
        #expect(breaker.ask(Self.key) == .free)
        breaker.now += 1
        #expect(breaker.ask(Self.key) == .mayTry)
    }

    @Test func aClockThatIsSetBackEndsNoPause() {
        let breaker = Self.accepted()
        for path in ["/", "/"] { breaker.attempt(Self.key, path, .unknown) }
        breaker.now -= 3600
        #expect(isUnsuitable(breaker.ask(Self.key)))
    }

    @Test func slowRequestsHoldUpOthersForTwentySeconds() {
        let breaker = Self.accepted()
        #expect((1...2).map { breaker.ask(Self.key, "/slow/\($0)") } == [.mayTry, .mayTry])
        breaker.now += 20
        #expect(breaker.ask(Self.key, "/next") == .wait)
        breaker.now += 1
        // One at a time from now on.
        #expect((1...3).map { breaker.ask(Self.key, "/next/\($0)") } == [.mayTry, .wait, .wait])
        breaker.end(Self.key, "/next/1", .accepted)
        #expect(breaker.ask(Self.key, "/next/2") == .free)
    }

    @Test func afterAnUnacceptedAnswerOneRequestTriesAtATime() {
        let breaker = Self.accepted(Self.sites)
        breaker.attempt(Self.sites[0], "/new", .rejected)
        #expect(Self.sites[1...3].map { breaker.ask($0) } == [.mayTry, .wait, .wait])
        breaker.end(Self.sites[1], "/", .unknown)
        #expect(isUnsuitable(breaker.ask(Self.sites[3])))
        #expect(breaker.ask(Self.key) != .mayTry)
    }

    @Test(arguments: [Breaker.Result.rejected, .unanswered, .unknown])
    func whatWasSentTogetherCountsOnce(_ result: Breaker.Result) {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key, .accepted)
        #expect(breaker.ask(Self.key, "/1") == .free)
        // A browser cancels ten requests, or ten resources of a page need a permission.
        for number in 1...10 { breaker.end(Self.key, "/\(number)", result) }
        #expect(!breaker.breaker.mayPreempt(Self.key, at: breaker.now))
        #expect(breaker.ask(Self.key, "/new") == .mayTry)
        breaker.end(Self.key, "/new", .accepted)
        #expect(breaker.breaker.mayPreempt(Self.key, at: breaker.now))
        #expect(breaker.ask(Self.key, "/1") == .free)
    }

    /// The network goes down while every site has a request in flight.
    @Test(arguments: [Breaker.Result.unanswered, .unknown])
    func whatWasSentTogetherToManySitesCountsOnceForTheAccount(_ result: Breaker.Result) {
        let breaker = SharedBreaker()
        for site in Self.sites { breaker.attempt(site, .accepted) }
        for site in Self.sites { breaker.end(site, "/in-flight", result) }
        #expect(breaker.breaker.accounts[Self.key.account]?.unaccepted.count == 1)
        for site in Self.sites { breaker.attempt(site, "/new", .accepted) }
    }

    /// Every site has a request that takes long, such as a long poll, and then the process or the network ends.
    @Test(arguments: [true, false])
    func longAttemptsThatEndTogetherCountOnceForTheAccount(isKilled: Bool) {
        let breaker = Self.accepted(Self.sites)
        for site in Self.sites {
            #expect(breaker.ask(site, "/long") == .mayTry)
            breaker.now += 30
        }
        if isKilled {
            breaker.killAll()
        } else {
            for site in Self.sites { breaker.end(site, "/long", .unknown) }
        }
        #expect(breaker.breaker.accounts[Self.key.account]?.unaccepted.count == 1)
        #expect(breaker.ask(Self.sites[0], "/new") == .mayTry)
    }

    @Test func longAttemptsOneAfterTheOtherAllCount() {
        let breaker = Self.accepted(Self.sites)
        var sent = 0
        for site in Self.sites where breaker.ask(site, "/") == .mayTry {
            sent += 1
            breaker.now += 60
            breaker.end(site, "/", .unknown)
            breaker.now += 1
        }
        #expect(sent == 2)
    }

    @Test func anAttemptThatTakesLongHoldsUpNoOtherSite() {
        let breaker = Self.accepted(Self.sites)
        breaker.attempt(Self.sites[0], "/new", .rejected)
        #expect(breaker.ask(Self.sites[1], "/long") == .mayTry)
        #expect(breaker.ask(Self.sites[2]) == .wait)
        #expect(breaker.ask(Self.key) == .wait)
        breaker.now += 21
        #expect(breaker.ask(Self.sites[2]) == .mayTry)
        #expect(breaker.ask(Self.sites[3]) == .wait)
        breaker.end(Self.sites[2], .inconclusive)
        #expect(breaker.ask(Self.key) == .mayTry)
        // Those at sites that have never accepted the password hold up each other for longer.
        breaker.now += 600
        #expect(breaker.ask(.test(host: "new.corp.example")) == .wait)
        breaker.now += 1
        #expect(breaker.ask(.test(host: "new.corp.example")) == .mayTry)
    }

    @Test func anotherRequestsEndDoesNotEndAnAttempt() {
        let breaker = Self.accepted()
        #expect(breaker.ask(Self.key, "/slow") == .mayTry)
        breaker.end(Self.key, "/earlier", .inconclusive)
        #expect(breaker.ask(Self.key, "/next") == .mayTry)
        #expect(breaker.ask(Self.key, "/third") == .wait)
        breaker.end(Self.key, "/slow", .inconclusive)
        #expect(breaker.ask(Self.key, "/third") == .mayTry)
    }

    @Test func anAttemptThatTakesLongKeepsNobodyWaitingAndIsNotRepeated() {
        let breaker = SharedBreaker()
        #expect(breaker.ask(Self.key) == .mayTry)
        breaker.now += 600
        #expect(breaker.ask(Self.key) == .wait)
        breaker.now += 1
        #expect(
            breaker.ask(Self.key)
                == .unsuitable(
                    reason: "another request has been trying credential \"enrollment\" for more than ten minutes"))
        breaker.breaker.checkNothingAbandoned(at: breaker.now)
        breaker.end(Self.key, .accepted)
        #expect(breaker.ask(Self.key) == .mayTry)
    }

    // MARK: Without a challenge

    @Test func anAnswerInVainAnywhereIsTheLastOneWithoutAChallenge() {
        let breaker = SharedBreaker()
        for site in Self.sites { breaker.attempt(site, .accepted) }
        breaker.end(Self.sites[0], "/new", .rejected)
        for site in Self.sites { #expect(!breaker.breaker.mayPreempt(site, at: breaker.now)) }
        breaker.attempt(Self.sites[1], .accepted)
        #expect(breaker.breaker.mayPreempt(Self.sites[2], at: breaker.now))
        #expect(!breaker.breaker.mayPreempt(Self.sites[0], at: breaker.now))
    }

    /// The page may be public, so it does not show that the password is still right. But if it is challenged, it may be
    /// answered, and that shows it.
    @Test func aPageThatWasAcceptedWithoutAChallengeMayDecideLater() {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key, .accepted)
        refuse(["/forbidden/1", "/forbidden/2"], breaker)
        breaker.end(Self.key, "/in-flight", .acceptedUnasked)
        #expect(!breaker.breaker.mayPreempt(Self.key, at: breaker.now))
        #expect(isUnsuitable(breaker.ask(Self.key, "/new")))
        breaker.attempt(Self.key, "/in-flight", .accepted)
        #expect(breaker.breaker.mayPreempt(Self.key, at: breaker.now))
        #expect(breaker.ask(Self.key, "/new") == .free)
    }

    @Test func theRequestsThatWereAcceptedLatestAreRemembered() {
        let breaker = Self.accepted([Self.key], (1...15).map { "/\($0)" })
        // "/" is the oldest of sixteen, and used again.
        breaker.attempt(Self.key, "/", .accepted)
        breaker.attempt(Self.key, "/16", .accepted)
        refuse(["/a", "/b"], breaker)
        #expect(isUnsuitable(breaker.ask(Self.key, "/1")))
        #expect(breaker.ask(Self.key, "/") == .mayTry)
    }

    // MARK: Requests

    @Test func aChallengeForAnotherQueryRejectsNothing() {
        let breaker = SharedBreaker()
        breaker.attempt(Self.key, "/wiki?page=mine", .accepted)
        #expect(breaker.attempt(Self.key, "/wiki?page=secret", .rejected) == .handedBack)
        #expect(!breaker.breaker.isRejected(Self.key, at: breaker.now))
        // The same page, or another one of the same script, is not worth another attempt, but the accepted one is.
        for page in ["secret", "other"] { #expect(isUnsuitable(breaker.ask(Self.key, "/wiki?page=\(page)"))) }
        #expect(breaker.attempt(Self.key, "/wiki?page=mine", .rejected) == .rejected(.challenge, everywhere: false))
    }

    @Test func aPathThatWasAcceptedMayDecideWithAnotherQuery() {
        let breaker = Self.accepted([Self.key], ["/api?time=1"])
        refuse(["/a", "/b"], breaker)
        #expect(isUnsuitable(breaker.ask(Self.key, "/c?time=2")))
        #expect(breaker.attempt(Self.key, "/api?time=2", .rejected) == .handedBack)
        #expect(isUnsuitable(breaker.ask(Self.key, "/api?time=3")))
        #expect(breaker.ask(Self.key, "/") == .mayTry)
    }

    @Test(arguments: [Breaker.Result.unanswered, .unknown])
    func aSilentPathIsNotTriedWithOtherQueries(_ result: Breaker.Result) {
        let breaker = Self.accepted([Self.key], ["/api?time=1"])
        for time in 2...3 {
            breaker.attempt(Self.key, "/api?time=\(time)", result)
            breaker.acceptElsewhere()
        }
        #expect(isUnsuitable(breaker.ask(Self.key, "/api?time=4")))
        #expect(breaker.ask(Self.key, "/api?time=1") == .mayTry)
    }

    @Test func requestsAreIdentifiedByMethodPathAndQuery() {
        func tag(_ method: String, _ target: String) -> Breaker.RequestTag { .init(method: method, target: target) }
        #expect(tag("GET", "/a#b") == tag("GET", "/a"))
        #expect(tag("GET", "/a?b").path == tag("GET", "/a").path)
        #expect(Set([tag("GET", "/a"), tag("PUT", "/a"), tag("GET", "/a?"), tag("GET", "/a?b")]).count == 4)
        // printf 'GET /a' | sha256sum
        #expect(tag("GET", "/a").whole == 0xf302dfbc31f97b89)
        #expect(tag("GET", "/a?b").whole == 0x56f880749e4780a4)
    }

    // MARK: Listing

    @Test func rejectionsAndPausesAreListedWhileTheyAreInForce() throws {
        let breaker = Self.accepted([Self.key], ["/2"])
        let silent = Breaker.Key.test(host: "silent.corp.example")
        for _ in 1...2 { breaker.attempt(silent, .unanswered) }
        breaker.now += 1800
        breaker.attempt(Self.key, "/", .unknown)
        let account = try #require(breaker.breaker.accounts[Self.key.account])
        #expect(account.rejections(at: breaker.now).map(\.space.origin.host) == ["silent.corp.example"])
        let pauses = account.pauses(at: breaker.now)
        #expect(pauses.map(\.space.origin.host) == ["wiki.corp.example"])
        #expect(pauses.map { $0.until - breaker.now } == [3600] && pauses.map(\.since) == [breaker.now])
        #expect(account.pauses(at: breaker.now + 3600).isEmpty)
        #expect(account.rejections(at: breaker.now + 86_399 - 1800).count == 1)
        #expect(account.rejections(at: breaker.now + 86_400 - 1800).isEmpty)
    }
}

extension Breaker {
    /// Expects that no attempt of a running process is abandoned.
    fileprivate func checkNothingAbandoned(at now: Int64) {
        var copy = self
        copy.abandonAttempts(at: now) { _ in true }
        #expect(copy == self)
    }
}
