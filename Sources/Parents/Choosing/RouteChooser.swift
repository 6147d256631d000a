// SPDX-License-Identifier: Apache-2.0

/// Orders a route's hops by the state of its parents, and remembers the dead ones.
///
/// A parent that could not be reached stays dead for five minutes and is tried last meanwhile. It is probed every
/// minute, and one success revives it. A direct connection is made only if the route contains one.
package struct RouteChooser: Sendable {
    private struct Death: Sendable {
        let until: ContinuousClock.Instant
        var nextProbe: ContinuousClock.Instant
    }

    private var deaths: [ParentProxy: Death] = [:]

    package static let memory = Duration.seconds(300)
    package static let probeInterval = Duration.seconds(60)
    /// Scripts may invent names. The parent that would be forgotten first makes room.
    static let maximumDeaths = 256

    package init() {}

    /// The route's candidates in the order in which to try them: those that are not known to be dead first.
    package func order(_ route: Route, at now: ContinuousClock.Instant) -> [Route.Candidate] {
        guard !deaths.isEmpty else { return route.candidates }
        return route.candidates.filter { !isDead($0.hop, at: now) }
            + route.candidates.filter { isDead($0.hop, at: now) }
    }

    package func isDead(_ hop: NextHop, at now: ContinuousClock.Instant) -> Bool {
        guard case .parent(let parent) = hop, let death = deaths[parent] else { return false }
        return now < death.until
    }

    /// The dead parents, and for how long they still are.
    package func failed(at now: ContinuousClock.Instant) -> [ParentProxy: Duration] {
        deaths.filter { now < $0.value.until }.mapValues { $0.until - now }
    }

    /// A connection to the parent failed. A failure while it is dead does not prolong its death, so that it is tried
    /// again after five minutes, even if the probes fail.
    package mutating func parentFailed(_ parent: ParentProxy, at now: ContinuousClock.Instant) {
        guard !isDead(.parent(parent), at: now) else { return }
        deaths = deaths.filter { now < $0.value.until }
        if deaths.count >= Self.maximumDeaths, let oldest = deaths.min(by: { $0.value.until < $1.value.until }) {
            deaths[oldest.key] = nil
        }
        deaths[parent] = Death(until: now + Self.memory, nextProbe: now + Self.probeInterval)
    }

    /// A connection to the parent, or a probe, succeeded.
    package mutating func parentAnswered(_ parent: ParentProxy) {
        if !deaths.isEmpty { deaths[parent] = nil }
    }

    /// The dead parents to probe now. Each is returned once per interval.
    package mutating func probesDue(at now: ContinuousClock.Instant) -> Set<ParentProxy> {
        var due: Set<ParentProxy> = []
        for (parent, death) in deaths where death.nextProbe <= now && now < death.until {
            due.insert(parent)
            deaths[parent]?.nextProbe = now + Self.probeInterval
        }
        return due
    }

    /// The network has changed: a parent that was dead there may be alive here.
    package mutating func networkChanged() { deaths = [:] }
}
