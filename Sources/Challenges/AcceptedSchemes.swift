// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The permitted schemes of a site's line, and the strongest of them that one response offers.
package struct OfferedSchemes: Equatable, Sendable {
    let strongest: AuthenticationScheme
    let permitted: [AuthenticationScheme]

    package init(strongest: AuthenticationScheme, permitted: [AuthenticationScheme]) {
        self.strongest = strongest
        self.permitted = permitted
    }
}

/// The schemes with which origins and parent proxies have accepted an answer. A server that has accepted a strong
/// scheme and now offers only weaker ones may be an attacker in between, who wants the password (RFC 7616 §5.6 and
/// §5.8). Nothing is sent then until the person permits it.
package struct AcceptedSchemes: Equatable, Sendable {
    package struct Entry: Equatable, Sendable {
        package var schemes: Set<AuthenticationScheme>
        /// The names of the credentials that weaker offers did not get. The person permits it with one of them.
        package var withheld: Set<String> = []
        /// The last change, or the first acceptance of the day; in seconds since 1970.
        package var at: Int64

        package init(schemes: Set<AuthenticationScheme>, withheld: Set<String> = [], at: Int64) {
            self.schemes = schemes
            self.withheld = withheld
            self.at = at
        }
    }

    /// The largest number of origins. Beyond it, the one that has not accepted anything for the longest time is
    /// forgotten.
    static let capacity = 2048
    private static let daySeconds: Int64 = 86_400
    /// How long an origin is remembered after its last acceptance.
    private static let yearSeconds: Int64 = 400 * daySeconds

    package private(set) var entries: [Origin: Entry]

    package init(_ entries: [Origin: Entry] = [:]) { self.entries = entries }

    /// The origin has accepted an answer of `scheme`.
    mutating func accepted(_ scheme: AuthenticationScheme, at origin: Origin, now: Int64) {
        var entry = entries[origin] ?? Entry(schemes: [], at: now)
        guard !entry.schemes.contains(scheme) || abs(now - entry.at) > Self.daySeconds else { return }
        entry.schemes.insert(scheme)
        entry.at = now
        entries[origin] = entry
        guard entries.count > Self.capacity, let oldest = entries.min(by: { $0.value.at < $1.value.at }) else { return }
        entries[oldest.key] = nil
    }

    /// The credential of that name was not sent, because the origin has offered only weaker schemes.
    mutating func withheld(_ name: String, at origin: Origin) { entries[origin]?.withheld.insert(name) }

    /// The strongest scheme that the origin has accepted and that the line still permits, if all that it offers is
    /// weaker.
    func stronger(than offered: OfferedSchemes, at origin: Origin) -> AuthenticationScheme? {
        guard let entry = entries[origin] else { return nil }
        let order = AuthenticationScheme.allCases
        guard let strongest = order.first(where: { entry.schemes.contains($0) && offered.permitted.contains($0) }),
            let rank = order.firstIndex(of: offered.strongest), order[..<rank].contains(strongest)
        else { return nil }
        return strongest
    }

    /// The person permits weaker schemes wherever the credential of that name was withheld, or any if it is nil.
    /// Returns the names of those that were.
    mutating func permitWeaker(for name: String?) -> Set<String> {
        var names: Set<String> = []
        for (origin, entry) in entries where name.map(entry.withheld.contains) ?? !entry.withheld.isEmpty {
            names.formUnion(name.map { [$0] } ?? entry.withheld)
            entries[origin] = nil
        }
        return names
    }

    /// Forgets origins that have accepted nothing for more than a year.
    mutating func removeOld(at now: Int64) {
        entries = entries.filter { abs(now - $0.value.at) <= Self.yearSeconds }
    }
}

extension Breaker {
    /// Why `key` must not be used in answer to `offered`; nil if it may.
    ///
    /// Over TLS, a space that has accepted the same scheme before is one of several on the same server, which offer
    /// different schemes.
    package func refusal(of key: Key, inAnswerTo offered: OfferedSchemes) -> Refusal? {
        guard let stronger = schemes.stronger(than: offered, at: key.space.origin) else { return nil }
        if key.space.origin.scheme == .https, record(of: key)?.acceptedAt != nil { return nil }
        let name = key.credential.name
        return Refusal(
            .heldBack(name),
            "\(key.space.place) has accepted \(stronger.rawValue) before, and now offers nothing stronger than "
                + offered.strongest.rawValue, .permitRetry(name: name))
    }
}
