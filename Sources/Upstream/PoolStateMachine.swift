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
    private let surplusSeconds: UInt64

    /// At most `idlePerKey` idle connections a key, none of them idle for longer than `idleSeconds`. More than that may be idle
    /// for `surplusSeconds`: between the requests of a burst they are about to be needed, and a handshake is dear.
    package init(idlePerKey: Int, idleSeconds: UInt64, surplusSeconds: UInt64 = 0) {
        self.idlePerKey = idlePerKey
        self.idleSeconds = idleSeconds
        self.surplusSeconds = surplusSeconds
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
        guard parked.count > idlePerKey, isTooOld(parked[0], now, limit: surplusSeconds) else {
            idle[key] = parked
            return .parked
        }
        let surplus = parked.removeFirst()
        idle[key] = parked
        return .close(surplus.id)
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
            let surplus = max(0, parked.count - idlePerKey)
            var kept: [Idle] = []
            for (index, connection) in parked.enumerated() {
                let goes = index < surplus && isTooOld(connection, now, limit: surplusSeconds)
                if goes || now - min(now, connection.since) > idleSeconds {
                    expired.append(connection.id)
                } else {
                    kept.append(connection)
                }
            }
            guard kept.count != parked.count else { continue }
            idle[key] = kept.isEmpty ? nil : kept
        }
        return expired
    }

    private func isTooOld(_ connection: Idle, _ now: UInt64, limit: UInt64) -> Bool {
        now - min(now, connection.since) >= limit
    }

    /// Every idle connection; the pool is empty afterwards.
    package mutating func shutDown() -> [ConnectionID] {
        defer { idle = [:] }
        return idle.values.flatMap { $0.map(\.id) }
    }
}
