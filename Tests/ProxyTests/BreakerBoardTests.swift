// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignCryptography
import Synchronization
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// The decisions for requests whose attempts cannot be recorded.
@Suite struct BreakerBoardTests {
    private static let key = Breaker.Key(
        space: AuthenticationSpace(origin: Bench.origin, realm: "r", scheme: .basic),
        credential: PasswordCredential(name: "enrollment", user: "jdoe", password: Secret(utf8: "pw"), generation: 1)
            .tagged(with: Secret(utf8: "key")).reference)
    private static let refusal = Breaker.Permission.refused(
        reason: "the attempt cannot be recorded: the disk is full")

    /// A storage that fails while its disk is full.
    private final class Disk: Sendable {
        let isFull = Mutex(true)
        let isReadOnly: Bool
        let now = Mutex<Int64>(1_800_000_000)
        private let records = Mutex<BreakerStorage.Records>([:])

        init(isReadOnly: Bool = false) { self.isReadOnly = isReadOnly }

        var board: BreakerBoard {
            BreakerBoard(
                now: { self.now.withLock { $0 } },
                storage: BreakerStorage(
                    changed: { () throws(BreakerStorage.Failure) in nil },
                    update: { (_, change) throws(BreakerStorage.Failure) in
                        if self.isFull.withLock({ $0 }) {
                            throw BreakerStorage.Failure("the disk is full", isReadOnly: self.isReadOnly)
                        }
                        var breaker = Breaker(accounts: self.records.withLock { $0 })
                        change(&breaker)
                        self.records.withLock { $0 = breaker.accounts }
                        return breaker.accounts
                    }))
        }
    }

    @Test func allRequestsThatWaitedLearnTheReason() async {
        let disk = Disk()
        let board = disk.board
        // The storage waits for the lock, and so for both requests.
        disk.isFull.withLock { _ in
            for _ in 1...2 { #expect(board.request(Self.key, again: {}) == .wait) }
        }
        await board.flush()
        for _ in 1...2 { #expect(board.request(Self.key, again: {}) == Self.refusal) }
        // The next request tries again.
        disk.isFull.withLock { $0 = false }
        #expect(board.requestAtOnce(Self.key) == .go)
    }

    @Test func withoutRecordsTwoRequestsTryAtATimeAsWell() async throws {
        let board = Disk(isReadOnly: true).board
        let permitted = Mutex(0)
        @Sendable func ask(_ key: Breaker.Key) {
            if board.request(key, again: { ask(key) }) == .go { permitted.withLock { $0 += 1 } }
        }
        for key in Crowd.keys { ask(key) }
        #expect(try await eventually { permitted.withLock { $0 } >= 2 })
        await board.flush()
        #expect(permitted.withLock { $0 } == 2)
    }

    @Test func aLaterRequestDoesNotReceiveAnOldReason() async {
        let disk = Disk()
        let board = disk.board
        // Its client leaves before the attempt could be recorded.
        #expect(board.request(Self.key, again: {}) == .wait)
        await board.flush()
        disk.isFull.withLock { $0 = false }
        disk.now.withLock { $0 += 60 }
        #expect(board.requestAtOnce(Self.key) == .go)
    }

    // MARK: A crowd

    /// Requests at many sites that have accepted the credential, long ago.
    private final class Crowd: Sendable {
        let board: BreakerBoard
        private let clock = Clock(now: 1_800_000_000)
        /// The answers that were permitted and have not ended.
        private let permitted = Mutex<[Breaker.Key]>([])
        private let refused = Mutex(0)

        static let keys = (1...20).map { number in
            Breaker.Key(
                space: AuthenticationSpace(
                    origin: Origin(scheme: .https, host: "h\(number).example", port: 443), realm: "r", scheme: .basic),
                credential: key.credential)
        }

        init(isShared: Bool) async {
            let shared = SharedRecords()
            let storage = BreakerStorage(
                changed: { () throws(BreakerStorage.Failure) in nil },
                update: { (_, change) throws(BreakerStorage.Failure) in
                    shared.records.withLock { records in
                        var breaker = Breaker(accounts: records)
                        change(&breaker)
                        records = breaker.accounts
                        return records
                    }
                })
            let clock = self.clock
            board = BreakerBoard(now: { clock.now.withLock { $0 } }, storage: isShared ? storage : nil)
            for key in Self.keys {
                guard case .permitted(let attempt) = board.requestAtOnce(key) else { continue }
                board.ended(key.used(by: attempt), .accepted)
            }
            await board.flush()
        }

        func pass(seconds: Int64) { clock.now.withLock { $0 += seconds } }

        func arrive(_ count: Int) {
            for number in 0..<count {
                let request = Breaker.RequestTag(method: "GET", target: "/\(number)")
                ask(Self.keys[number % Self.keys.count], request)
            }
        }

        private func ask(_ key: Breaker.Key, _ request: Breaker.RequestTag) {
            switch board.request(key, for: request, again: { self.ask(key, request) }) {
            case .permitted(let attempt): permitted.withLock { $0.append(key.used(by: attempt)) }
            case .wait: break
            case .refused, .unsuitable: refused.withLock { $0 += 1 }
            }
        }

        /// How many answers are permitted and have not ended, and how many requests were refused.
        var counts: [Int] { [permitted.withLock { $0.count }, refused.withLock { $0 }] }

        func endOne(_ result: Breaker.Result) {
            guard let key = permitted.withLock({ $0.popLast() }) else { return }
            board.ended(key, result)
        }
    }

    @Test(arguments: [true, false])
    func aCrowdAfterAQuietTimeIsTwoAttemptsUntilTheVerdict(isShared: Bool) async throws {
        let crowd = await Crowd(isShared: isShared)
        crowd.arrive(100)
        // Proven a moment ago.
        #expect(crowd.counts == [100, 0])
        for _ in 0..<100 { crowd.endOne(.accepted) }
        crowd.pass(seconds: 10)
        crowd.arrive(100)
        #expect(try await eventually { crowd.counts == [2, 0] })
        await crowd.board.flush()
        #expect(crowd.counts == [2, 0])
        crowd.endOne(.accepted)
        #expect(try await eventually { crowd.counts == [99, 0] })
    }

    @Test(arguments: [true, false])
    func aCrowdWithAStalePasswordSendsItTwice(isShared: Bool) async throws {
        let crowd = await Crowd(isShared: isShared)
        crowd.pass(seconds: 10)
        crowd.arrive(100)
        #expect(try await eventually { crowd.counts == [2, 0] })
        crowd.endOne(.invalid)
        // The others of its site need not wait any longer.
        #expect(try await eventually { crowd.counts == [1, 4] })
        await crowd.board.flush()
        #expect(crowd.counts == [1, 4])
        crowd.endOne(.invalid)
        #expect(try await eventually { crowd.counts == [0, 98] })
    }

    /// The waiting requests are released by time, too, and one by one.
    @Test(arguments: [true, false])
    func slowAttemptsHoldUpACrowdForALimitedTime(isShared: Bool) async throws {
        let crowd = await Crowd(isShared: isShared)
        crowd.pass(seconds: 10)
        crowd.arrive(100)
        #expect(try await eventually { crowd.counts == [2, 0] })
        crowd.pass(seconds: 21)
        #expect(try await eventually { crowd.counts == [3, 0] })
        await crowd.board.flush()
        #expect(crowd.counts == [3, 0])
    }

    private func eventually(_ isSo: () -> Bool) async throws -> Bool {
        let end = ContinuousClock.now + .seconds(120)
        while !isSo() {
            guard ContinuousClock.now < end else { return false }
            try await Task.sleep(for: .milliseconds(5))
        }
        return true
    }

    // MARK: The pulse

    @Test func aPulseIsWhatMayBeSentAheadOfAChallenge() async throws {
        let clock = Clock(now: 1_800_000_000)
        let board = BreakerBoard(now: { clock.now.withLock { $0 } })
        let pulse = try #require(board.pulse(of: Self.key))
        #expect(!board.mayPreempt(pulse, Self.key))
        guard case .permitted(let attempt) = board.requestAtOnce(Self.key) else {
            Issue.record("the first attempt is not permitted")
            return
        }
        board.ended(Self.key.used(by: attempt), .accepted)
        #expect(board.mayPreempt(pulse, Self.key))
        clock.now.withLock { $0 += 9 }
        #expect(board.mayPreempt(pulse, Self.key))
        // A clock that was set back.
        clock.now.withLock { $0 -= 100 }
        #expect(!board.mayPreempt(pulse, Self.key))
        clock.now.withLock { $0 += 101 }
        #expect(!board.mayPreempt(pulse, Self.key))
    }

    private final class SharedRecords: Sendable {
        let records = Mutex<BreakerStorage.Records>([:])
    }

    private final class Clock: Sendable {
        let now: Mutex<Int64>

        init(now: Int64) { self.now = Mutex(now) }
    }

    @Test func aRejectionEndsThePulse() throws {
        let board = BreakerBoard(now: { 1_800_000_000 })
        let pulse = try #require(board.pulse(of: Self.key))
        guard case .permitted(let attempt) = board.requestAtOnce(Self.key) else { return }
        board.ended(Self.key.used(by: attempt), .accepted)
        #expect(board.mayPreempt(pulse, Self.key))
        board.ended(Self.key.used(by: Breaker.Key.free), for: .init(method: "GET", target: "/x"), .rejected)
        #expect(!board.mayPreempt(pulse, Self.key))
    }
}
