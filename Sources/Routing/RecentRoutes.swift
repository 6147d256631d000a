// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignParents

/// The last answers of a ``RouteFinder``, so that a request to a known origin costs one look-up. They hold for seconds
/// only, and end with a change of their inputs.
struct RecentRoutes {
    struct Key: Hashable {
        let origin: Origin
        /// Empty if no setting depends on paths.
        let path: String
    }

    private struct Entry {
        let candidates: [Route.Candidate]
        let until: ContinuousClock.Instant
    }

    private var entries: [Key: Entry] = [:]
    /// Changes with ``removeAll()``.
    private(set) var generation: UInt64 = 0

    /// How long an answer may outlive a script's decision, or the five minutes of a dead parent.
    static let lifetime = Duration.seconds(2)
    static let maximumCount = 1024

    func candidates(for key: Key, at now: ContinuousClock.Instant) -> [Route.Candidate]? {
        guard let entry = entries[key], now < entry.until else { return nil }
        return entry.candidates
    }

    /// Stores an answer that was found in `generation`.
    mutating func store(
        _ candidates: [Route.Candidate], for key: Key, foundIn generation: UInt64, at now: ContinuousClock.Instant
    ) {
        guard generation == self.generation else { return }
        if entries.count >= Self.maximumCount { entries.removeAll(keepingCapacity: true) }
        entries[key] = Entry(candidates: candidates, until: now + Self.lifetime)
    }

    mutating func removeAll() {
        generation &+= 1
        entries.removeAll(keepingCapacity: true)
    }
}
