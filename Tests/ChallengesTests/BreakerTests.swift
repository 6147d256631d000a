// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignChallenges

/// A breaker that many requests share.
private final class SharedBreaker {
    private var breaker: Breaker
    init(capacity: Int = 4096) { breaker = Breaker(capacity: capacity) }
    func attemptRequested(_ key: Breaker.Key) -> Breaker.Permission { breaker.attemptRequested(key) }
    func attemptEnded(_ key: Breaker.Key, _ result: Breaker.Result) -> Bool { breaker.attemptEnded(key, result) }
    func reset(credential: String) { breaker.reset(credential: credential) }
    var count: Int { breaker.count }
}

@Suite struct BreakerTests {
    private static let origin = Origin(scheme: .https, host: "wiki.corp.example", port: 443)
    private static let key = Breaker.Key(
        origin: origin, credential: CredentialReference(name: "enrollment", source: .vault(generation: 7)))
    private static let refusal = Breaker.Permission.refused(
        reason: "credential \"enrollment\" was rejected here and has not changed since")

    private func key(host: String = "wiki.corp.example", port: UInt16 = 443, generation: UInt64 = 7) -> Breaker.Key {
        let origin = Origin(scheme: .https, host: host, port: port)
        return Breaker.Key(
            origin: origin, credential: CredentialReference(name: "enrollment", source: .vault(generation: generation)))
    }

    /// Simulates an origin that rejects every answer and a thousand requests that follow the breaker's permissions.
    /// Returns how many answers the origin received.
    private func answersSeen(inFlight: Int) -> Int {
        let breaker = SharedBreaker()
        var answers = 0
        var waiting = 0
        var trying = 0
        var refused = 0
        var arrived = 0
        while refused + answers < 1000 || trying > 0 {
            while waiting + trying < inFlight, arrived < 1000 {
                arrived += 1
                switch breaker.attemptRequested(Self.key) {
                case .go: trying += 1
                case .wait: waiting += 1
                case .refused: refused += 1
                }
            }
            if trying > 0 {
                trying -= 1
                answers += 1
                guard breaker.attemptEnded(Self.key, .rejected) else { continue }
                let asking = waiting
                waiting = 0
                for _ in 0..<asking {
                    switch breaker.attemptRequested(Self.key) {
                    case .go: trying += 1
                    case .wait: waiting += 1
                    case .refused: refused += 1
                    }
                }
            }
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
        #expect(breaker.attemptRequested(Self.key) == .go)
        #expect(breaker.attemptRequested(Self.key) == .wait)
        #expect(breaker.attemptEnded(Self.key, .accepted))
        #expect(breaker.attemptRequested(Self.key) == .go)
        #expect(breaker.attemptRequested(Self.key) == .go)
        #expect(!breaker.attemptEnded(Self.key, .accepted))
        #expect(!breaker.attemptEnded(Self.key, .inconclusive))
        #expect(breaker.attemptRequested(Self.key) == .go)
    }

    @Test func anInconclusiveAttemptLetsTheNextTry() {
        let breaker = SharedBreaker()
        #expect(breaker.attemptRequested(Self.key) == .go)
        #expect(breaker.attemptEnded(Self.key, .inconclusive))
        #expect(breaker.attemptRequested(Self.key) == .go)
        #expect(breaker.attemptRequested(Self.key) == .wait)
    }

    @Test(arguments: [Breaker.Result.accepted, .inconclusive, .rejected])
    func aRejectionOutlivesWhatIsOnItsWay(_ result: Breaker.Result) {
        let breaker = SharedBreaker()
        #expect(breaker.attemptRequested(Self.key) == .go)
        #expect(breaker.attemptEnded(Self.key, .accepted))
        #expect(breaker.attemptRequested(Self.key) == .go)
        #expect(!breaker.attemptEnded(Self.key, .rejected))
        #expect(!breaker.attemptEnded(Self.key, result))
        #expect(breaker.attemptRequested(Self.key) == Self.refusal)
    }

    @Test func aRejectionIsForOneGenerationAtOneOrigin() {
        let breaker = SharedBreaker()
        #expect(breaker.attemptRequested(Self.key) == .go)
        #expect(breaker.attemptEnded(Self.key, .rejected))
        #expect(breaker.attemptRequested(key(generation: 8)) == .go)
        #expect(breaker.attemptRequested(key(host: "mail.corp.example")) == .go)
        #expect(breaker.attemptRequested(key(port: 8443)) == .go)
        #expect(breaker.attemptRequested(Self.key) == Self.refusal)
    }

    @Test func resetForgetsOneCredentialEverywhere() {
        let breaker = SharedBreaker()
        let other = Breaker.Key(
            origin: Self.origin, credential: CredentialReference(name: "other", source: .vault(generation: 7)))
        for rejected in [Self.key, key(host: "mail.corp.example"), other] {
            #expect(breaker.attemptRequested(rejected) == .go)
            #expect(breaker.attemptEnded(rejected, .rejected))
        }
        breaker.reset(credential: "enrollment")
        #expect(breaker.count == 1)
        #expect(breaker.attemptRequested(Self.key) == .go)
        #expect(breaker.attemptRequested(key(host: "mail.corp.example")) == .go)
        guard case .refused = breaker.attemptRequested(other) else {
            Issue.record("the other credential was reset too")
            return
        }
    }

    @Test func resetLeavesAnAttemptOnItsWayAlone() {
        let breaker = SharedBreaker()
        #expect(breaker.attemptRequested(Self.key) == .go)
        breaker.reset(credential: "enrollment")
        #expect(breaker.attemptRequested(Self.key) == .wait)
        #expect(breaker.attemptEnded(Self.key, .rejected))
        #expect(breaker.attemptRequested(Self.key) == Self.refusal)
    }

    @Test func theOldestAcceptanceMakesRoom() {
        let breaker = SharedBreaker(capacity: 3)
        let keys = (0..<4).map { key(port: UInt16($0 + 1)) }
        for accepted in keys.prefix(3) {
            #expect(breaker.attemptRequested(accepted) == .go)
            #expect(breaker.attemptEnded(accepted, .accepted))
        }
        #expect(!breaker.attemptEnded(keys[0], .accepted))
        #expect(breaker.attemptRequested(keys[3]) == .go)
        #expect(breaker.count == 3)
        // Of the three, the second was accepted least recently.
        #expect(breaker.attemptEnded(keys[3], .accepted))
        #expect(breaker.attemptRequested(keys[0]) == .go)
        #expect(breaker.attemptRequested(keys[2]) == .go)
        #expect(breaker.attemptRequested(keys[1]) == .go)
        #expect(breaker.attemptRequested(keys[1]) == .wait)
        #expect(breaker.count == 3)
    }

    @Test func rejectionsAreNeverForgottenForRoom() {
        let breaker = SharedBreaker(capacity: 3)
        for port in UInt16(1)...3 {
            #expect(breaker.attemptRequested(key(port: port)) == .go)
            #expect(breaker.attemptEnded(key(port: port), .rejected))
        }
        let full = Breaker.Permission.refused(reason: "too many rejected credentials are remembered")
        #expect(breaker.attemptRequested(key(port: 4)) == full)
        #expect(breaker.attemptRequested(key(port: 1)) == Self.refusal)
        #expect(breaker.count == 3)
    }

    @Test func aRejectionThatComesTooLateForRoomTakesNone() {
        let breaker = SharedBreaker(capacity: 2)
        for port in UInt16(1)...50 { #expect(!breaker.attemptEnded(key(port: port), .rejected)) }
        #expect(breaker.count == 2)
        #expect(
            breaker.attemptRequested(key(port: 50)) == .refused(reason: "too many rejected credentials are remembered"))
    }

    /// Its acceptance was evicted in the meantime to make room for others.
    @Test func aRejectionOfWhatWasForgottenIsRemembered() {
        let breaker = SharedBreaker(capacity: 1)
        #expect(!breaker.attemptEnded(key(port: 2), .accepted))
        #expect(!breaker.attemptEnded(Self.key, .rejected))
        #expect(!breaker.attemptEnded(key(port: 3), .inconclusive))
        #expect(!breaker.attemptEnded(key(port: 4), .accepted))
        #expect(breaker.attemptRequested(Self.key) == Self.refusal)
        #expect(breaker.count == 1)
    }
}
