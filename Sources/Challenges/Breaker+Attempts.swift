// SPDX-License-Identifier: Apache-2.0

extension Breaker.Result {
    /// The result of an answer whose response is incomplete or refused. `status` is that of its status-line, if it was
    /// read: only a challenging status may be about the answer. The server's verdict on the answer is then unknown, and
    /// the answer must not be repeated without limit.
    package static func unusableResponse(status: Int?, otherwise result: Self) -> Self {
        guard let status else { return result }
        return ChallengeSource.allCases.contains { $0.status == status } ? .unknown : .inconclusive
    }
}

/// The beginning and the end of attempts.
extension Breaker {
    /// An attempt that ``decide(_:for:at:)`` permits begins.
    package mutating func attemptBegan(_ key: Key, for request: RequestTag, owner: UInt64, at now: Int64) {
        // Without a record there is no room for one.
        change(key, at: now) { _ in }
        guard record(of: key) != nil, let number = accounts[key.account]?.begin() else { return }
        change(key, at: now) { record in
            record.attempts.append(
                Pending(owner: owner, id: key.attempt ?? 0, request: request, since: now, number: number))
        }
    }

    /// An attempt ended, or the use of an answer that needed none. `owner` is the process that made it.
    package mutating func attemptEnded(
        _ key: Key, for request: RequestTag, _ result: Result, owner: UInt64, at now: Int64
    ) -> Finding {
        // No server locks an account because of a ticket, so only its rejection matters.
        let countsSilence = !key.credential.isTicket
        switch result {
        case .accepted:
            if !key.space.isKDC { schemes.accepted(key.space.scheme, at: key.space.origin, now: now) }
            accepted(key, for: request, owner, at: now)
            return .unremarkable
        case .acceptedUnasked:
            guard record(of: key)?.acceptedAt != nil else { return .unremarkable }
            change(key, at: now) { $0.accepted.add(request, upTo: Self.acceptedRequests) }
            return .unremarkable
        case .challengedUnasked:
            challengedUnasked(key, at: now)
            return .unremarkable
        case .withheld:
            schemes.withheld(key.credential.name, at: key.space.origin)
            return .unremarkable
        case .inconclusive,
            .unanswered where !countsSilence,
            .unknown where !countsSilence:
            if record(of: key) != nil { change(key, at: now) { $0.end(key, owner, request) } }
            return .unremarkable
        case .rejected:
            return rejected(key, for: request, owner, isDefinite: false, at: now)
        case .invalid:
            return rejected(key, for: request, owner, isDefinite: true, at: now)
        case .unanswered:
            return silent(key, for: request, owner, isClosed: true, at: now)
        case .unknown:
            return silent(key, for: request, owner, isClosed: false, at: now)
        }
    }

    private mutating func accepted(_ key: Key, for request: RequestTag, _ owner: UInt64, at now: Int64) {
        var isAccepted = false
        var attempt: Pending?
        change(key, at: now) { record in
            attempt = record.end(key, owner, request)
            isAccepted = record.accept(request, at: now)
        }
        if isAccepted { accounts[key.account]?.accepted(attempt, at: now) }
    }

    /// Counts for the space and the account, unless others count already. Those that were sent with it are one.
    private mutating func challengedUnasked(_ key: Key, at now: Int64) {
        if accounts[key.account]?.isInDoubt(at: now) == false { accounts[key.account]?.doubt() }
        guard let record = record(of: key), record.rejection == nil, record.unaccepted.count(at: now) == 0 else {
            return
        }
        change(key, at: now) { $0.unaccepted.add(at: now) }
        accounts[key.account]?.addUnaccepted(nil, at: now)
    }

    /// `isDefinite`: the request cannot be the reason.
    private mutating func rejected(
        _ key: Key, for request: RequestTag, _ owner: UInt64, isDefinite: Bool, at now: Int64
    ) -> Finding {
        var isDoubt = false
        count(key, for: request, owner, at: now) { record, counts in
            guard record.rejection?.cause != .challenge else { return false }
            if !isDefinite, record.acceptedAt != nil, record.rejection == nil, !record.accepted.contains(request) {
                isDoubt = true
                record.silent = []
                record.unanswered = 0
                if counts { record.doubtful.add(request, upTo: Self.unacceptedRequests) }
                return counts
            }
            record.reject(.challenge, at: now)
            return true
        }
        return isDoubt
            ? .handedBack : .rejected(.challenge, everywhere: accounts[key.account]?.isStopped ?? false)
    }

    private mutating func silent(
        _ key: Key, for request: RequestTag, _ owner: UInt64, isClosed: Bool, at now: Int64
    ) -> Finding {
        var isCounted = false
        count(key, for: request, owner, at: now) { record, counts in
            guard counts, record.rejection?.isInForce(at: now) != true else { return false }
            isCounted = true
            record.addSilence(request, isClosed: isClosed, at: now)
            return true
        }
        guard isCounted, let record = record(of: key) else { return .unremarkable }
        let account = accounts[key.account]
        if record.rejection != nil {
            return .rejected(.silence, everywhere: account?.isStopped ?? false)
        }
        let pause = max(record.pause(at: now), account?.unaccepted.pause(at: now) ?? 0)
        if pause > 0 { return .paused(seconds: pause) }
        return isClosed ? .unanswered : .unremarkable
    }

    /// Ends an attempt that was not accepted. `body` returns whether it counts. Its second argument is false for an
    /// answer that was sent together with others, before the first of them was known not to be accepted. Answers in
    /// flight together count once in each space, and once for the account.
    private mutating func count(
        _ key: Key, for request: RequestTag, _ owner: UInt64, at now: Int64,
        _ body: (inout SpaceRecord, Bool) -> Bool
    ) {
        var counts = false
        var attempt: Pending?
        change(key, at: now) { record in
            attempt = record.end(key, owner, request)
            counts = body(&record, attempt != nil || record.unaccepted.count(at: now) == 0)
            if counts, record.rejection == nil { record.unaccepted.add(at: now) }
        }
        // An answer that needed no permission was sent before the first doubt, and casts none on attempts that began
        // later.
        if attempt != nil || accounts[key.account]?.isInDoubt(at: now) == false { accounts[key.account]?.doubt() }
        // The space may know already that the account is wrong. The directory counts another answer nevertheless.
        if counts || attempt != nil { accounts[key.account]?.addUnaccepted(attempt, at: now) }
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

    /// The processes of some attempts have ended without a result, so the origins' verdicts on the answers are unknown.
    package mutating func abandonAttempts(at now: Int64, isRunning: (UInt64) -> Bool) {
        for (account, record) in accounts {
            for (space, record) in record.spaces {
                for attempt in record.attempts where !isRunning(attempt.owner) {
                    abandon(attempt, account, space, at: now)
                }
            }
        }
    }

    private mutating func abandon(_ attempt: Pending, _ account: Account, _ space: AuthenticationSpace, at now: Int64) {
        accounts[account]?.spaces[space]?.attempts.removeAll { $0 == attempt }
        accounts[account]?.spaces[space]?.changedAt = now
        accounts[account]?.doubt()
        accounts[account]?.addUnaccepted(attempt, at: now)
        guard accounts[account]?.spaces[space]?.rejection?.isInForce(at: now) != true else { return }
        accounts[account]?.spaces[space]?.addSilence(attempt.request, isClosed: false, at: now)
        accounts[account]?.spaces[space]?.unaccepted.add(at: now)
    }
}

extension Breaker.AccountRecord {
    /// The number of an attempt that begins.
    fileprivate mutating func begin() -> UInt64 {
        begun &+= 1
        return begun
    }

    /// Something casts doubt on the account, and on the attempts in flight.
    fileprivate mutating func doubt() {
        provenAt = nil
        begunInDoubt = begun
    }

    /// A space has accepted the account after a challenge. `attempt` is nil if it needed no permission. Such an answer
    /// was sent soon after a proof, and prolongs that. An attempt that began before an answer was not accepted proves
    /// nothing: the password may have changed in between.
    fileprivate mutating func accepted(_ attempt: Breaker.Pending?, at now: Int64) {
        guard let attempt else {
            if isProven(at: now) { provenAt = now }
            return
        }
        guard attempt.number > begunInDoubt else { return }
        carriedFailures = 0
        unaccepted = Breaker.UnacceptedAnswers()
        // When the directory has judged it, between the beginning and now, is not known.
        provenAt = max(provenAt ?? attempt.since, attempt.since)
    }

    /// An answer was not accepted. `attempt` is nil if it needed no permission. Such an answer counts only if it is the
    /// first one, and so does a long attempt that began before the latest one that counts.
    fileprivate mutating func addUnaccepted(_ attempt: Breaker.Pending?, at now: Int64) {
        let isNew = attempt.map { $0.isPrompt(at: now) || $0.since >= unaccepted.at } ?? false
        if isNew || unaccepted.count(at: now) == 0 { unaccepted.add(at: now) }
    }
}

extension Breaker.SpaceRecord {
    /// Returns the attempt of `key`, which is no longer in progress; nil without one.
    @discardableResult
    fileprivate mutating func end(
        _ key: Breaker.Key, _ owner: UInt64, _ request: Breaker.RequestTag
    ) -> Breaker.Pending? {
        let index = attempts.firstIndex { attempt in
            attempt.owner == owner && (key.attempt.map { $0 == attempt.id } ?? (request == attempt.request))
        }
        return index.map { attempts.remove(at: $0) }
    }

    /// Returns false if a rejection outlives the acceptance, which was of another request in flight.
    fileprivate mutating func accept(_ request: Breaker.RequestTag, at now: Int64) -> Bool {
        guard rejection?.cause != .challenge else { return false }
        rejection = nil
        acceptedAt = now
        forgetUnaccepted()
        accepted.add(request, upTo: Breaker.acceptedRequests)
        return true
    }

    fileprivate mutating func addSilence(_ request: Breaker.RequestTag, isClosed: Bool, at now: Int64) {
        rejection = nil
        if unaccepted.count(at: now) == 0 {
            silent = []
            unanswered = 0
        }
        silent.add(request, upTo: Breaker.unacceptedRequests)
        if isClosed { unanswered = min(unanswered + 1, Breaker.UnacceptedAnswers.maximum) }
        // A space that has accepted the account before may have an outage.
        if acceptedAt == nil, unanswered >= Breaker.limit { reject(.silence, at: now) }
    }

    fileprivate mutating func reject(_ cause: Breaker.Rejection.Cause, at now: Int64) {
        rejection = Breaker.Rejection(at: now, cause: cause, count: cause == .challenge ? 1 : unanswered)
        acceptedAt = nil
        accepted = []
        forgetUnaccepted()
    }

    mutating func forgetUnaccepted() {
        doubtful = []
        unaccepted = Breaker.UnacceptedAnswers()
        silent = []
        unanswered = 0
    }
}

extension [Breaker.RequestTag] {
    /// The one that was added least recently is forgotten first.
    fileprivate mutating func add(_ request: Breaker.RequestTag, upTo limit: Int) {
        guard last != request else { return }
        removeAll { $0 == request }
        append(request)
        if count > limit { removeFirst() }
    }
}
