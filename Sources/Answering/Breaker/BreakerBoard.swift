// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Dispatch
import Synchronization

/// The ``Breaker`` that all event loops share, with the requests that wait for other requests' attempts.
///
/// With a storage, other processes share it too: an attempt is stored before it begins, and its result when it ends.
/// Nothing on an event loop waits for the storage; a request that needs it waits as for another request's attempt.
package final class BreakerBoard: Sendable {
    private struct State {
        var breaker = Breaker()
        var waiting: [Breaker.Key: [@Sendable () -> Void]] = [:]
        /// Attempts that are being stored.
        var reserving: Set<Breaker.Key> = []
        /// Attempts that are stored and not taken yet by the requests for which they were permitted.
        var granted: [Breaker.Key: Breaker.RequestTag] = [:]
        /// Why attempts could not be stored, for the requests that waited for them.
        var refusals: [Breaker.Key: Refusal] = [:]
        /// Results that are not stored yet, oldest first.
        var unstored: [Ending] = []
        var isPolling = false

        /// The reason not to answer a request that waited until its attempt is stored.
        mutating func takeRefusal(_ key: Breaker.Key, at now: Int64) -> String? {
            guard let refusal = refusals.removeValue(forKey: key), abs(now - refusal.at) <= BreakerBoard.takingSeconds
            else { return nil }
            if refusal.requests > 1 {
                refusals[key] = Refusal(reason: refusal.reason, at: refusal.at, requests: refusal.requests - 1)
            }
            return refusal.reason
        }
    }

    private struct Refusal {
        let reason: String
        /// Seconds since 1970.
        let at: Int64
        /// How many requests still have to learn the reason. Some of them may have ended.
        let requests: Int
    }

    fileprivate struct Ending: Sendable {
        let key: Breaker.Key
        let request: Breaker.RequestTag
        let result: Breaker.Result
        let at: Int64
        /// The same request wants to repeat the attempt at once.
        var isRepeated = false
    }

    /// The largest number of results that wait for a storage that fails.
    private static let unstoredLimit = 1024
    /// How long a stored attempt, or the reason that there is none, waits for the requests that asked for it.
    private static let takingSeconds: Int64 = 5

    /// How long an attempt at a KDC waits for another one.
    private static let kdcPatienceSeconds = 20

    /// Identifies the attempts of this board.
    private let owner = UInt64.random(in: 1...UInt64(Int64.max))
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64
    private let storage: BreakerStorage?
    private let warn: @Sendable (String) -> Void
    private let found: @Sendable (Breaker.Key, Breaker.Finding) -> Void
    private let state = Mutex(State())
    /// Whether any credential has failed. If not, ``mayPreempt(_:)`` takes no lock.
    private let hasFailures = Atomic<Bool>(false)
    private let hasWarned = Atomic<Bool>(false)
    private let queue = DispatchQueue(label: "countersign.breaker")

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
            if state.granted[key] == request, !state.breaker.isRejected(key, at: now()) {
                state.granted[key] = nil
                return (.go, false)
            }
            switch state.breaker.decide(key, for: request, at: now()) {
            case .free:
                return (.go, false)
            case .mayTry where storage == nil || !key.isShared:
                state.breaker.attemptBegan(key, for: request, owner: owner, at: now())
                return (.go, false)
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
        if permission == .wait, storage != nil { pollWhileWaiting() }
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

    /// Stores that an attempt begins, if the newest records permit it.
    private func reserve(_ key: Breaker.Key, for request: Breaker.RequestTag) {
        var refusal: String?
        var isGranted = false
        do throws(BreakerStorage.Failure) {
            try synchronize { breaker in
                isGranted = breaker.decide(key, for: request, at: self.now()) == .mayTry
                if isGranted { breaker.attemptBegan(key, for: request, owner: self.owner, at: self.now()) }
            }
        } catch {
            report(error)
            if error.isReadOnly {
                isGranted = true
                state.withLock { $0.breaker.attemptBegan(key, for: request, owner: owner, at: now()) }
            } else {
                refusal = "the attempt cannot be recorded: \(error.detail)"
            }
        }
        let waiting = state.withLock { state in
            state.reserving.remove(key)
            if isGranted { state.granted[key] = request }
            let waiting = state.waiting.removeValue(forKey: key) ?? []
            state.refusals[key] = refusal.map { Refusal(reason: $0, at: now(), requests: waiting.count) }
            return waiting
        }
        for again in waiting { again() }
        guard isGranted else { return }
        // The requests may have ended while they waited.
        queue.asyncAfter(deadline: .now() + .seconds(Int(Self.takingSeconds))) { [weak self] in
            guard let self else { return }
            let isLeft = state.withLock { state in
                guard state.granted[key] == request else { return false }
                state.granted[key] = nil
                return true
            }
            if isLeft { ended(key, for: request, .inconclusive) }
        }
    }

    /// Whether the credential must not be sent there for any request.
    package func isRejected(_ key: Breaker.Key) -> Bool {
        guard hasFailures.load(ordering: .acquiring) else { return false }
        return state.withLock { $0.breaker.isRejected(key, at: now()) }
    }

    /// Whether the credential may be sent there before a challenge.
    package func mayPreempt(_ key: @autoclosure () -> Breaker.Key) -> Bool {
        guard hasFailures.load(ordering: .acquiring) else { return true }
        let key = key()
        return state.withLock { $0.breaker.mayPreempt(key, at: now()) }
    }

    /// Whether a request is trying the credential there, so that others must wait.
    package func isTried(_ key: Breaker.Key) -> Bool { record(of: key)?.pending != nil }

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

    /// The origin did not answer. Returns whether the request that made the attempt may repeat it at once; if not, the
    /// attempt has ended.
    package func wasUnanswered(_ key: Breaker.Key, for request: Breaker.RequestTag) -> Bool {
        ended(Ending(key: key, request: request, result: .unanswered, at: now(), isRepeated: true)).repeats
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

    private func store() {
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

    // MARK: Other processes

    /// Reads the records if another process has changed them. Does not block.
    package func poll() {
        guard storage != nil else { return }
        queue.async { self.readChanges() }
    }

    /// Another process may have changed the records, or may have ended during its attempt.
    private func pollWhileWaiting() {
        let mustBegin = state.withLock { state in
            defer { state.isPolling = true }
            return !state.isPolling
        }
        guard mustBegin else { return }
        queue.asyncAfter(deadline: .now() + .milliseconds(500)) { [weak self] in
            guard let self else { return }
            let isWaiting = state.withLock { state in
                state.isPolling = false
                return !state.waiting.isEmpty
            }
            guard isWaiting else { return }
            store()
            wakeAll()
        }
    }

    private func wakeAll() {
        let waiting = state.withLock { state in
            let ready = state.waiting.keys.filter { !state.reserving.contains($0) }
            return ready.flatMap { state.waiting.removeValue(forKey: $0) ?? [] }
        }
        for again in waiting { again() }
    }

    private func readChanges() {
        do throws(BreakerStorage.Failure) {
            guard let records = try storage?.changed() else { return }
            adopt(records, without: 0)
            wakeAll()
        } catch {
            report(error)
        }
    }

    /// Stores all results, and `change` after them.
    private func synchronize(_ change: (inout Breaker) -> Void) throws(BreakerStorage.Failure) {
        guard let storage else { return }
        let unstored = state.withLock { $0.unstored }
        let owner = owner
        let records = try storage.update(owner) { breaker in
            for ending in unstored { breaker.apply(ending, owner) }
            change(&breaker)
        }
        adopt(records, without: unstored.count)
    }

    /// Takes over the records of the storage, which contain the first `count` results that were not stored before.
    private func adopt(_ records: BreakerStorage.Records, without count: Int) {
        state.withLock { state in
            let known = state.breaker
            state.unstored.removeFirst(min(count, state.unstored.count))
            var accounts = known.accounts.filter { !$0.key.isShared }
            accounts.merge(records) { _, shared in shared }
            var breaker = Breaker(
                capacity: known.capacity, accounts: accounts, schemes: storage?.schemes?() ?? known.schemes)
            breaker.confirm(as: known)
            for ending in state.unstored { breaker.apply(ending, owner) }
            state.breaker = breaker
            noteFailures(breaker)
        }
    }

    private func noteFailures(_ breaker: Breaker) {
        hasFailures.store(breaker.hasFailures, ordering: .releasing)
    }

    private func report(_ failure: BreakerStorage.Failure) {
        guard !hasWarned.exchange(true, ordering: .relaxed) else { return }
        warn(failure.detail)
    }
}

extension Breaker {
    /// Also returns whether the attempt is repeated.
    @discardableResult
    fileprivate mutating func apply(_ ending: BreakerBoard.Ending, _ owner: UInt64) -> (Finding, repeats: Bool) {
        let (key, request) = (ending.key, ending.request)
        let finding = attemptEnded(key, for: request, ending.result, owner: owner, at: ending.at)
        guard ending.isRepeated else { return (finding, false) }
        switch decide(key, for: request, at: ending.at) {
        case .mayTry: attemptBegan(key, for: request, owner: owner, at: ending.at)
        // A ticket, whose silence does not count.
        case .free: break
        case .wait, .refused, .unsuitable: return (finding, false)
        }
        return (finding, true)
    }
}
