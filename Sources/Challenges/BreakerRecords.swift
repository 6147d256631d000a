// SPDX-License-Identifier: Apache-2.0

extension Breaker {
    /// Why an account is no longer used in a space.
    package struct Rejection: Equatable, Sendable {
        package enum Cause: String, Equatable, Sendable {
            /// The origin challenged again.
            case challenge
            /// The origin closed the connection instead of answering, twice.
            case silence
        }

        /// Seconds since 1970.
        package let at: Int64
        package let cause: Cause
        /// 1 for a challenge; for silence, the number of answers without a response.
        package let count: Int

        package init(at: Int64, cause: Cause, count: Int) {
            self.at = at
            self.cause = cause
            self.count = count
        }

        /// When it expires. Silence counts for a limited time: the origin may have had an outage.
        package var end: Int64? { cause == .challenge ? nil : at + Breaker.daySeconds }

        package func isInForce(at now: Int64) -> Bool { end.map { now < $0 } ?? true }
    }

    /// An attempt whose outcome is not known yet.
    package struct Pending: Equatable, Sendable {
        /// Identifies the process.
        package let owner: UInt64
        /// Which of the process's attempts it is.
        package let id: UInt64
        package let request: RequestTag
        /// Seconds since 1970.
        package let since: Int64
        /// How many attempts with the account had begun, with this one.
        package let number: UInt64

        package init(owner: UInt64, id: UInt64, request: RequestTag, since: Int64, number: UInt64) {
            self.owner = owner
            self.id = id
            self.request = request
            self.since = since
            self.number = number
        }

        /// Whether it does not take long.
        func isPrompt(at now: Int64) -> Bool { abs(now - since) <= Breaker.promptSeconds }
    }

    /// Answers that were sent, one after the other, and not accepted.
    package struct UnacceptedAnswers: Equatable, Sendable {
        /// More are not counted.
        package static let maximum = 1000

        package private(set) var count = 0
        /// The latest one, in seconds since 1970.
        package private(set) var at: Int64 = 0

        package init() {}

        package init(count: Int, at: Int64) {
            self.count = count
            self.at = at
        }

        /// Those that count at that time.
        func count(at now: Int64) -> Int { abs(now - at) < Breaker.daySeconds ? count : 0 }

        mutating func add(at now: Int64) {
            count = min(count(at: now) + 1, Self.maximum)
            at = now
        }

        /// How many seconds the next attempt must wait. A clock that was set back ends no pause.
        func pause(at now: Int64) -> Int64 {
            let count = count(at: now)
            guard count >= Breaker.limit else { return 0 }
            let whole = Breaker.shortestPauseSeconds << min(count - Breaker.limit, 8)
            return max(0, min(whole, Breaker.longestPauseSeconds) - max(0, now - at))
        }
    }

    /// The record of an account in one protection space. Times are in seconds since 1970.
    package struct SpaceRecord: Equatable, Sendable {
        package var rejection: Rejection?
        /// When the space last accepted the account; nil if it never did.
        package var acceptedAt: Int64?
        /// Some of the requests for which the space has accepted the account, the latest one last.
        package var accepted: [RequestTag] = []
        /// Some of the requests for which a space that had accepted the account challenged again, since it last
        /// accepted it.
        package var doubtful: [RequestTag] = []
        /// The answers that the space did not accept, since it last accepted one.
        package var unaccepted = UnacceptedAnswers()
        /// Some of the requests with the latest of them, to which the space has not responded.
        package var silent: [RequestTag] = []
        /// How many of those the origin ended by closing the connection.
        package var unanswered = 0
        /// The attempts in progress, the latest one last.
        package var attempts: [Pending] = []
        /// The last change.
        package var changedAt: Int64

        package init(changedAt: Int64) {
            self.changedAt = changedAt
        }

        /// Whether other processes need not know the difference between the records.
        fileprivate func isEqualForOthers(to other: SpaceRecord?) -> Bool {
            guard let other else { return !isKept && acceptedAt == nil }
            return rejection == other.rejection && Set(accepted) == Set(other.accepted) && doubtful == other.doubtful
                && unaccepted == other.unaccepted && silent == other.silent && unanswered == other.unanswered
                && attempts == other.attempts && (acceptedAt == nil) == (other.acceptedAt == nil)
        }

        /// Whether the record must not be evicted for another.
        var isKept: Bool { rejection != nil || !attempts.isEmpty || unaccepted.count > 0 || !doubtful.isEmpty }

        /// Whether every request may answer, if the account is proven.
        func isFree(at now: Int64) -> Bool { acceptedAt != nil && !isInDoubt(at: now) }

        /// Whether the space did not accept the latest answer.
        func isInDoubt(at now: Int64) -> Bool { !doubtful.isEmpty || unaccepted.count(at: now) > 0 }

        /// Whether the space has accepted the account for `request`, or at least for its path, and has not refused it
        /// since. Its outcome will probably say whether the account is still right.
        func isFamiliar(_ request: RequestTag) -> Bool {
            if accepted.contains(request) { return !silent.contains(request) }
            func have(_ requests: [RequestTag]) -> Bool { requests.contains { $0.path == request.path } }
            return have(accepted) && !have(doubtful) && !have(silent)
        }

        /// Whether the space has handed back a request for that path, and `request` must not try again yet.
        func isDoubtful(_ request: RequestTag, at now: Int64) -> Bool {
            doubtful.contains { $0.path == request.path } && !accepted.contains(request)
                && abs(now - unaccepted.at) < Breaker.shortestPauseSeconds
        }

        /// How many seconds the next attempt in the space must wait.
        func pause(at now: Int64) -> Int64 { unaccepted.pause(at: now) }
    }

    /// The record of an account.
    package struct AccountRecord: Equatable, Sendable {
        /// The name of its credential, for display.
        package var name: String
        /// The rejection that still counts after the user has permitted one more attempt: 0 or 1.
        package var carriedFailures = 0
        /// The answers that were not accepted anywhere, since one was.
        package var unaccepted = UnacceptedAnswers()
        /// How many attempts have begun.
        package var begun: UInt64 = 0
        /// How many of them had begun when an answer was last known not to be accepted. Those no longer prove anything.
        package var begunInDoubt: UInt64 = 0
        /// When it was proven last, by this process; nil if never, or if something has cast doubt on it since. Other
        /// processes do not rely on it, so that each of their first answers is an attempt.
        package var provenAt: Int64?
        package var spaces: [AuthenticationSpace: SpaceRecord] = [:]

        package init(name: String) {
            self.name = name
        }

        /// The rejections that are in force, oldest first.
        package func rejections(at now: Int64) -> [(space: AuthenticationSpace, rejection: Rejection)] {
            spaces.compactMap { space, record in
                record.rejection.flatMap { $0.isInForce(at: now) ? (space, $0) : nil }
            }.sorted { ($0.1.at, $0.0.origin.description) < ($1.1.at, $1.0.origin.description) }
        }

        /// The spaces that did not respond to the latest answers, and in which the next attempt must wait; sorted by
        /// origin. Both times are in seconds since 1970.
        package func pauses(at now: Int64) -> [(space: AuthenticationSpace, since: Int64, until: Int64)] {
            let whole = unaccepted.pause(at: now)
            return spaces.compactMap { space, record in
                let pause = max(record.pause(at: now), record.unaccepted.count(at: now) > 0 ? whole : 0)
                guard !record.silent.isEmpty, pause > 0 else { return nil }
                return (space, record.unaccepted.at, now + pause)
            }.sorted { $0.0.origin.description < $1.0.origin.description }
        }

        /// The number of failures: answers that were rejected, and recent ones without a response at spaces that have
        /// never accepted the account.
        func failures(at now: Int64) -> Int {
            spaces.values.reduce(carriedFailures) { sum, record in
                let rejected = record.rejection.map { $0.isInForce(at: now) ? $0.count : 0 } ?? 0
                let counts = record.acceptedAt == nil && record.unaccepted.count(at: now) > 0
                return sum + rejected + (counts ? record.unanswered : 0)
            }
        }

        /// The number of spaces that have rejected the account with a challenge.
        var rejections: Int { carriedFailures + spaces.values.count { $0.rejection?.cause == .challenge } }

        /// Whether the account is not used in any space. Silence does not count: it may be an outage.
        package var isStopped: Bool { rejections >= Breaker.limit }

        package func hasAttempt(of owner: UInt64) -> Bool {
            spaces.values.contains { $0.attempts.contains { $0.owner == owner } }
        }

        /// Whether an answer counts that was not accepted.
        func isInDoubt(at now: Int64) -> Bool { unaccepted.count(at: now) > 0 }

        /// Whether every request may answer in the spaces that have accepted the account.
        func isProven(at now: Int64) -> Bool {
            guard let provenAt, !isInDoubt(at: now) else { return false }
            return (0..<Breaker.provenSeconds).contains(now - provenAt)
        }

        /// Whether a request must wait for the attempts in progress, after so many failures.
        func isHeldUp(after failures: Int, inAcceptingSpace: Bool, at now: Int64) -> Bool {
            var (waitedFor, areSlow) = (0, false)
            for record in spaces.values {
                let isNew = !inAcceptingSpace && record.acceptedAt == nil
                for attempt in record.attempts {
                    if attempt.isPrompt(at: now) || isNew && abs(now - attempt.since) <= Breaker.patienceSeconds {
                        waitedFor += 1
                    } else {
                        areSlow = true
                    }
                }
            }
            return waitedFor > 0 && failures + waitedFor + (areSlow ? 1 : 0) >= Breaker.limit
        }

        /// Whether other processes can ignore the difference between the account records, in which at most the record
        /// of `space` has changed.
        package func isEqualForOthers(to other: AccountRecord?, in space: AuthenticationSpace) -> Bool {
            let failed = (
                other?.carriedFailures ?? 0, other?.unaccepted ?? UnacceptedAnswers(), other?.begunInDoubt ?? 0
            )
            guard failed == (carriedFailures, unaccepted, begunInDoubt) else { return false }
            return spaces[space]?.isEqualForOthers(to: other?.spaces[space]) ?? true
        }
    }
}
