// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignAnswering
import CountersignChallenges
import CountersignCryptography

/// The contents of `breaker.json`. Times are in seconds since 1970.
struct StoredRecords: Codable {
    static let format = 1

    struct Account: Codable {
        /// The MAC in hexadecimal digits.
        let tag: String
        /// The credential's name.
        let name: String
        let carriedFailures: Int?
        let unaccepted: Int?
        let unacceptedAt: Int64?
        let attempts: UInt64?
        let attemptsInDoubt: UInt64?
        let spaces: [Space]
    }

    /// A digest with 16 hexadecimal digits, and a second one after `?` if there is a query.
    struct Request: Codable {
        let tag: Breaker.RequestTag

        init(_ tag: Breaker.RequestTag) { self.tag = tag }

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            let numbers = try container.decode(String.self).split(separator: "?").map { UInt64($0, radix: 16) }
            guard let path = numbers.first ?? nil, let whole = numbers.last ?? nil, numbers.count <= 2 else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "not the digest of a request")
            }
            tag = Breaker.RequestTag(path: path, whole: whole)
        }

        func encode(to encoder: any Encoder) throws {
            let path = Self.digits(tag.path)
            var container = encoder.singleValueContainer()
            try container.encode(tag.whole == tag.path ? path : "\(path)?\(Self.digits(tag.whole))")
        }

        private static func digits(_ number: UInt64) -> String {
            Hex.encode((0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) })
        }
    }

    struct Space: Codable {
        /// Later times and larger numbers are damage; sums of valid ones do not overflow.
        static let end: Int64 = 1 << 40
        static let mostFailures = Breaker.UnacceptedAnswers.maximum

        let site: String
        let realm: String?
        let scheme: String
        let rejectedAt: Int64?
        let cause: String?
        let count: Int?
        let acceptedAt: Int64?
        let acceptedRequests: [Request]?
        let doubtfulRequests: [Request]?
        let silentRequests: [Request]?
        let unaccepted: Int?
        let unacceptedAt: Int64?
        let unanswered: Int?
        let attempts: [Attempt]?
        let changedAt: Int64
    }

    /// The schemes that an origin or a parent proxy has accepted.
    struct Accepted: Codable {
        let site: String
        let schemes: [String]
        let withheld: [String]?
        let at: Int64
    }

    /// An attempt in progress.
    struct Attempt: Codable {
        let by: UInt64
        let id: UInt64
        let request: Request
        let since: Int64
        let number: UInt64
    }

    let format: Int
    let accounts: [Account]
    /// Missing in files of earlier versions.
    let accepted: [Accepted]?

    init(_ records: BreakerStorage.Records, _ schemes: AcceptedSchemes = AcceptedSchemes()) {
        format = Self.format
        accepted = schemes.entries.isEmpty ? nil : schemes.entries.map { Accepted($0, $1) }.sorted { $0.site < $1.site }
        accounts = records.compactMap { account, record in
            guard case .tag(let tag) = account else { return nil }
            return Account(
                tag: Hex.encode(tag.bytes), name: record.name,
                carriedFailures: record.carriedFailures == 0 ? nil : record.carriedFailures,
                unaccepted: record.unaccepted.count == 0 ? nil : record.unaccepted.count,
                unacceptedAt: record.unaccepted.count == 0 ? nil : record.unaccepted.at,
                attempts: record.begun == 0 ? nil : record.begun,
                attemptsInDoubt: record.begunInDoubt == 0 ? nil : record.begunInDoubt,
                spaces: record.spaces.map { Space($0, $1) }.sorted {
                    ($0.site, $0.scheme, $0.realm ?? "") < ($1.site, $1.scheme, $1.realm ?? "")
                })
        }.sorted { $0.tag < $1.tag }
    }

    /// Nil if a value is invalid. Schemes that this version does not know are left out.
    var acceptedSchemes: AcceptedSchemes? {
        var entries: [Origin: AcceptedSchemes.Entry] = [:]
        for site in accepted ?? [] {
            guard let origin = try? Origin(listed: site.site), (0..<Space.end).contains(site.at) else { return nil }
            entries[origin] = AcceptedSchemes.Entry(
                schemes: Set(site.schemes.compactMap { AuthenticationScheme(rawValue: $0) }),
                withheld: Set(site.withheld ?? []), at: site.at)
        }
        return AcceptedSchemes(entries)
    }

    /// Nil if a value is invalid.
    var records: BreakerStorage.Records? {
        var records: BreakerStorage.Records = [:]
        for account in accounts {
            guard let tag = Hex.decode(account.tag).flatMap({ CredentialTag(bytes: $0) }) else { return nil }
            var record = Breaker.AccountRecord(name: account.name)
            let carriedFailures = account.carriedFailures ?? 0
            guard (0...Space.mostFailures).contains(carriedFailures),
                let unaccepted = Breaker.UnacceptedAnswers(account.unaccepted, account.unacceptedAt)
            else { return nil }
            record.carriedFailures = carriedFailures
            record.unaccepted = unaccepted
            record.begun = account.attempts ?? 0
            record.begunInDoubt = min(account.attemptsInDoubt ?? 0, record.begun)
            for space in account.spaces {
                guard let (key, value) = space.decoded else { return nil }
                record.spaces[key] = value
            }
            records[.tag(tag)] = record
        }
        return records
    }
}

extension StoredRecords.Accepted {
    init(_ origin: Origin, _ entry: AcceptedSchemes.Entry) {
        site = origin.description
        schemes = entry.schemes.map(\.rawValue).sorted()
        withheld = entry.withheld.isEmpty ? nil : entry.withheld.sorted()
        at = entry.at
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
        acceptedRequests = Self.requests(record.accepted)
        doubtfulRequests = Self.requests(record.doubtful)
        silentRequests = Self.requests(record.silent)
        unaccepted = record.unaccepted.count == 0 ? nil : record.unaccepted.count
        unacceptedAt = record.unaccepted.count == 0 ? nil : record.unaccepted.at
        unanswered = record.unanswered == 0 ? nil : record.unanswered
        let attempts = record.attempts.map { attempt in
            StoredRecords.Attempt(
                by: attempt.owner, id: attempt.id, request: StoredRecords.Request(attempt.request),
                since: attempt.since,
                number: attempt.number)
        }
        self.attempts = attempts.isEmpty ? nil : attempts
        changedAt = record.changedAt
    }

    private static func requests(_ tags: [Breaker.RequestTag]) -> [StoredRecords.Request]? {
        tags.isEmpty ? nil : tags.map { StoredRecords.Request($0) }
    }

    var decoded: (AuthenticationSpace, Breaker.SpaceRecord)? {
        guard let origin = try? Origin(listed: site),
            let scheme = AuthenticationScheme(rawValue: scheme)
        else { return nil }
        var record = Breaker.SpaceRecord(changedAt: changedAt)
        if let rejectedAt {
            guard let cause = cause.flatMap({ Breaker.Rejection.Cause(rawValue: $0) }) else { return nil }
            record.rejection = Breaker.Rejection(at: rejectedAt, cause: cause, count: max(1, count ?? 1))
        }
        record.acceptedAt = acceptedAt
        record.accepted = (acceptedRequests ?? []).map(\.tag)
        record.doubtful = (doubtfulRequests ?? []).map(\.tag)
        record.silent = (silentRequests ?? []).map(\.tag)
        let times = [rejectedAt, acceptedAt, changedAt].compactMap(\.self) + (attempts ?? []).map(\.since)
        let counts = [unanswered, count].compactMap(\.self)
        guard times.allSatisfy((0..<Self.end).contains), counts.allSatisfy((0...Self.mostFailures).contains),
            let unaccepted = Breaker.UnacceptedAnswers(unaccepted, unacceptedAt)
        else { return nil }
        record.unaccepted = unaccepted
        record.unanswered = unanswered ?? 0
        record.attempts = (attempts ?? []).map { attempt in
            Breaker.Pending(
                owner: attempt.by, id: attempt.id, request: attempt.request.tag, since: attempt.since,
                number: attempt.number)
        }
        return (AuthenticationSpace(origin: origin, realm: realm, scheme: scheme), record)
    }
}

extension Breaker.UnacceptedAnswers {
    /// Nil if a value is invalid.
    fileprivate init?(_ count: Int?, _ at: Int64?) {
        let (count, at) = (count ?? 0, at ?? 0)
        guard (0...Self.maximum).contains(count), (0..<StoredRecords.Space.end).contains(at) else { return nil }
        self.init(count: count, at: at)
    }
}
