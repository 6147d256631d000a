// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP2
import Testing

@Suite struct FrameBudgetTests {
    private static let second: UInt64 = 1_000_000_000
    private static let terms = TokenBucket.Terms.others

    /// Tokens that can be spent at `now`.
    private func spend(_ budget: inout TokenBucket, at now: UInt64) -> Int {
        var count = 0
        while budget.spend(at: now) { count += 1 }
        return count
    }

    @Test func burstIsLimited() {
        var budget = TokenBucket(.others, at: 5)
        #expect(spend(&budget, at: 5) == Self.terms.capacity)
    }

    @Test func tokensReturnWithTime() {
        var budget = TokenBucket(.others, at: 0)
        _ = spend(&budget, at: 0)
        #expect(spend(&budget, at: Self.second / 2) == Self.terms.refillPerSecond / 2)
        #expect(spend(&budget, at: Self.second) == Self.terms.refillPerSecond / 2)
        #expect(spend(&budget, at: 1_000_000 * Self.second) == Self.terms.capacity)
    }

    @Test func partsOfTokensAreNotLost() {
        var budget = TokenBucket(.others, at: 0)
        _ = spend(&budget, at: 0)
        var count = 0
        for step in 1...1000 { count += spend(&budget, at: UInt64(step) * Self.second / 1000) }
        #expect(count == Self.terms.refillPerSecond)
    }

    @Test func timeInWhichTheBudgetIsFullIsNotSaved() {
        var budget = TokenBucket(.others, at: 0)
        #expect(spend(&budget, at: 1000 * Self.second) == Self.terms.capacity)
        #expect(spend(&budget, at: 1000 * Self.second) == 0)
    }

    @Test func clockThatStandsOrGoesBackReturnsNothing() {
        var budget = TokenBucket(.others, at: Self.second)
        _ = spend(&budget, at: Self.second)
        #expect(spend(&budget, at: Self.second) == 0)
        #expect(spend(&budget, at: 0) == 0)
    }

    @Test func contentAndWorkReturnTokens() {
        var budget = TokenBucket(.others, at: 0)
        _ = spend(&budget, at: 0)
        budget.contentPassed(Self.terms.contentBytesPerToken - 1)
        #expect(spend(&budget, at: 0) == 0)
        budget.contentPassed(Self.terms.contentBytesPerToken + 1)
        #expect(spend(&budget, at: 0) == 2)
        budget.earn(1)
        #expect(spend(&budget, at: 0) == 1)
        budget.contentPassed(.max / 2)
        #expect(spend(&budget, at: 0) == Self.terms.capacity)
    }

    @Test func repliesAndOthersAreChargedApart() {
        var budget = FrameBudget(at: 0)
        func left(_ kind: FrameBudget.Kind) -> Int {
            var count = 0
            while budget.spend(kind, at: 0) { count += 1 }
            return count
        }
        #expect(left(.other) == TokenBucket.Terms.others.capacity)
        #expect(left(.reply) == TokenBucket.Terms.replies.capacity)
        budget.pieceSent()
        let afterPiece = (left(.other), left(.reply))
        #expect(afterPiece == (0, FrameBudget.repliesPerPiece))
        budget.messageCompleted()
        let afterMessage = (left(.other), left(.reply))
        #expect(afterMessage == (1, 1))
    }
}
