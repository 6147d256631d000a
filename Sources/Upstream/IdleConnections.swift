// SPDX-License-Identifier: Apache-2.0

/// Decides which idle connection of one key is used next and which are closed. Pure: time is an argument, and the type
/// of the connection does not matter.
///
/// The connection used last is leased first, so that the surplus of a burst grows old and is closed.
package struct IdleConnections<Connection> {
    package struct Limits: Sendable {
        /// How many connections may be idle for longer than ``surplusSeconds``.
        package let count: Int
        package let idleSeconds: UInt64
        /// How long more than ``count`` connections may be idle. During a burst they will soon be needed again, and a
        /// handshake is expensive.
        package let surplusSeconds: UInt64

        package init(count: Int, idleSeconds: UInt64, surplusSeconds: UInt64 = 0) {
            self.count = count
            self.idleSeconds = idleSeconds
            self.surplusSeconds = surplusSeconds
        }
    }

    private struct Idle {
        let connection: Connection
        let since: UInt64
    }

    /// In the order in which they were given back.
    private var idle: [Idle] = []
    let limits: Limits

    package init(limits: Limits) {
        self.limits = limits
    }

    package var count: Int { idle.count }
    package var isEmpty: Bool { idle.isEmpty }

    /// The connection to use, which belongs to the caller from now on, if there is one.
    package mutating func lease(now: UInt64) -> Connection? {
        guard let last = idle.last, Self.age(last, now) <= limits.idleSeconds else { return nil }
        idle.removeLast()
        return last.connection
    }

    /// Takes a connection back and returns the one to close, if any: that one, or the oldest.
    package mutating func giveBack(_ connection: Connection, now: UInt64) -> Connection? {
        guard limits.count > 0 else { return connection }
        idle.append(Idle(connection: connection, since: now))
        guard idle.count > limits.count, Self.age(idle[0], now) >= limits.surplusSeconds else { return nil }
        return idle.removeFirst().connection
    }

    /// Forgets connections that were closed while they were idle.
    package mutating func remove(where isGone: (Connection) -> Bool) {
        idle.removeAll { isGone($0.connection) }
    }

    /// Removes and returns the connections that have been idle for too long.
    package mutating func timePassed(now: UInt64) -> [Connection] {
        let surplus = max(0, idle.count - limits.count)
        let goes = idle.indices.filter { index in
            let age = Self.age(idle[index], now)
            return age > limits.idleSeconds || index < surplus && age >= limits.surplusSeconds
        }
        guard !goes.isEmpty else { return [] }
        let expired = goes.map { idle[$0].connection }
        for index in goes.reversed() { idle.remove(at: index) }
        return expired
    }

    /// Removes and returns all connections.
    package mutating func removeAll() -> [Connection] {
        defer { idle = [] }
        return idle.map(\.connection)
    }

    /// 0 if the clock has gone backwards.
    private static func age(_ idle: Idle, _ now: UInt64) -> UInt64 { now - min(now, idle.since) }
}
