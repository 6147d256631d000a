// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

extension Breaker {
    /// A user name and password, as far as the breaker distinguishes them.
    package enum Account: Hashable, Sendable {
        case tag(CredentialTag)
        /// A version of a credential without a tag. It is known to this process only.
        case version(CredentialReference)

        /// Whether other processes know the account, too.
        package var isShared: Bool { if case .tag = self { true } else { false } }
    }

    /// An account in one protection space. The credential's name is only for messages.
    package struct Key: Hashable, Sendable {
        /// A longer realm is replaced by its beginning and its digest.
        private static let longestRealm = 200

        package let space: AuthenticationSpace
        package let credential: CredentialReference

        package init(space: AuthenticationSpace, credential: CredentialReference) {
            if let realm = space.realm, realm.utf8.count > Self.longestRealm {
                let digest = Hex.encode(Digest.sha256.hash(Array(realm.utf8)).prefix(16))
                // Bytes and not characters: a character with combining marks may have any length.
                let beginning = String(decoding: realm.utf8.prefix(32), as: UTF8.self)
                self.space = AuthenticationSpace(
                    origin: space.origin, realm: "\(beginning)… \(digest)", scheme: space.scheme)
            } else {
                self.space = space
            }
            self.credential = credential
        }

        package var isShared: Bool { credential.tag != nil }

        package var account: Account { credential.tag.map { .tag($0) } ?? .version(credential) }

        package static func == (left: Self, right: Self) -> Bool {
            left.space == right.space && left.account == right.account
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(space)
            hasher.combine(account)
        }
    }

    /// Identifies the method and path of a request, without revealing the path.
    package struct RequestTag: Hashable, Sendable {
        package let number: UInt64

        package init(number: UInt64) {
            self.number = number
        }

        /// `target` is in origin-form. Its query is ignored.
        package init(method: String, target: String) {
            let path = target.prefix { $0 != "?" && $0 != "#" }
            number = Digest.sha256.hash(Array("\(method) \(path)".utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        }

        /// A request that the caller did not describe.
        package static let unknown = RequestTag(number: 0)
    }

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
        /// How many answers the origin received in vain.
        package let count: Int

        package init(at: Int64, cause: Cause, count: Int) {
            self.at = at
            self.cause = cause
            self.count = count
        }
    }

    /// An attempt whose outcome is not known yet.
    package struct Pending: Equatable, Sendable {
        /// Identifies the process.
        package let owner: UInt64
        /// Seconds since 1970.
        package let since: Int64

        package init(owner: UInt64, since: Int64) {
            self.owner = owner
            self.since = since
        }
    }

    /// What is known about an account in one protection space. Times are in seconds since 1970.
    package struct SpaceRecord: Equatable, Sendable {
        package var rejection: Rejection?
        /// When the space last accepted the account; nil if it never did.
        package var acceptedAt: Int64?
        /// Some of the requests for which the space has accepted the account.
        package var accepted: [RequestTag] = []
        /// The requests for which a space that had accepted the account challenged again, since it last accepted it.
        package var doubtful: [RequestTag] = []
        /// How often the origin did not answer, since the space last accepted the account.
        package var unanswered = 0
        package var unansweredAt: Int64 = 0
        package var pending: Pending?
        /// The last change.
        package var changedAt: Int64
        /// Whether the space has accepted the account in this run of the process.
        package var isConfirmed = false

        package init(changedAt: Int64) {
            self.changedAt = changedAt
        }

        /// Whether other processes need not know the difference between the records.
        package func isEqualForOthers(to other: SpaceRecord?) -> Bool {
            guard let other else { return !isKept && acceptedAt == nil }
            return rejection == other.rejection && accepted == other.accepted && doubtful == other.doubtful
                && unanswered == other.unanswered && pending == other.pending
                && (acceptedAt == nil) == (other.acceptedAt == nil)
        }

        /// Whether the record must not be evicted for another.
        var isKept: Bool { rejection != nil || pending != nil || unanswered > 0 || !doubtful.isEmpty }
    }

    /// What is known about an account.
    package struct AccountRecord: Equatable, Sendable {
        /// The name of its credential, for display.
        package var name: String
        /// The failures that still count after the user has permitted one more attempt.
        package var carriedFailures = 0
        package var spaces: [AuthenticationSpace: SpaceRecord] = [:]

        package init(name: String) {
            self.name = name
        }

        /// The rejections, oldest first.
        package var rejections: [(space: AuthenticationSpace, rejection: Rejection)] {
            spaces.compactMap { space, record in record.rejection.map { (space, $0) } }
                .sorted { ($0.1.at, $0.0.origin.description) < ($1.1.at, $1.0.origin.description) }
        }

        /// The number of answers that no origin accepted.
        func failures(at now: Int64) -> Int {
            spaces.values.reduce(carriedFailures) { sum, record in
                let isRecent = now - record.unansweredAt < Breaker.silenceSeconds
                let rejected = record.rejection.map { $0.isInForce(at: now) ? $0.count : 0 } ?? 0
                return sum + rejected + (isRecent ? record.unanswered : 0)
            }
        }

        /// Whether the account is not used in any space: two answers failed, and at least one of them was rejected.
        package func isStopped(at now: Int64) -> Bool {
            guard failures(at: now) >= Breaker.maximumFailures else { return false }
            return carriedFailures > 0 || spaces.values.contains { $0.rejection?.cause == .challenge }
        }

        package func hasAttempt(of owner: UInt64) -> Bool { spaces.values.contains { $0.pending?.owner == owner } }

        var pendingCount: Int { spaces.values.count { $0.pending != nil } }
    }
}
