// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Dispatch
import Synchronization

/// The ``Breaker`` that all event loops share, with the requests that wait for other requests' attempts.
///
/// With a storage, other processes share it too: an attempt is stored before it begins, and its result when it ends.
/// Nothing on an event loop waits for the storage; a request that needs it waits as for another request's attempt.
package final class BreakerBoard: Sendable {
    struct State {
        var breaker = Breaker()
        var waiting: [Breaker.Key: [@Sendable () -> Void]] = [:]
        /// Attempts that are being stored.
        var reserving: Set<Breaker.Key> = []
        /// Attempts that are stored and not taken yet by the requests for which they were permitted.
        var granted: [Grant] = []
        /// How many attempts were permitted, or considered. Identifies them.
        var attempts: UInt64 = 0
        var pulses: [Breaker.Account: CredentialPulse] = [:]
        /// Why attempts could not be stored, for the requests that waited for them.
        var refusals: [Breaker.Key: UntoldRefusal] = [:]
        /// Results that are not stored yet, oldest first.
        var unstored: [Ending] = []
        var isPolling = false

        /// Takes the stored attempt for `request`, if there is one.
        mutating func takeGrant(_ key: Breaker.Key, for request: Breaker.RequestTag) -> UInt64? {
            granted.firstIndex { $0.key == key && $0.request == request }.map { granted.remove(at: $0).attempt }
        }

        mutating func nextAttempt() -> UInt64 {
            attempts &+= 1
            return attempts
        }

        /// Reports the present proofs to the pulses.
        func beat(at now: Int64) {
            for (account, pulse) in pulses { pulse.set(breaker.provenAt(account, at: now)) }
        }

        /// The reason not to answer a request that waited until its attempt is stored.
        mutating func takeRefusal(_ key: Breaker.Key, at now: Int64) -> Refusal? {
            guard let refusal = refusals.removeValue(forKey: key), abs(now - refusal.at) <= BreakerBoard.takingSeconds
            else { return nil }
            if refusal.requests > 1 {
                refusals[key] = UntoldRefusal(reason: refusal.reason, at: refusal.at, requests: refusal.requests - 1)
            }
            return refusal.reason
        }
    }

    struct Grant {
        let key: Breaker.Key
        let request: Breaker.RequestTag
        let attempt: UInt64
    }

    /// A refusal that the waiting requests have not learnt yet.
    struct UntoldRefusal {
        let reason: Refusal
        /// Seconds since 1970.
        let at: Int64
        /// How many requests still have to learn the reason. Some of them may have ended.
        let requests: Int
    }

    struct Ending: Sendable {
        let key: Breaker.Key
        let request: Breaker.RequestTag
        let result: Breaker.Result
        let at: Int64
        /// The attempt with which the same request wants to repeat it at once.
        var repetition: UInt64?
    }

    /// The largest number of credentials whose pulses are kept up to date. Those of older ones never permit anything.
    private static let pulseLimit = 1024
    /// The largest number of results that wait for a storage that fails.
    static let unstoredLimit = 1024
    /// How long a stored attempt, or the reason for its absence, waits for the requests that asked for it.
    static let takingSeconds: Int64 = 5

    /// The interval at which a waiting request polls the records, and the number of polls between checks whether the
    /// processes of other attempts have ended.
    static let pollInterval = DispatchTimeInterval.milliseconds(50)
    static let pollsPerUpdate = 10

    /// How long an attempt at a KDC waits for another one.
    private static let kdcPatienceSeconds = 20

    /// Identifies the attempts of this board.
    let owner = UInt64.random(in: 1...UInt64(Int64.max))
    /// Seconds since 1970.
    let now: @Sendable () -> Int64
    let storage: BreakerStorage?
    let warn: @Sendable (String) -> Void
    private let found: @Sendable (Breaker.Key, Breaker.Finding) -> Void
    let state = Mutex(State())
    /// Whether any credential has failed. If not, ``mayPreempt(_:)`` takes no lock.
    let hasFailures = Atomic<Bool>(false)
    let hasWarned = Atomic<Bool>(false)
    let queue = DispatchQueue(label: "countersign.breaker")

    /// `now` returns seconds since 1970. `warn` receives the reason if the storage fails, once. Without a storage, the
    /// records end with the process. `found` is called on any thread with every finding that is not unremarkable.
    package init(
        now: @escaping @Sendable () -> Int64, storage: BreakerStorage? = nil,
        warn: @escaping @Sendable (String) -> Void = { _ in },
        found: @escaping @Sendable (Breaker.Key, Breaker.Finding) -> Void = { _, _ in }
    ) {
        self.now = now
        self.storage = storage
        self.warn = warn
        self.found = found
        if storage != nil { poll() }
    }

    // MARK: Permission

    /// As ``request(_:for:again:)``, unless `offered` is weaker than a scheme that the origin has accepted before.
    package func request(
        _ key: Breaker.Key, for request: Breaker.RequestTag = .unknown, inAnswerTo offered: OfferedSchemes?,
        again: @escaping @Sendable () -> Void
    ) -> Breaker.Permission {
        if let offered, let reason = state.withLock({ $0.breaker.refusal(of: key, inAnswerTo: offered) }) {
            ended(key, for: request, .withheld)
            return .unsuitable(reason: reason)
        }
        return self.request(key, for: request, again: again)
    }

    /// Requests permission to answer `request` with the credential. On `.wait`, `again` is called on any thread when
    /// the caller should request again.
    package func request(
        _ key: Breaker.Key, for request: Breaker.RequestTag = .unknown, again: @escaping @Sendable () -> Void
    ) -> Breaker.Permission {
        let (permission, mustStore) = state.withLock { state -> (Breaker.Permission, Bool) in
            if let reason = state.takeRefusal(key, at: now()) { return (.refused(reason: reason), false) }
            if !state.breaker.isRejected(key, at: now()), let attempt = state.takeGrant(key, for: request) {
                return (.permitted(attempt: attempt), false)
            }
            switch state.breaker.decide(key, for: request, at: now()) {
            case .free:
                return (.permitted(attempt: Breaker.Key.free), false)
            case .mayTry where storage == nil || !key.isShared:
                let attempt = state.nextAttempt()
                state.breaker.attemptBegan(key.used(by: attempt), for: request, owner: owner, at: now())
                return (.permitted(attempt: attempt), false)
            case .mayTry:
                state.waiting[key, default: []].append(again)
                return (.wait, state.reserving.insert(key).inserted)
            case .wait:
                state.waiting[key, default: []].append(again)
                return (.wait, false)
            case .refused(let reason):
                return (.refused(reason: reason), false)
            case .unsuitable(let reason):
                return (.unsuitable(reason: reason), false)
            }
        }
        if mustStore { queue.async { self.reserve(key, for: request) } }
        if permission == .wait { pollWhileWaiting() }
        return permission
    }

    /// Requests permission and blocks while the attempt is stored, but not for another request's attempt.
    package func requestAtOnce(
        _ key: Breaker.Key, for request: Breaker.RequestTag = .unknown, inAnswerTo offered: OfferedSchemes? = nil
    ) -> Breaker.Permission {
        var permission = self.request(key, for: request, inAnswerTo: offered, again: {})
        guard storage != nil, key.isShared else { return permission }
        // The process that another attempt belongs to may have ended. The second round stores the attempt. On the
        // queue, nothing can end an attempt that was granted, however slow the storage is.
        for _ in 0..<2 where permission == .wait {
            permission = queue.sync {
                store()
                return self.request(key, for: request, again: {})
            }
        }
        return permission
    }

    /// Requests permission and blocks until there is one, or for that many seconds.
    package func request(_ key: Breaker.Key, waitingAtMost seconds: Int) -> Breaker.Permission {
        let end = DispatchTime.now() + .seconds(seconds)
        while true {
            let turn = DispatchSemaphore(value: 0)
            let permission = request(key) { turn.signal() }
            guard permission == .wait, turn.wait(timeout: end) == .success else { return permission }
        }
    }

    /// The permissions for attempts at a KDC.
    package var kdcAttempts: KDCAttempts {
        KDCAttempts(
            request: { [self] in request($0, waitingAtMost: Self.kdcPatienceSeconds) },
            ended: { [self] in _ = ended($0, $1) })
    }

    /// Whether the credential must not be sent there for any request.
    package func isRejected(_ key: Breaker.Key) -> Bool {
        guard hasFailures.load(ordering: .acquiring) else { return false }
        return state.withLock { $0.breaker.isRejected(key, at: now()) }
    }

    /// Why the credential must not be sent there for any request; nil if it may.
    package func refusal(of key: Breaker.Key) -> Refusal? {
        guard hasFailures.load(ordering: .acquiring) else { return nil }
        return state.withLock { $0.breaker.refusal(of: key, at: now()) }
    }

    /// Whether the credential of `pulse` may be sent there before a challenge. Every request that was answered here
    /// before asks: it costs no lock, unless a credential has failed.
    package func mayPreempt(_ pulse: CredentialPulse?, _ key: @autoclosure () -> Breaker.Key) -> Bool {
        if let pulse, !pulse.isProven(at: now()) { return false }
        guard hasFailures.load(ordering: .acquiring) else { return true }
        let key = key()
        return state.withLock { $0.breaker.mayPreempt(key, at: now()) }
    }

    /// Whether the credential may be sent there before a challenge.
    package func mayPreempt(_ key: Breaker.Key) -> Bool {
        state.withLock { $0.breaker.mayPreempt(key, at: now()) }
    }

    /// The state of a credential for ``mayPreempt(_:_:)``; nil if no server locks an account because of it.
    package func pulse(of key: Breaker.Key) -> CredentialPulse? {
        guard key.locksAccount else { return nil }
        return state.withLock { state in
            if let pulse = state.pulses[key.account] { return pulse }
            if state.pulses.count >= Self.pulseLimit {
                for pulse in state.pulses.values { pulse.set(nil) }
                state.pulses = [:]
            }
            let pulse = CredentialPulse()
            pulse.set(state.breaker.provenAt(key.account, at: now()))
            state.pulses[key.account] = pulse
            return pulse
        }
    }

    /// Whether the site did not accept the credential lately, or none did.
    package func isInDoubt(_ key: Breaker.Key) -> Bool {
        guard hasFailures.load(ordering: .acquiring) else { return false }
        return state.withLock { $0.breaker.isInDoubt(anywhereFor: key, at: now()) }
    }

    /// Whether a request is trying the credential there, so that others must wait.
    package func isTried(_ key: Breaker.Key) -> Bool { record(of: key)?.attempts.isEmpty == false }

    package func record(of key: Breaker.Key) -> Breaker.SpaceRecord? {
        state.withLock { $0.breaker.record(of: key) }
    }

    /// The number of stored keys.
    package var count: Int { state.withLock { $0.breaker.count } }

    /// The number of requests that wait for another request's attempt.
    package func waiting(for key: Breaker.Key) -> Int { state.withLock { $0.waiting[key]?.count ?? 0 } }

    // MARK: Results

    /// Ends an attempt that was permitted, or reports the result of an answer sent before a challenge.
    @discardableResult
    package func ended(
        _ key: Breaker.Key, for request: Breaker.RequestTag = .unknown, _ result: Breaker.Result
    ) -> Breaker.Finding {
        ended(Ending(key: key, request: request, result: result, at: now())).finding
    }

    /// The origin did not answer. Returns the key of the attempt with which the same request may repeat it at once; nil
    /// if it may not. The attempt has ended.
    package func wasUnanswered(_ key: Breaker.Key, for request: Breaker.RequestTag) -> Breaker.Key? {
        let attempt = state.withLock { $0.nextAttempt() }
        let ending = Ending(key: key, request: request, result: .unanswered, at: now(), repetition: attempt)
        return ended(ending).repeats ? key.used(by: attempt) : nil
    }

    /// An answer that was sent before a challenge was accepted. That matters only to a space in doubt, which sent it
    /// before the doubt.
    package func acceptedUnasked(
        _ key: @autoclosure () -> Breaker.Key, for request: @autoclosure () -> Breaker.RequestTag
    ) {
        guard hasFailures.load(ordering: .acquiring) else { return }
        let key = key()
        guard state.withLock({ $0.breaker.isInDoubt(key, at: now()) }) else { return }
        ended(key, for: request(), .acceptedUnasked)
    }

    private func ended(_ ending: Ending) -> (finding: Breaker.Finding, repeats: Bool) {
        let key = ending.key
        let (finding, repeats, waiting, mustStore) = state.withLock { state in
            let before = state.breaker.accounts[key.account]
            let schemesBefore = state.breaker.schemes.entries[key.space.origin]
            let (finding, repeats) = state.breaker.apply(ending, owner)
            if ending.result != .accepted || hasFailures.load(ordering: .relaxed) { noteFailures(state.breaker) }
            let after = state.breaker.accounts[key.account]
            state.pulses[key.account]?.set(state.breaker.provenAt(key.account, at: now()))
            let isNews =
                key.isShared && after?.isEqualForOthers(to: before, in: key.space) == false
                || state.breaker.schemes.entries[key.space.origin] != schemesBefore
            let mustStore = storage != nil && isNews
            if mustStore {
                if state.unstored.count >= Self.unstoredLimit { state.unstored.removeFirst() }
                state.unstored.append(ending)
            }
            // An attempt in another space of the same account may have made them wait.
            let ready = state.waiting.keys.filter { $0.account == key.account && !state.reserving.contains($0) }
            return (finding, repeats, ready.flatMap { state.waiting.removeValue(forKey: $0) ?? [] }, mustStore)
        }
        if mustStore { queue.async { self.store() } }
        if finding != .unremarkable { found(key, finding) }
        for again in waiting { again() }
        return (finding, repeats)
    }

    func store() {
        do throws(BreakerStorage.Failure) {
            try synchronize { _ in }
        } catch {
            report(error)
        }
    }

    /// Returns when all results so far are stored, or the storage has failed.
    package func flush() async {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume() }
        }
    }
}
