// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP2
import Testing

@Suite struct FrameBudgetTests {
    private static let second: UInt64 = 1_000_000_000

    /// Tokens that can be spent at `now`.
    private func spend(_ budget: inout FrameBudget, at now: UInt64) -> Int {
        var count = 0
        while budget.spend(at: now) { count += 1 }
        return count
    }

    @Test func burstIsLimited() {
        var budget = FrameBudget(at: 5)
        #expect(spend(&budget, at: 5) == FrameBudget.capacity)
    }

    @Test func tokensReturnWithTime() {
        var budget = FrameBudget(at: 0)
        _ = spend(&budget, at: 0)
        #expect(spend(&budget, at: Self.second / 2) == FrameBudget.refillPerSecond / 2)
        #expect(spend(&budget, at: Self.second) == FrameBudget.refillPerSecond / 2)
        #expect(spend(&budget, at: 1_000_000 * Self.second) == FrameBudget.capacity)
    }

    @Test func partsOfTokensAreNotLost() {
        var budget = FrameBudget(at: 0)
        _ = spend(&budget, at: 0)
        var count = 0
        for step in 1...1000 { count += spend(&budget, at: UInt64(step) * Self.second / 1000) }
        #expect(count == FrameBudget.refillPerSecond)
    }

    @Test func timeInWhichTheBudgetIsFullIsNotSaved() {
        var budget = FrameBudget(at: 0)
        #expect(spend(&budget, at: 1000 * Self.second) == FrameBudget.capacity)
        #expect(spend(&budget, at: 1000 * Self.second) == 0)
    }

    @Test func clockThatStandsOrGoesBackReturnsNothing() {
        var budget = FrameBudget(at: Self.second)
        _ = spend(&budget, at: Self.second)
        #expect(spend(&budget, at: Self.second) == 0)
        #expect(spend(&budget, at: 0) == 0)
    }

    @Test func contentAndCompletedExchangesReturnTokens() {
        var budget = FrameBudget(at: 0)
        _ = spend(&budget, at: 0)
        budget.contentPassed(FrameBudget.contentBytesPerToken - 1)
        #expect(spend(&budget, at: 0) == 0)
        budget.contentPassed(FrameBudget.contentBytesPerToken + 1)
        #expect(spend(&budget, at: 0) == 2)
        budget.exchangeCompleted()
        #expect(spend(&budget, at: 0) == 1)
        budget.contentPassed(.max / 2)
        #expect(spend(&budget, at: 0) == FrameBudget.capacity)
    }
}
