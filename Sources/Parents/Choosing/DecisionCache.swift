// SPDX-License-Identifier: Apache-2.0

/// The decisions of one script, by its view of the request. Belongs to one version of the script, and is emptied when
/// the network changes.
package struct DecisionCache: Sendable {
    private struct Entry: Sendable {
        let result: ScriptResult
        let until: ContinuousClock.Instant
    }

    private var current: [ScriptView: Entry] = [:]
    private var previous: [ScriptView: Entry] = [:]

    /// For a decision that depends at most on the URL and on addresses of hosts.
    package static let lifetime = Duration.seconds(300)
    /// For a decision of a script that has read the clock.
    package static let timedLifetime = Duration.seconds(30)
    /// The most decisions in one of the two generations. Unused ones are dropped with the older generation.
    static let generationCount = 1024

    package init() {}

    package mutating func result(for view: ScriptView, at now: ContinuousClock.Instant) -> ScriptResult? {
        if let entry = current[view] { return now < entry.until ? entry.result : nil }
        guard let entry = previous[view], now < entry.until else { return nil }
        insert(entry, for: view)
        return entry.result
    }

    package mutating func store(
        _ result: ScriptResult, for view: ScriptView, usesClock: Bool, at now: ContinuousClock.Instant
    ) {
        insert(Entry(result: result, until: now + (usesClock ? Self.timedLifetime : Self.lifetime)), for: view)
    }

    package mutating func removeAll() {
        current = [:]
        previous = [:]
    }

    private mutating func insert(_ entry: Entry, for view: ScriptView) {
        if current.count >= Self.generationCount, current[view] == nil {
            previous = current
            current = [:]
        }
        current[view] = entry
    }
}
