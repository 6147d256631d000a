// SPDX-License-Identifier: Apache-2.0

// Rules:
//   1. Until a space has accepted an account in this run, one request at a time tries it there, and at most as many in
//      all spaces as may still fail.
//   2. A rejection stops the account in its realm, or at the whole site if the scheme has no realms. After two
//      failures, the account is used nowhere.
//   3. A challenge does not reject an account that the space has accepted, unless it is for a request that the space
//      has accepted before: the request may need a permission that the account does not have. The response is handed
//      back. One further request may then try, and after half an hour another one; any that was accepted before may
//      always try. The next acceptance ends this.
//   4. A connection that ends without an answer is a failure, unless the space has accepted the account. Two in one
//      space stop the account there for a day, and in every space that has not accepted it. An answer lifts this.
//   5. Only another user name or password, or the user, lifts a rejection by a challenge.

/// Prevents a wrong password from locking its account. Pure: the caller provides the time, and shares the records with
/// other processes.
package struct Breaker: Equatable, Sendable {
    /// What a request may do.
    package enum Decision: Equatable, Sendable {
        /// Answer, together with others: the space has accepted the account.
        case free
        /// Answer, after ``attemptBegan(_:owner:at:)``.
        case mayTry
        /// Ask again after another attempt has ended.
        case wait
        /// Do not answer, for the given reason, which appears in `Proxy-Status`.
        case refused(reason: String)
        /// Do not answer this request; the account is not known to be wrong.
        case unsuitable(reason: String)
    }

    /// Whether a request may answer with the credential.
    package enum Permission: Equatable, Sendable {
        /// Yes. The caller must report the end of the attempt.
        case go
        /// Another request is trying it. Request permission again when that attempt has ended.
        case wait
        /// No, for the given reason, which appears in `Proxy-Status`.
        case refused(reason: String)
        /// Not this request, for the given reason. Another credential is not needed.
        case unsuitable(reason: String)
    }

    /// How an attempt ended.
    package enum Result: Equatable, Sendable {
        case accepted
        /// The origin challenged again.
        case rejected
        /// The answer was sent, and the connection ended without a response.
        case unanswered
        /// The origin neither accepted nor rejected it, or it was not sent.
        case inconclusive
    }

    /// What the end of an attempt means.
    package enum Finding: Equatable, Sendable {
        /// Nothing that needs to be reported.
        case unremarkable
        /// The account is no longer used in the space; with `everywhere`, in none.
        case rejected(Rejection.Cause, everywhere: Bool)
        /// The origin did not answer, which may happen once.
        case unanswered
        /// The space has accepted the account before, and does not for this request: the response is handed back.
        case handedBack
    }

    /// After so many failures, an account is used nowhere.
    static let maximumFailures = 2
    /// How many further requests may try an account after a challenge that did not reject it.
    static let maximumDoubts = 2
    /// How long a challenge that did not reject an account keeps other requests from trying it.
    static let doubtSeconds: Int64 = 1800
    /// How long an acceptance by another process counts as if it were by this one.
    static let freshSeconds: Int64 = 60
    /// How long an unanswered attempt counts, and how long two of them stop an account.
    static let silenceSeconds: Int64 = 86_400
    /// How long an attempt of another process may take.
    static let pendingSeconds: Int64 = 600
    /// How many accepted requests of a space are stored.
    static let acceptedRequests = 8

    /// The largest number of spaces of all accounts. Beyond it, the record that was not changed for the longest time is
    /// evicted. Records of failures are never evicted.
    package let capacity: Int
    package private(set) var accounts: [Account: AccountRecord] = [:]

    package init(capacity: Int = 4096, accounts: [Account: AccountRecord] = [:]) {
        self.capacity = capacity
        self.accounts = accounts
    }

    /// The record of an account in one space.
    package func record(of key: Key) -> SpaceRecord? { accounts[key.account]?.spaces[key.space] }

    /// The number of stored spaces.
    package var count: Int { accounts.values.reduce(0) { $0 + $1.spaces.count } }

    // MARK: Decisions

    /// Whether `request` may answer with `key`.
    package func decide(_ key: Key, for request: RequestTag, at now: Int64) -> Decision {
        guard let account = accounts[key.account] else { return room(for: key) }
        let record = account.spaces[key.space]
        let hasAccepted = record?.acceptedAt != nil
        if let refusal = refusal(of: key, account, record, at: now) { return .refused(reason: refusal) }
        if let record, hasAccepted, record.isDoubted(at: now), !record.accepted.contains(request) {
            guard record.doubtful.count < Self.maximumDoubts, !record.doubtful.contains(request) else {
                return .unsuitable(
                    reason: "credential \"\(key.credential.name)\" was accepted here before, but not for this request")
            }
        }
        if let record, let acceptedAt = record.acceptedAt, record.doubtful.isEmpty,
            record.isConfirmed || (0..<Self.freshSeconds).contains(now - acceptedAt)
        {
            return .free
        }
        guard record?.pending == nil else { return .wait }
        let failures = hasAccepted ? 0 : account.failures(at: now)
        if failures + account.pendingCount >= Self.maximumFailures { return .wait }
        return record == nil ? room(for: key) : .mayTry
    }

    private func room(for key: Key) -> Decision {
        let hasRoom = count < capacity || accounts.values.contains { $0.spaces.values.contains { !$0.isKept } }
        return hasRoom ? .mayTry : .refused(reason: "too many rejected credentials are remembered")
    }

    /// The reason not to use the account in the space for any request.
    private func refusal(of key: Key, _ account: AccountRecord, _ record: SpaceRecord?, at now: Int64) -> String? {
        let name = "credential \"\(key.credential.name)\""
        let overlapping = account.spaces.first { $0.overlaps(key.space) && $1.rejection?.isInForce(at: now) == true }
        let rejection = record?.rejection.flatMap { $0.isInForce(at: now) ? $0 : nil } ?? overlapping?.value.rejection
        switch rejection?.cause {
        case .challenge: return "\(name) was rejected here and has not changed since"
        case .silence: return "the origin closed the connection twice instead of answering \(name)"
        case nil: break
        }
        if account.isStopped(at: now) { return "\(name) was rejected twice and is not sent anywhere until it changes" }
        if record?.acceptedAt == nil, account.failures(at: now) >= Self.maximumFailures {
            return "\(name) was sent twice without an answer, and this site has not accepted it yet"
        }
        return nil
    }

    /// The reason that the account must not be used in the space for any request, or nil.
    package func refusal(of key: Key, at now: Int64) -> String? {
        accounts[key.account].flatMap { refusal(of: key, $0, $0.spaces[key.space], at: now) }
    }

    /// Whether the account must not be used in the space for any request.
    package func isRejected(_ key: Key, at now: Int64) -> Bool {
        refusal(of: key, at: now) != nil
    }

    /// Whether the account may be sent in the space before a challenge.
    package func mayPreempt(_ key: Key, at now: Int64) -> Bool {
        record(of: key)?.doubtful.isEmpty != false && !isRejected(key, at: now)
    }

    /// Whether any account must not be used in some space, or any space is in doubt.
    package var hasFailures: Bool {
        accounts.values.contains { account in
            account.carriedFailures > 0
                || account.spaces.values.contains { $0.rejection != nil || !$0.doubtful.isEmpty || $0.unanswered > 0 }
        }
    }

    // MARK: Attempts

    /// An attempt that ``decide(_:for:at:)`` permits begins.
    package mutating func attemptBegan(_ key: Key, owner: UInt64, at now: Int64) {
        change(key, at: now) { $0.pending = Pending(owner: owner, since: now) }
    }

    /// An attempt ended, or a pre-emptive answer was rejected. `owner` is the process that made it.
    package mutating func attemptEnded(
        _ key: Key, for request: RequestTag, _ result: Result, owner: UInt64, at now: Int64
    ) -> Finding {
        switch result {
        case .accepted:
            change(key, at: now) { record in
                record.end(owner)
                record.accept(request, at: now)
            }
            accounts[key.account]?.carriedFailures = 0
            return .unremarkable
        case .inconclusive:
            if record(of: key) != nil { change(key, at: now) { $0.end(owner) } }
            return .unremarkable
        case .rejected:
            return rejected(key, for: request, owner, at: now)
        case .unanswered:
            return unanswered(key, owner, at: now)
        }
    }

    private mutating func rejected(_ key: Key, for request: RequestTag, _ owner: UInt64, at now: Int64) -> Finding {
        var isDoubt = false
        change(key, at: now) { record in
            record.end(owner)
            guard record.rejection?.cause != .challenge else { return }
            if record.acceptedAt != nil, record.rejection == nil, !record.accepted.contains(request) {
                isDoubt = true
                if record.doubtful.count < Self.maximumDoubts, !record.doubtful.contains(request) {
                    record.doubtful.append(request)
                }
            } else {
                record.reject(.challenge, at: now)
            }
        }
        return isDoubt
            ? .handedBack : .rejected(.challenge, everywhere: accounts[key.account]?.isStopped(at: now) ?? false)
    }

    private mutating func unanswered(_ key: Key, _ owner: UInt64, at now: Int64) -> Finding {
        var isCounted = false
        change(key, at: now) { record in
            record.end(owner)
            isCounted = record.addUnanswered(at: now)
        }
        guard isCounted else { return .unremarkable }
        guard record(of: key)?.rejection != nil else { return .unanswered }
        return .rejected(.silence, everywhere: accounts[key.account]?.isStopped(at: now) ?? false)
    }

    /// Changes the record of `key`, which is created if there is room.
    private mutating func change(_ key: Key, at now: Int64, _ body: (inout SpaceRecord) -> Void) {
        if record(of: key) == nil, !makeRoom() { return }
        var account = accounts[key.account] ?? AccountRecord(name: key.credential.name)
        var record = account.spaces[key.space] ?? SpaceRecord(changedAt: now)
        body(&record)
        record.changedAt = now
        account.spaces[key.space] = record
        account.name = key.credential.name
        accounts[key.account] = account
    }

    private mutating func makeRoom() -> Bool {
        guard count >= capacity else { return true }
        var oldest: (account: Account, space: AuthenticationSpace, at: Int64)?
        for (account, record) in accounts {
            for (space, record) in record.spaces where !record.isKept && record.changedAt < oldest?.at ?? .max {
                oldest = (account, space, record.changedAt)
            }
        }
        guard let oldest else { return false }
        accounts[oldest.account]?.spaces[oldest.space] = nil
        if let record = accounts[oldest.account], record.spaces.isEmpty, record.carriedFailures == 0 {
            accounts[oldest.account] = nil
        }
        return true
    }

    // MARK: Other processes

    /// Turns the attempts whose processes have ended, and those that take too long, into unanswered ones.
    package mutating func abandonAttempts(at now: Int64, isRunning: (UInt64) -> Bool) {
        for (account, record) in accounts {
            for (space, record) in record.spaces {
                guard let pending = record.pending,
                    abs(now - pending.since) > Self.pendingSeconds || !isRunning(pending.owner)
                else { continue }
                accounts[account]?.spaces[space]?.end(pending.owner)
                accounts[account]?.spaces[space]?.addUnanswered(at: now)
            }
        }
    }

    /// Removes records without failures that have not changed since the first time, and rejections from before the
    /// second.
    package mutating func removeRecords(unchangedSince time: Int64, rejectionsSince rejected: Int64) {
        for (account, record) in accounts {
            let spaces = record.spaces.filter { _, record in
                record.rejection.map { $0.at >= rejected } ?? (record.pending != nil || record.changedAt >= time)
            }
            accounts[account]?.spaces = spaces
            if spaces.isEmpty { accounts[account] = nil }
        }
    }

    /// Spaces that `known` has seen to accept an account, and that still do, are free for all requests.
    package mutating func confirm(as known: Breaker) {
        for (account, record) in known.accounts {
            for (space, record) in record.spaces where record.isConfirmed {
                guard let new = accounts[account]?.spaces[space], new.acceptedAt != nil, new.doubtful.isEmpty else {
                    continue
                }
                accounts[account]?.spaces[space]?.isConfirmed = true
            }
        }
    }

    // MARK: The user

    /// The credential `name` has been changed or removed: records of other accounts no longer bear its name.
    package mutating func nameChanged(_ name: String, to account: Account?) {
        for (key, record) in accounts where record.name == name && key != account { accounts[key]?.name = "" }
    }

    /// Permits one more attempt with the credentials named `name`, or with all. Returns the names of those that had
    /// failed. Attempts in progress are not affected.
    package mutating func permitRetry(of name: String?, at now: Int64) -> [String] {
        var names: [String] = []
        for (key, account) in accounts where name.map({ $0 == account.name }) ?? !account.name.isEmpty {
            guard account.failures(at: now) > 0 || account.spaces.values.contains(where: { !$0.doubtful.isEmpty })
            else { continue }
            names.append(account.name)
            accounts[key]?.carriedFailures = Self.maximumFailures - 1
            for space in account.spaces.keys { accounts[key]?.spaces[space]?.forgive() }
        }
        return names.sorted()
    }
}

extension Breaker.Rejection {
    /// Silence counts for a limited time: the origin may have had an outage.
    func isInForce(at now: Int64) -> Bool { cause == .challenge || now - at < Breaker.silenceSeconds }
}

extension Breaker.SpaceRecord {
    /// Whether a request that the space has not accepted before must not try now.
    func isDoubted(at now: Int64) -> Bool { !doubtful.isEmpty && now - changedAt < Breaker.doubtSeconds }

    fileprivate mutating func end(_ owner: UInt64) {
        if pending?.owner == owner { pending = nil }
    }

    fileprivate mutating func accept(_ request: Breaker.RequestTag, at now: Int64) {
        // A rejection outlives the acceptance of another request in flight, but silence is refuted by an answer.
        guard rejection?.cause != .challenge else { return }
        rejection = nil
        acceptedAt = now
        isConfirmed = true
        doubtful = []
        unanswered = 0
        guard !accepted.contains(request) else { return }
        accepted.append(request)
        if accepted.count > Breaker.acceptedRequests { accepted.removeFirst() }
    }

    /// Returns whether the attempt counts.
    @discardableResult
    fileprivate mutating func addUnanswered(at now: Int64) -> Bool {
        // A site that has accepted the account before may have an outage.
        guard acceptedAt == nil, rejection?.isInForce(at: now) != true else { return false }
        rejection = nil
        if now - unansweredAt >= Breaker.silenceSeconds { unanswered = 0 }
        unanswered += 1
        unansweredAt = now
        changedAt = now
        if unanswered >= Breaker.maximumFailures { reject(.silence, at: now) }
        return true
    }

    fileprivate mutating func reject(_ cause: Breaker.Rejection.Cause, at now: Int64) {
        let count = cause == .challenge ? 1 + doubtful.count + unanswered : unanswered
        rejection = Breaker.Rejection(at: now, cause: cause, count: count)
        acceptedAt = nil
        accepted = []
        isConfirmed = false
        doubtful = []
        unanswered = 0
    }

    fileprivate mutating func forgive() {
        rejection = nil
        doubtful = []
        unanswered = 0
        isConfirmed = false
    }
}
