// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignAddresses
import CountersignChallenges
import Testing

@testable import Countersign

@Suite(.waiting) struct ScopeLimitsTests {
    private static func wish(
        _ scopes: String..., at host: String = "wiki.corp.example", of name: String = "work"
    ) -> ScopeLimits.Wish {
        ScopeLimits.Wish(
            name: name, origin: Origin(scheme: .https, host: host, port: 443), stepUp: StepUp(scopes: scopes))
    }

    /// The pages that these wishes open, one after the other, each a pause after the one before.
    private static func answers(
        _ wishes: [ScopeLimits.Wish], _ limits: inout ScopeLimits, each pause: Duration = ScopeLimits.pause
    ) -> [ScopeLimits.Answer] {
        wishes.enumerated().map { index, wish in
            let time = pause * index
            let answer = limits.wished(wish, at: time)
            guard answer == .begins else { return answer }
            limits.pageOpened(wish)
            limits.ended(wish, at: time)
            return answer
        }
    }

    @Test func aSignInHasOnePageAtATime() {
        var limits = ScopeLimits()
        #expect(limits.wished(Self.wish("a"), at: .zero) == .begins)
        #expect(limits.wished(Self.wish("a"), at: .zero) == .isRunning)
        #expect(limits.wished(Self.wish("b", at: "git.corp.example"), at: .zero) == .isRunning)
        #expect(limits.wished(Self.wish("a", of: "home"), at: .zero) == .begins)
    }

    @Test func theSameScopesOpenOnePage() {
        var limits = ScopeLimits()
        let wishes = [Self.wish("a", "b"), Self.wish("b", "a"), Self.wish("a")]
        #expect(Self.answers(wishes, &limits) == [.begins, .refused, .begins])
    }

    @Test func anotherSiteIsNotRefusedForThePageOfOne() {
        var limits = ScopeLimits()
        let wishes = [Self.wish(), Self.wish(at: "git.corp.example")]
        #expect(Self.answers(wishes, &limits) == [.begins, .begins])
    }

    @Test func aSiteOpensAFewPages() {
        var limits = ScopeLimits()
        let wishes = (0..<6).map { Self.wish("scope\($0)") } + [Self.wish("a", at: "git.corp.example")]
        let expected = [ScopeLimits.Answer](repeating: .begins, count: 3) + [.refused, .refused, .refused, .begins]
        #expect(Self.answers(wishes, &limits) == expected)
    }

    @Test func aSignInHasAFewPages() {
        var limits = ScopeLimits()
        let wishes = (0..<20).map { Self.wish("a", at: "host\($0).corp.example") }
        #expect(Self.answers(wishes, &limits).count { $0 == .begins } == ScopeLimits.pagesOfSignIn)
    }

    @Test func aPageIsFollowedByAPause() {
        var limits = ScopeLimits()
        let wishes = [Self.wish("a"), Self.wish("b", at: "git.corp.example"), Self.wish("c", of: "home")]
        #expect(Self.answers(wishes, &limits, each: .seconds(1)) == [.begins, .refused, .begins])
        let early = ScopeLimits.pause - .nanoseconds(1)
        #expect(limits.wished(Self.wish("b"), at: early) == .refused)
        #expect(limits.wished(Self.wish("b"), at: ScopeLimits.pause) == .begins)
    }

    /// An outage of the provider spends none of the site's pages.
    @Test func anAttemptWithoutAPageIsRepeatedAfterAPause() {
        var limits = ScopeLimits()
        var time = Duration.zero
        for _ in 0..<20 {
            #expect(limits.wished(Self.wish("a"), at: time) == .begins)
            limits.ended(Self.wish("a"), at: time)
            #expect(limits.wished(Self.wish("b"), at: time) == .refused)
            #expect(limits.wished(Self.wish("b", of: "home"), at: time) == .begins)
            limits.ended(Self.wish("b", of: "home"), at: time)
            time += ScopeLimits.pauseWithoutPage
        }
        // Other sites do not wait.
        #expect(limits.wished(Self.wish("a"), at: time) == .begins)
        limits.ended(Self.wish("a"), at: time)
        #expect(limits.wished(Self.wish("a", at: "git.corp.example"), at: time) == .begins)
    }

    @Test func attemptsWithoutAPageAreLimited() {
        var limits = ScopeLimits()
        let answers = (0..<ScopeLimits.pausedSites + 10).map { number in
            let wish = Self.wish("a", at: "host\(number).corp.example")
            defer { limits.ended(wish, at: .zero) }
            return limits.wished(wish, at: .zero)
        }
        #expect(answers.count { $0 == .begins } == ScopeLimits.pausedSites)
        #expect(limits.wished(Self.wish("a"), at: ScopeLimits.pauseWithoutPage) == .begins)
    }
}
