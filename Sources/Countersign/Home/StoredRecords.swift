// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignProxy
import CountersignSitePolicy

/// The contents of `breaker.json`. Times are in seconds since 1970.
struct StoredRecords: Codable {
    static let format = 1

    struct Account: Codable {
        /// The MAC in hexadecimal digits.
        let tag: String
        /// The credential's name.
        let name: String
        let carriedFailures: Int?
        let spaces: [Space]
    }

    struct Space: Codable {
        /// Later times and larger numbers are damage; sums of valid ones do not overflow.
        static let end: Int64 = 1 << 40
        static let mostFailures = 1000

        let site: String
        let realm: String?
        let scheme: String
        let rejectedAt: Int64?
        let cause: String?
        let count: Int?
        let acceptedAt: Int64?
        /// Digests of requests.
        let accepted: [UInt64]?
        let doubtful: [UInt64]?
        let unanswered: Int?
        let unansweredAt: Int64?
        let attemptBy: UInt64?
        let attemptSince: Int64?
        let changedAt: Int64
    }

    let format: Int
    let accounts: [Account]

    init(_ records: BreakerStorage.Records) {
        format = Self.format
        accounts = records.compactMap { account, record in
            guard case .tag(let tag) = account else { return nil }
            return Account(
                tag: Hex.encode(tag.bytes), name: record.name,
                carriedFailures: record.carriedFailures == 0 ? nil : record.carriedFailures,
                spaces: record.spaces.map { Space($0, $1) }.sorted {
                    ($0.site, $0.scheme, $0.realm ?? "") < ($1.site, $1.scheme, $1.realm ?? "")
                })
        }.sorted { $0.tag < $1.tag }
    }

    /// Nil if a value is invalid.
    var records: BreakerStorage.Records? {
        var records: BreakerStorage.Records = [:]
        for account in accounts {
            guard let tag = Hex.decode(account.tag).flatMap({ CredentialTag(bytes: $0) }) else { return nil }
            var record = Breaker.AccountRecord(name: account.name)
            let carriedFailures = account.carriedFailures ?? 0
            guard (0...Space.mostFailures).contains(carriedFailures) else { return nil }
            record.carriedFailures = carriedFailures
            for space in account.spaces {
                guard let (key, value) = space.decoded else { return nil }
                record.spaces[key] = value
            }
            records[.tag(tag)] = record
        }
        return records
    }
}

extension StoredRecords.Space {
    init(_ space: AuthenticationSpace, _ record: Breaker.SpaceRecord) {
        site = space.origin.description
        realm = space.realm
        scheme = space.scheme.rawValue
        rejectedAt = record.rejection?.at
        cause = record.rejection?.cause.rawValue
        count = record.rejection?.count
        acceptedAt = record.acceptedAt
        accepted = record.accepted.isEmpty ? nil : record.accepted.map(\.number)
        doubtful = record.doubtful.isEmpty ? nil : record.doubtful.map(\.number)
        unanswered = record.unanswered == 0 ? nil : record.unanswered
        unansweredAt = record.unanswered == 0 ? nil : record.unansweredAt
        attemptBy = record.pending?.owner
        attemptSince = record.pending?.since
        changedAt = record.changedAt
    }

    var decoded: (AuthenticationSpace, Breaker.SpaceRecord)? {
        guard let origin = try? AbsoluteURL(parsing: "\(site)/").origin,
            let scheme = AuthenticationScheme(rawValue: scheme)
        else { return nil }
        var record = Breaker.SpaceRecord(changedAt: changedAt)
        if let rejectedAt {
            guard let cause = cause.flatMap({ Breaker.Rejection.Cause(rawValue: $0) }) else { return nil }
            record.rejection = Breaker.Rejection(at: rejectedAt, cause: cause, count: max(1, count ?? 1))
        }
        record.acceptedAt = acceptedAt
        record.accepted = (accepted ?? []).map { Breaker.RequestTag(number: $0) }
        record.doubtful = (doubtful ?? []).map { Breaker.RequestTag(number: $0) }
        let times = [rejectedAt, acceptedAt, unansweredAt, attemptSince, changedAt].compactMap(\.self)
        guard times.allSatisfy((0..<Self.end).contains), (0...Self.mostFailures).contains(unanswered ?? 0),
            (0...Self.mostFailures).contains(count ?? 0)
        else { return nil }
        record.unanswered = unanswered ?? 0
        record.unansweredAt = unansweredAt ?? 0
        if let attemptBy, let attemptSince { record.pending = Breaker.Pending(owner: attemptBy, since: attemptSince) }
        return (AuthenticationSpace(origin: origin, realm: realm, scheme: scheme), record)
    }
}
