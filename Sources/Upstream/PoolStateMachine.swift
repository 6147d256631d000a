// SPDX-License-Identifier: Apache-2.0

/// Which idle connection serves next, and which goes. Pure: connections are numbers, time is an argument.
///
/// The connection that was used last is lent first, so that a burst's surplus grows old and is closed.
package struct PoolStateMachine: Sendable {
    package typealias ConnectionID = UInt64

    package enum LeaseRequested: Equatable, Sendable {
        case reuse(ConnectionID)
        case connect
    }

    package enum LeaseReturned: Equatable, Sendable {
        case parked
        /// Close these: the returned one, or the oldest that it pushes out.
        case close(ConnectionID)
    }

    private struct Idle: Sendable {
        let id: ConnectionID
        let since: UInt64
    }

    private var idle: [UpstreamKey: [Idle]] = [:]
    private let idlePerKey: Int
    private let idleSeconds: UInt64

    /// At most `idlePerKey` idle connections a key, none of them idle for longer than `idleSeconds`.
    package init(idlePerKey: Int, idleSeconds: UInt64) {
        self.idlePerKey = idlePerKey
        self.idleSeconds = idleSeconds
    }

    /// The number of idle connections.
    package var idleCount: Int { idle.values.reduce(0) { $0 + $1.count } }

    package mutating func leaseRequested(_ key: UpstreamKey, now: UInt64) -> LeaseRequested {
        guard var parked = idle[key], let last = parked.popLast(), now - min(now, last.since) <= idleSeconds else {
            return .connect
        }
        idle[key] = parked.isEmpty ? nil : parked
        return .reuse(last.id)
    }

    package mutating func leaseReturned(_ id: ConnectionID, to key: UpstreamKey, now: UInt64) -> LeaseReturned {
        guard idlePerKey > 0 else { return .close(id) }
        var parked = idle[key] ?? []
        parked.append(Idle(id: id, since: now))
        let surplus = parked.count > idlePerKey ? parked.removeFirst() : nil
        idle[key] = parked
        return surplus.map { .close($0.id) } ?? .parked
    }

    /// The origin closed an idle connection.
    package mutating func connectionClosed(_ id: ConnectionID, of key: UpstreamKey) {
        idle[key]?.removeAll { $0.id == id }
        if idle[key]?.isEmpty == true { idle[key] = nil }
    }

    /// The connections that have been idle for too long; close them.
    package mutating func timePassed(now: UInt64) -> [ConnectionID] {
        var expired: [ConnectionID] = []
        for (key, parked) in idle {
            let kept = parked.filter { now - min(now, $0.since) <= idleSeconds }
            guard kept.count != parked.count else { continue }
            expired += parked.filter { now - min(now, $0.since) > idleSeconds }.map(\.id)
            idle[key] = kept.isEmpty ? nil : kept
        }
        return expired
    }

    /// Every idle connection; the pool is empty afterwards.
    package mutating func shutDown() -> [ConnectionID] {
        defer { idle = [:] }
        return idle.values.flatMap { $0.map(\.id) }
    }
}
