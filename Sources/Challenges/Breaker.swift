// SPDX-License-Identifier: Apache-2.0

// Rules:
//   1. An account is proven when a site accepts it after a challenge, because a page that accepts an answer without a
//      challenge may be public. For ten seconds after that, this process sends it freely in every space that has
//      accepted it, also ahead of a challenge.
//   2. Every other answer is an attempt, is recorded before it is sent, and follows a challenge. The attempts in
//      progress and the answers that count (rule 6) are at most two together, in all spaces and in all processes of the
//      home. Other requests wait for a verdict. A space that has never accepted the account is tried by one request at
//      a time. No request repeats an attempt with a password.
//   3. An attempt that has taken more than 20 seconds has most probably been accepted, and is only slow. All of these
//      together hold up others like one attempt, and only if there is another one. In a space that has never accepted
//      the account, it takes ten minutes until it no longer holds up the attempts in such spaces.
//   4. A challenge to an answer rejects the account in its realm, or at the whole site if the scheme has no realms.
//      After two such rejections, the account is used nowhere. But if the space has accepted the account, has not
//      accepted this request before, and does not say that the account itself is wrong, the request may need a
//      permission that the account does not have: the response is handed back, and requests for that path are not
//      answered for half an hour, or until the next acceptance.
//   5. In a space that has never accepted the account, a connection that ends without a response is a failure for a
//      day. Two stop the account there, and in all other such spaces. Any answer lifts this.
//   6. Every answer that is not accepted counts until the account is proven by an attempt that began later, but for a
//      day at most: rule 4 or 5, and also if the origin's verdict is unknown, because the client gave up, a time limit
//      passed, or the process ended. Freely sent answers count as one, because they were sent together. So does an
//      attempt of more than 20 seconds that began before the latest answer that counts. A challenge to an unasked
//      answer counts if nothing else does: the next answer, to that challenge, decides.
//   7. After two that count, the next attempt waits for half an hour, the following ones for an hour, two hours, and
//      then four. Each space counts for itself, too, because another site may have a directory of its own; there, a
//      request that the space has accepted before may be tried in between, unless its latest answer counts.
//   8. An origin that has accepted a scheme and offers only weaker ones gets no answer until the user permits it
//      (`AcceptedSchemes`).
//   9. Only another user name or password, or the user, lifts a rejection by a challenge. The user permits one attempt
//      in all: unless it is accepted, the next one waits. If a rejection preceded, the next one counts as the second.
//  10. No server locks an account because of a token or a ticket. Rules 1 and 2 permit free use of those wherever they
//      have been accepted.

/// Prevents a wrong password from locking its account. Pure: the caller provides the time, and shares the records with
/// other processes.
package struct Breaker: Equatable, Sendable {
    /// Whether a request may be answered.
    package enum Decision: Equatable, Sendable {
        /// Answer, together with others: the account is proven.
        case free
        /// Answer, after ``attemptBegan(_:for:owner:at:)``.
        case mayTry
        /// Ask again after another attempt has ended.
        case wait
        /// Do not answer, for the given reason, which appears in `Proxy-Status`.
        case refused(reason: Refusal)
        /// Do not answer this request now; the account is not known to be wrong.
        case unsuitable(reason: Refusal)
    }

    /// Whether a request may answer with the credential.
    package enum Permission: Equatable, Sendable {
        /// Yes. The caller must report the end of the attempt, with ``Key/used(by:)``.
        case permitted(attempt: UInt64)
        /// Another request is trying it. Request permission again when that attempt has ended.
        case wait
        /// No, for the given reason, which appears in `Proxy-Status`.
        case refused(reason: Refusal)
        /// Not this request, for the given reason. Another credential is not needed.
        case unsuitable(reason: Refusal)

        /// Any ``permitted(attempt:)``.
        package static let go = Permission.permitted(attempt: 0)

        /// Which attempt was permitted does not matter.
        package static func == (left: Self, right: Self) -> Bool {
            switch (left, right) {
            case (.permitted, .permitted), (.wait, .wait): true
            case (.refused(let left), .refused(let right)), (.unsuitable(let left), .unsuitable(let right)):
                left == right
            case (.permitted, _), (.wait, _), (.refused, _), (.unsuitable, _): false
            }
        }
    }

    /// How an attempt, or the use of an answer without a challenge, ended.
    package enum Result: Equatable, Sendable {
        case accepted
        /// An answer that was sent without a challenge got a response that is not a challenge. The page may be public.
        case acceptedUnasked
        /// An answer that was sent without a challenge was challenged, and the answer to that challenge will decide.
        case challengedUnasked
        /// The origin challenged again.
        case rejected
        /// The origin said that the credential itself is wrong, so that it does not matter which request it was for.
        case invalid
        /// The answer was sent, and the origin ended the connection without a response.
        case unanswered
        /// The answer was sent, but the exchange ended before the response: the client gave up, or a time limit passed.
        case unknown
        /// The answer was not sent, because the origin offers only weaker schemes than it has accepted before.
        case withheld
        /// The answer was not sent, or the response says nothing about it.
        case inconclusive
    }

    /// The meaning of the end of an attempt.
    package enum Finding: Equatable, Sendable {
        /// Nothing that needs to be reported.
        case unremarkable
        /// The account is no longer used in the space; with `everywhere`, in none.
        case rejected(Rejection.Cause, everywhere: Bool)
        /// The origin did not answer, which may happen once.
        case unanswered
        /// The origin did not answer, or the exchange did not wait for it. There is no further attempt for so long.
        case paused(seconds: Int64)
        /// The space has accepted the account before, and does not for this request: the response is handed back.
        case handedBack
    }

    /// After so many rejections, an account is used nowhere. So many attempts may be in progress or without an
    /// acceptance, in all spaces together or in one of them.
    static let limit = 2
    /// How long the first attempt after the limit waits. Each following one waits twice as long.
    static let shortestPauseSeconds: Int64 = 1800
    static let longestPauseSeconds: Int64 = 14_400
    /// How long an acceptance proves an account.
    package static let provenSeconds: Int64 = 10
    /// How long an answer that was not accepted counts, and how long silence stops an account.
    static let daySeconds: Int64 = 86_400
    /// How long an attempt in a space that has never accepted the account holds up others in such spaces.
    static let patienceSeconds: Int64 = 600
    /// How long a single attempt holds up others: less than the time that a client waits.
    static let promptSeconds: Int64 = 20
    /// How many accepted requests of a space are stored.
    static let acceptedRequests = 16
    /// How many requests are stored that a space has not accepted since it last accepted the account.
    static let unacceptedRequests = 8

    /// The largest number of spaces of all accounts. Beyond it, the record that was not changed for the longest time is
    /// evicted. Records of failures are never evicted.
    package let capacity: Int
    package internal(set) var accounts: [Account: AccountRecord] = [:]
    /// With which schemes origins have accepted answers.
    package internal(set) var schemes: AcceptedSchemes

    package init(
        capacity: Int = 4096, accounts: [Account: AccountRecord] = [:], schemes: AcceptedSchemes = AcceptedSchemes()
    ) {
        self.capacity = capacity
        self.accounts = accounts
        self.schemes = schemes
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
        if let refusal = refusal(of: key, account, record, at: now) { return .refused(reason: refusal) }
        if let record, record.isFree(at: now),
            account.isProven(at: now) || !key.locksAccount && !account.isInDoubt(at: now)
        {
            return .free
        }
        let hasAccepted = record?.acceptedAt != nil
        if !hasAccepted, let attempt = record?.attempts.first {
            guard abs(now - attempt.since) > Self.patienceSeconds else { return .wait }
            return .unsuitable(reason: "another request has been trying \(Self.name(key)) for more than ten minutes")
        }
        if let obstacle = obstacle(of: key, account, record, for: request, at: now) {
            return .unsuitable(reason: obstacle)
        }
        let unaccepted = account.unaccepted.count(at: now)
        let failures = hasAccepted ? unaccepted : max(unaccepted, account.failures(at: now))
        if account.isHeldUp(after: failures, inAcceptingSpace: hasAccepted, at: now) { return .wait }
        return record == nil ? room(for: key) : .mayTry
    }

    private func room(for key: Key) -> Decision {
        let hasRoom = count < capacity || accounts.values.contains { $0.spaces.values.contains { !$0.isKept } }
        return hasRoom ? .mayTry : .refused(reason: "too many rejected credentials are remembered")
    }

    /// Until the credential changes.
    private static func blocked(_ key: Key, _ reason: String) -> Refusal {
        Refusal(.blocked(key.credential.name), reason)
    }

    /// For a while, or until the person permits an attempt.
    private static func heldBack(_ key: Key, _ reason: String) -> Refusal {
        let name = retriedName(key)
        return Refusal(.heldBack(name), reason, .permitRetry(name: name))
    }

    private static func name(_ key: Key) -> String { "credential \"\(key.credential.name)\"" }

    /// The reason not to use the account in the space for any request.
    private func refusal(of key: Key, _ account: AccountRecord, _ record: SpaceRecord?, at now: Int64) -> Refusal? {
        let name = Self.name(key)
        let overlapping = account.spaces.first { $0.overlaps(key.space) && $1.rejection?.isInForce(at: now) == true }
        let rejection = record?.rejection.flatMap { $0.isInForce(at: now) ? $0 : nil } ?? overlapping?.value.rejection
        switch rejection?.cause {
        case .challenge: return Self.blocked(key, "\(name) was rejected here and has not changed since")
        case .silence:
            return Self.heldBack(key, "the origin closed the connection twice instead of answering \(name)")
        case nil: break
        }
        if account.isStopped {
            return Self.blocked(key, "\(name) was rejected twice and is not sent anywhere until it changes")
        }
        if record?.acceptedAt == nil, account.failures(at: now) >= Self.limit {
            return Self.heldBack(key, "\(name) was sent twice in vain, and this site has not accepted it yet")
        }
        return nil
    }

    /// The reason not to use the account in the space for `request` now.
    private func obstacle(
        of key: Key, _ account: AccountRecord, _ record: SpaceRecord?, for request: RequestTag, at now: Int64
    ) -> Refusal? {
        let hasAccepted = record?.acceptedAt != nil
        let decides = hasAccepted && record?.isFamiliar(request) == true
        if let record, !decides {
            let pause = record.pause(at: now)
            if !record.silent.isEmpty, pause > 0 {
                return Self.heldBack(
                    key,
                    "\(Self.name(key)) was sent here without a response, and is not sent for \(Self.duration(pause))")
            }
            if pause > 0 || record.isDoubtful(request, at: now) {
                return Self.heldBack(key, "\(Self.name(key)) was accepted here before, but not for this request")
            }
        }
        let pause = account.unaccepted.pause(at: now)
        guard pause > 0 else { return nil }
        return Self.heldBack(
            key, "\(Self.name(key)) has not been accepted lately, and is not sent for \(Self.duration(pause))")
    }

    /// The name for which a person permits an attempt. All tickets of a user have the same, which cannot be entered.
    package static func retriedName(_ key: Key) -> String? { key.credential.isTicket ? nil : key.credential.name }

    /// At least a minute.
    package static func duration(_ seconds: Int64) -> String {
        let minutes = max(1, (seconds + 59) / 60)
        return minutes == 1 ? "a minute" : "\(minutes) minutes"
    }

    /// The reason that the account must not be used in the space for any request, or nil.
    package func refusal(of key: Key, at now: Int64) -> Refusal? {
        accounts[key.account].flatMap { refusal(of: key, $0, $0.spaces[key.space], at: now) }
    }

    /// The reason that no new request may be answered with the account for a while, in the space or in another of the
    /// same site and scheme that has not accepted it; nil without such a reason.
    package func pause(of key: Key, at now: Int64) -> Refusal? {
        guard let account = accounts[key.account] else { return nil }
        let waiting = account.spaces.filter { space, record in
            space.origin == key.space.origin && space.scheme == key.space.scheme && record.acceptedAt == nil
        }
        let spaces = waiting.isEmpty ? [key.space] : Array(waiting.keys)
        return spaces.lazy.compactMap { space in
            let key = Key(space: space, credential: key.credential)
            return obstacle(of: key, account, account.spaces[space], for: .unknown, at: now)
        }.first
    }

    /// Whether the account must not be used in the space for any request.
    package func isRejected(_ key: Key, at now: Int64) -> Bool {
        refusal(of: key, at: now) != nil
    }

    /// Whether the account may be sent in the space before a challenge.
    package func mayPreempt(_ key: Key, at now: Int64) -> Bool {
        guard let account = accounts[key.account] else { return !key.locksAccount }
        guard key.locksAccount ? account.isProven(at: now) : !account.isInDoubt(at: now) else { return false }
        return account.spaces[key.space]?.isInDoubt(at: now) != true && !isRejected(key, at: now)
    }

    /// When the account was proven last, if nothing has cast doubt on it since; in seconds since 1970.
    package func provenAt(_ account: Account, at now: Int64) -> Int64? {
        accounts[account].flatMap { $0.isInDoubt(at: now) ? nil : $0.provenAt }
    }

    /// Whether the space did not accept the latest answer.
    package func isInDoubt(_ key: Key, at now: Int64) -> Bool { record(of: key)?.isInDoubt(at: now) == true }

    /// Whether the space did not accept the latest answer, or no space did, or the account is not used.
    package func isInDoubt(anywhereFor key: Key, at now: Int64) -> Bool {
        isInDoubt(key, at: now) || accounts[key.account]?.isInDoubt(at: now) == true || isRejected(key, at: now)
    }

    /// Whether any account is not free to be used in every space that has accepted it.
    package var hasFailures: Bool {
        accounts.values.contains { account in
            account.carriedFailures > 0 || account.unaccepted.count > 0
                || account.spaces.values.contains {
                    $0.rejection != nil || !$0.doubtful.isEmpty || $0.unaccepted.count > 0
                }
        }
    }
}
