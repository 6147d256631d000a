// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Dispatch
import Synchronization

/// The records that the board shares with other processes.
extension BreakerBoard {
    /// Stores that an attempt begins, if the newest records permit it.
    func reserve(_ key: Breaker.Key, for request: Breaker.RequestTag) {
        let attempt = state.withLock { $0.nextAttempt() }
        let key = key.used(by: attempt)
        var refusal: Refusal?
        var isGranted = false
        do throws(BreakerStorage.Failure) {
            try synchronize { breaker in
                isGranted = breaker.decide(key, for: request, at: self.now()) == .mayTry
                if isGranted { breaker.attemptBegan(key, for: request, owner: self.owner, at: self.now()) }
            }
        } catch {
            report(error)
            if error.isReadOnly {
                isGranted = state.withLock { state in
                    guard state.breaker.decide(key, for: request, at: now()) == .mayTry else { return false }
                    state.breaker.attemptBegan(key, for: request, owner: owner, at: now())
                    return true
                }
            } else {
                refusal = "the attempt cannot be recorded: \(error.detail)"
            }
        }
        let waiting = state.withLock { state in
            state.reserving.remove(key)
            if isGranted { state.granted.append(Grant(key: key, request: request, attempt: attempt)) }
            let waiting = state.waiting.removeValue(forKey: key) ?? []
            state.refusals[key] = refusal.map { UntoldRefusal(reason: $0, at: now(), requests: waiting.count) }
            return waiting
        }
        for again in waiting { again() }
        guard isGranted else { return }
        // The requests may have ended while they waited.
        queue.asyncAfter(deadline: .now() + .seconds(Int(Self.takingSeconds))) { [weak self] in
            guard let self else { return }
            let isLeft = state.withLock { state in
                guard let index = state.granted.firstIndex(where: { $0.attempt == attempt }) else { return false }
                state.granted.remove(at: index)
                return true
            }
            if isLeft { ended(key, for: request, .inconclusive) }
        }
    }

    /// Reads the records if another process has changed them. Does not block.
    package func poll() {
        guard storage != nil else { return }
        queue.async { self.readChanges() }
    }

    /// Time passes, and another process may have changed the records, or may have ended during its attempt.
    func pollWhileWaiting(_ polls: Int = 1) {
        let mustBegin = state.withLock { state in
            defer { state.isPolling = true }
            return !state.isPolling
        }
        guard mustBegin else { return }
        queue.asyncAfter(deadline: .now() + Self.pollInterval) { [weak self] in self?.pollNow(polls) }
    }

    func pollNow(_ polls: Int) {
        let isWaiting = state.withLock { state in
            state.isPolling = false
            return !state.waiting.isEmpty
        }
        guard isWaiting else { return }
        if polls % Self.pollsPerUpdate == 0 {
            store()
            wakeAll()
        } else {
            readChanges()
        }
        if state.withLock({ !$0.waiting.isEmpty }) { pollWhileWaiting(polls + 1) }
    }

    func wakeAll() {
        let waiting = state.withLock { state in
            let ready = state.waiting.keys.filter { !state.reserving.contains($0) }
            return ready.flatMap { state.waiting.removeValue(forKey: $0) ?? [] }
        }
        for again in waiting { again() }
    }

    func readChanges() {
        do throws(BreakerStorage.Failure) {
            guard let records = try storage?.changed() else { return }
            adopt(records, without: 0)
            wakeAll()
        } catch {
            report(error)
        }
    }

    /// Stores all results, and `change` after them.
    func synchronize(_ change: (inout Breaker) -> Void) throws(BreakerStorage.Failure) {
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
    func adopt(_ records: BreakerStorage.Records, without count: Int) {
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
            state.beat(at: now())
            noteFailures(breaker)
        }
    }

    func noteFailures(_ breaker: Breaker) {
        hasFailures.store(breaker.hasFailures, ordering: .releasing)
    }

    func report(_ failure: BreakerStorage.Failure) {
        guard !hasWarned.exchange(true, ordering: .relaxed) else { return }
        warn(failure.detail)
    }
}

extension Breaker {
    /// Also returns whether the attempt is repeated.
    @discardableResult
    mutating func apply(_ ending: BreakerBoard.Ending, _ owner: UInt64) -> (Finding, repeats: Bool) {
        let (key, request) = (ending.key, ending.request)
        let finding = attemptEnded(key, for: request, ending.result, owner: owner, at: ending.at)
        guard let attempt = ending.repetition else { return (finding, false) }
        switch decide(key, for: request, at: ending.at) {
        // It would use up both places of a password at once, so that one page that crashes stops it everywhere.
        case .mayTry where key.locksAccount: return (finding, false)
        case .mayTry: attemptBegan(key.used(by: attempt), for: request, owner: owner, at: ending.at)
        // A ticket, whose silence does not count.
        case .free: break
        case .wait, .refused, .unsuitable: return (finding, false)
        }
        return (finding, true)
    }
}
