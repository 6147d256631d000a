// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOConcurrencyHelpers
import CountersignProxy

/// The breaker's permission for one dialogue, or for one answer that was given out. Whoever ends without a verdict gives it
/// back, and whoever has none for too long; a verdict that comes after that counts all the same.
package final class BreakerPermit: Sendable {
    private struct Claim {
        let key: Breaker.Key
        let board: BreakerBoard
        let number: UInt64
        /// Nobody else may try it meanwhile.
        var isHeld: Bool
        var alarm: Task<Void, Never>?
    }

    private struct State {
        var next: UInt64 = 0
        var claim: Claim?
        var refusal: ChallengeError?
    }

    /// What became of asking for permission.
    enum Permission: Equatable {
        case go
        /// The same, after another's attempt: what was looked at before it may have changed.
        case goAfterWaiting
        case refused(reason: String)
        case cancelled
    }

    /// For how long a permission holds others up.
    static let limit = Duration.seconds(30)
    /// For how long one waits for others, several of them one after another.
    static let patience = Duration.seconds(60)
    static let isBeingTried = "another request has been trying the credential here for too long"

    private let limit: Duration
    private let patience: Duration
    /// Told of a permission that comes back without a verdict because its time is over, before others have it.
    private let expired: @Sendable (Breaker.Key) -> Void
    private let state = NIOLockedValueBox(State())

    init(limit: Duration, patience: Duration, expired: @escaping @Sendable (Breaker.Key) -> Void) {
        self.limit = limit
        self.patience = patience
        self.expired = expired
    }

    /// Waits while another tries the same credential at the same site for the first time, as long as the task is not
    /// cancelled. `isFree`: no permission is needed, unless the credential was rejected; asked before each wait.
    func request(
        _ key: Breaker.Key, of board: BreakerBoard, unless isFree: () -> Bool = { false }
    ) async -> Permission {
        if holds(key) { return board.isRejected(key) ? .refused(reason: Self.rejection(of: key)) : .go }
        end(.inconclusive)
        let end = ContinuousClock.now + patience
        var hasWaited = false
        while !Task.isCancelled {
            if isFree(), !board.isRejected(key) { return hasWaited ? .goAfterWaiting : .go }
            let turn = Gate()
            switch board.request(key, again: { turn.open() }) {
            case .go:
                take(key, board)
                return hasWaited ? .goAfterWaiting : .go
            case .refused(let reason):
                return .refused(reason: reason)
            case .wait:
                guard ContinuousClock.now < end else { return .refused(reason: Self.isBeingTried) }
                hasWaited = true
                let alarm = Task {
                    do { try await Task.sleep(until: end) } catch { return }
                    turn.open()
                }
                await turn.wait()
                alarm.cancel()
            }
        }
        return .cancelled
    }

    /// Whether an answer with `key` may go out now. Does not wait.
    func permit(_ key: Breaker.Key, of board: BreakerBoard) -> Permission {
        if holds(key) { return board.isRejected(key) ? .refused(reason: Self.rejection(of: key)) : .go }
        end(.inconclusive)
        switch board.request(key, again: {}) {
        case .go:
            take(key, board)
            return .go
        case .refused(let reason): return .refused(reason: reason)
        case .wait: return .refused(reason: Self.isBeingTried)
        }
    }

    /// What was given out, whether its time is over or not; nil once it has ended.
    var key: Breaker.Key? { state.withLockedValue { $0.claim?.key } }

    /// Others wait for its verdict, or would.
    package var holdsOthersUp: Bool {
        state.withLockedValue { $0.claim.map { $0.isHeld && $0.alarm != nil } ?? false }
    }

    /// How it ended; the first word counts.
    func end(_ result: Breaker.Result) {
        let claim = state.withLockedValue { state in
            defer { state.claim = nil }
            return state.claim
        }
        guard let claim else { return }
        claim.alarm?.cancel()
        // What nobody waits for any more needs no giving back.
        if claim.isHeld || result != .inconclusive { claim.board.ended(claim.key, result) }
    }

    /// Why the controller has handed back what this dialogue asked, for the dialogue to tell.
    var refusal: ChallengeError? {
        get { state.withLockedValue { $0.refusal } }
        set { state.withLockedValue { $0.refusal = newValue } }
    }

    deinit { end(.inconclusive) }

    static func rejection(of key: Breaker.Key) -> String {
        "credential \"\(key.credential)\" was rejected here and has not changed since"
    }

    // MARK: The claim

    private func holds(_ key: Breaker.Key) -> Bool {
        state.withLockedValue { $0.claim.map { $0.key == key && $0.isHeld } ?? false }
    }

    private func take(_ key: Breaker.Key, _ board: BreakerBoard) {
        let isFirst = board.isTried(key)
        let number = state.withLockedValue { state in
            state.next &+= 1
            state.claim = Claim(key: key, board: board, number: state.next, isHeld: true)
            return state.next
        }
        // Nobody waits for a credential that has been accepted.
        guard isFirst else { return }
        let alarm = Task { [weak self, limit] in
            do { try await Task.sleep(for: limit) } catch { return }
            self?.expire(number)
        }
        let isOver = state.withLockedValue { state in
            guard state.claim?.number == number else { return true }
            state.claim?.alarm = alarm
            return false
        }
        if isOver { alarm.cancel() }
    }

    private func expire(_ number: UInt64) {
        let claim = state.withLockedValue { state -> Claim? in
            guard let claim = state.claim, claim.number == number, claim.isHeld else { return nil }
            state.claim?.isHeld = false
            return claim
        }
        guard let claim else { return }
        expired(claim.key)
        claim.board.ended(claim.key, .inconclusive)
    }
}
