// SPDX-License-Identifier: Apache-2.0

package import CountersignAnswering
package import CountersignChallenges
import CountersignCryptography

/// A credential that the breaker does not permit to be sent, at some site or anywhere: for `explain`, `credential list`
/// and `vault status`.
package struct BlockedCredential: Equatable, Sendable, Codable {
    /// A site or realm at which it failed.
    package struct Place: Equatable, Sendable, Codable {
        /// `https://host:port`, or `the KDC`.
        package let site: String
        package let realm: String?
        package let scheme: String
        /// RFC 3339.
        package let since: String
        /// `rejected`, or `no answer` if the origin did not respond.
        package let reason: String
        /// When the next attempt is possible, RFC 3339; nil if that requires a new credential.
        package let until: String?
    }

    package let name: String
    /// Whether it is sent nowhere.
    package let isBlockedEverywhere: Bool
    /// Oldest first.
    package let places: [Place]

    private enum CodingKeys: String, CodingKey {
        case name, places
        case isBlockedEverywhere = "everywhere"
    }

    /// The blocked credentials in `records`, sorted by name. `tags` limits them to these, if given. Records of a
    /// credential that has changed since have no name.
    package static func all(
        in records: BreakerStorage.Records, only tags: Set<CredentialTag>? = nil, at now: Int64
    ) -> [BlockedCredential] {
        records.compactMap { account, record -> BlockedCredential? in
            guard case .tag(let tag) = account, tags?.contains(tag) ?? !record.name.isEmpty else { return nil }
            let places =
                record.rejections(at: now).map { Place($0, since: $1.at, until: $1.end) }
                + record.pauses(at: now).map { Place($0, since: $1, until: $2) }
            guard !places.isEmpty || record.isStopped else { return nil }
            return BlockedCredential(
                name: record.name, isBlockedEverywhere: record.isStopped, places: places)
        }.sorted { $0.name < $1.name }
    }

    /// `rejected at https://git.corp.example:443 (basic, realm "r") since 2026-01-01T00:00:00Z`, whether it is sent
    /// elsewhere, and the end of a pause.
    package var sentence: String {
        let sentences = places.map { place in
            let realm = place.realm.map { ", realm \($0.debugDescription)" } ?? ""
            let end = place.until.map { ", next attempt after \($0)" } ?? ""
            return "\(place.reason) at \(place.site) (\(place.scheme)\(realm)) since \(place.since)\(end)"
        }
        let everywhere = isBlockedEverywhere ? ["not sent anywhere until it changes"] : []
        let retry =
            places.contains { $0.until != nil } ? [Remedy.permitRetry(name: name).sentence] : []
        return (sentences + everywhere + retry).joined(separator: "; ")
    }
}

extension BlockedCredential.Place {
    /// A place without an `until` has rejected the credential.
    fileprivate init(_ space: AuthenticationSpace, since: Int64, until: Int64?) {
        self.init(
            site: space.place, realm: space.realm, scheme: space.scheme.rawValue,
            since: WallClock.rfc3339(since), reason: until == nil ? "rejected" : "no answer",
            until: until.map(WallClock.rfc3339))
    }
}
