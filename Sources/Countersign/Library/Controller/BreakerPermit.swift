// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
package import CountersignSitePolicy
import Synchronization

/// The breaker's permission to use a credential in one exchange, or in one answer that was given out. It is returned
/// when the exchange ends without an outcome, or takes too long to have one. A later outcome is still recorded.
package final class BreakerPermit: Sendable {
    private struct Claim {
        var key: Breaker.Key
        let board: BreakerBoard
        let number: UInt64
        /// Whether others must wait.
        var isHeld: Bool
        var alarm: Task<Void, Never>?
    }

    private struct State {
        var next: UInt64 = 0
        var claim: Claim?
        var refusal: ChallengeError?
        var invalidToken: CredentialReference?
        var lack: ScopeQuestions.Lack?
        var awaitsVerdict = false
        var offered: OfferedSchemes?
    }

    /// The result of requesting permission.
    enum Permission: Equatable {
        case go
        /// Permitted after waiting for another exchange. The policy may have changed since.
        case goAfterWaiting
        case refused(reason: Refusal)
        case cancelled
    }

    /// How long a permit makes others wait.
    static let limit = Duration.seconds(30)
    /// How long to wait in total for other permits.
    static let patience = Duration.seconds(60)
    static let isBeingTried: Refusal = "another request has been trying the credential here for too long"

    /// The request that is to be answered.
    let request: Breaker.RequestTag
    /// The same for the lines of its site; nil if it is not known.
    package let siteRequest: SiteRequest?
    private let limit: Duration
    private let patience: Duration
    /// Called when a permit expires without an outcome, before others can obtain it.
    private let expired: @Sendable (Breaker.Key) -> Void
    private let state = Mutex(State())

    init(
        limit: Duration, patience: Duration, for request: Breaker.RequestTag, _ siteRequest: SiteRequest?,
        expired: @escaping @Sendable (Breaker.Key) -> Void
    ) {
        self.request = request
        self.siteRequest = siteRequest
        self.limit = limit
        self.patience = patience
        self.expired = expired
    }

    /// Requests permission, and waits while another exchange uses the same credential at the same site for the first
    /// time, or until the task is cancelled. `isFree` is evaluated before each wait: if true, permission is needed only
    /// if the credential was rejected.
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
            switch board.request(key, for: request, inAnswerTo: offered, again: { turn.open() }) {
            case .permitted(let attempt):
                take(key.used(by: attempt), board)
                return hasWaited ? .goAfterWaiting : .go
            case .refused(let reason), .unsuitable(let reason):
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

    /// Requests permission without waiting.
    func requestAtOnce(_ key: Breaker.Key, of board: BreakerBoard) -> Permission {
        if holds(key) { return board.isRejected(key) ? .refused(reason: Self.rejection(of: key)) : .go }
        end(.inconclusive)
        switch board.requestAtOnce(key, for: request, inAnswerTo: offered) {
        case .permitted(let attempt):
            take(key.used(by: attempt), board)
            return .go
        case .refused(let reason), .unsuitable(let reason): return .refused(reason: reason)
        case .wait: return .refused(reason: Self.isBeingTried)
        }
    }

    /// The credential that was given out, even if the permit has expired; nil once it has ended.
    var key: Breaker.Key? { state.withLock { $0.claim?.key } }

    /// Whether others must wait for the outcome.
    package var holdsOthersUp: Bool {
        state.withLock { $0.claim.map { $0.isHeld && $0.alarm != nil } ?? false }
    }

    /// Whether the answer was sent, and the server has not responded yet.
    var awaitsVerdict: Bool {
        get { state.withLock { $0.awaitsVerdict } }
        set { state.withLock { $0.awaitsVerdict = newValue } }
    }

    /// Ends the permit. Only the first call has an effect. Without a response to an answer, the server's verdict on it
    /// stays unknown.
    func end(_ result: Breaker.Result) {
        let (claim, awaitsVerdict) = state.withLock { state in
            defer {
                state.claim = nil
                state.awaitsVerdict = false
            }
            return (state.claim, state.awaitsVerdict)
        }
        guard let claim else { return }
        claim.alarm?.cancel()
        let result = awaitsVerdict && result == .inconclusive ? .unknown : result
        // An expired permit has been returned already.
        if claim.isHeld || result != .inconclusive {
            claim.board.ended(claim.key, for: request, result)
        }
    }

    /// The server did not answer. Returns whether the answer may be sent again; if not, the permit has ended.
    func wasUnanswered() -> Bool {
        guard let claim = state.withLock({ $0.claim }) else { return true }
        guard let key = claim.board.wasUnanswered(claim.key, for: request) else {
            hasBeenReported()
            return false
        }
        state.withLock { $0.claim?.key = key }
        return true
    }

    /// Ends the permit without a report. The caller reports the result itself.
    func hasBeenReported() {
        let claim = state.withLock { state in
            defer { state.claim = nil }
            return state.claim
        }
        claim?.alarm?.cancel()
    }

    /// Why the controller handed back the challenge, for the exchange to report.
    var refusal: ChallengeError? {
        get { state.withLock { $0.refusal } }
        set { state.withLock { $0.refusal = newValue } }
    }

    /// The schemes that the server offers in the challenge of this exchange; nil if unknown.
    var offered: OfferedSchemes? {
        get { state.withLock { $0.offered } }
        set { state.withLock { $0.offered = newValue } }
    }

    /// The access token that the server has called invalid in this exchange, if the controller is to renew it.
    var invalidToken: CredentialReference? {
        get { state.withLock { $0.invalidToken } }
        set { state.withLock { $0.invalidToken = newValue } }
    }

    /// The scopes that the access token lacks, if the person is to consent to them.
    var lack: ScopeQuestions.Lack? {
        get { state.withLock { $0.lack } }
        set { state.withLock { $0.lack = newValue } }
    }

    deinit { end(.inconclusive) }

    static func rejection(of key: Breaker.Key) -> Refusal {
        Refusal(
            .blocked(key.credential.name),
            "credential \"\(key.credential.name)\" was rejected here and has not changed since")
    }

    static func unsuitability(of key: Breaker.Key) -> String {
        "credential \"\(key.credential.name)\" is accepted here, but not for this request"
    }

    // MARK: The claim

    private func holds(_ key: Breaker.Key) -> Bool {
        state.withLock { $0.claim.map { $0.key == key && $0.isHeld } ?? false }
    }

    private func take(_ key: Breaker.Key, _ board: BreakerBoard) {
        let isFirst = key.attempt != Breaker.Key.free
        let number = state.withLock { state in
            state.next &+= 1
            state.claim = Claim(key: key, board: board, number: state.next, isHeld: true)
            return state.next
        }
        // Others do not wait for a credential that has been accepted before.
        guard isFirst else { return }
        let alarm = Task { [weak self, limit] in
            do { try await Task.sleep(for: limit) } catch { return }
            self?.expire(number)
        }
        let isOver = state.withLock { state in
            guard state.claim?.number == number else { return true }
            state.claim?.alarm = alarm
            return false
        }
        if isOver { alarm.cancel() }
    }

    /// An answer that was sent to a server which has accepted the credential before remains an attempt: it is only
    /// slow.
    private func expire(_ number: UInt64) {
        let (claim, awaitsVerdict) = state.withLock { state -> (Claim?, Bool) in
            guard let claim = state.claim, claim.number == number, claim.isHeld else { return (nil, false) }
            return (claim, state.awaitsVerdict)
        }
        guard let claim else { return }
        if awaitsVerdict, claim.board.record(of: claim.key)?.acceptedAt != nil { return }
        let isOver = state.withLock { state in
            guard state.claim?.number == number, state.claim?.isHeld == true else { return true }
            state.awaitsVerdict = false
            state.claim?.isHeld = false
            return false
        }
        if isOver { return }
        expired(claim.key)
        claim.board.ended(claim.key, for: request, awaitsVerdict ? .unknown : .inconclusive)
    }
}
