// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import Synchronization
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// What requests learn if their attempts cannot be recorded.
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
        let now = Mutex<Int64>(1_800_000_000)
        private let records = Mutex<BreakerStorage.Records>([:])

        var board: BreakerBoard {
            BreakerBoard(
                now: { self.now.withLock { $0 } },
                storage: BreakerStorage(
                    changed: { () throws(BreakerStorage.Failure) in nil },
                    update: { (_, change) throws(BreakerStorage.Failure) in
                        if self.isFull.withLock({ $0 }) {
                            throw BreakerStorage.Failure("the disk is full", isReadOnly: false)
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

    @Test func aLaterRequestDoesNotReceiveAnOldReason() async {
        let disk = Disk()
        let board = disk.board
        // Its client goes before the attempt could be recorded.
        #expect(board.request(Self.key, again: {}) == .wait)
        await board.flush()
        disk.isFull.withLock { $0 = false }
        disk.now.withLock { $0 += 60 }
        #expect(board.requestAtOnce(Self.key) == .go)
    }
}
