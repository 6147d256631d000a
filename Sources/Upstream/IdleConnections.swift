// SPDX-License-Identifier: Apache-2.0

/// Which idle connection of one key serves next, and which goes. Pure: time is an argument, and what a connection is does not matter.
///
/// The connection that was used last is lent first, so that a burst's surplus grows old and is closed.
package struct IdleConnections<Connection> {
    package struct Limits: Sendable {
        /// How many may be idle for longer than ``surplusSeconds``.
        package let count: Int
        package let idleSeconds: UInt64
        /// How long more than ``count`` may be idle: between the requests of a burst they are about to be needed, and a handshake
        /// is dear.
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

    /// The one that came back last is the last.
    private var idle: [Idle] = []
    private let limits: Limits

    package init(limits: Limits) {
        self.limits = limits
    }

    package var count: Int { idle.count }
    package var isEmpty: Bool { idle.isEmpty }

    /// The connection to use, which is the caller's from here on; nil: connect.
    package mutating func lease(now: UInt64) -> Connection? {
        guard let last = idle.last, Self.age(last, now) <= limits.idleSeconds else { return nil }
        idle.removeLast()
        return last.connection
    }

    /// Takes a connection back; gives the one to close, which is that one or the oldest that it pushes out.
    package mutating func giveBack(_ connection: Connection, now: UInt64) -> Connection? {
        guard limits.count > 0 else { return connection }
        idle.append(Idle(connection: connection, since: now))
        guard idle.count > limits.count, Self.age(idle[0], now) >= limits.surplusSeconds else { return nil }
        return idle.removeFirst().connection
    }

    /// One that closed while it was idle is not lent any more.
    package mutating func remove(where isGone: (Connection) -> Bool) {
        idle.removeAll { isGone($0.connection) }
    }

    /// Those that have been idle for too long; close them.
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

    /// Every one; none is left.
    package mutating func removeAll() -> [Connection] {
        defer { idle = [] }
        return idle.map(\.connection)
    }

    /// A clock that went backwards makes nothing old.
    private static func age(_ idle: Idle, _ now: UInt64) -> UInt64 { now - min(now, idle.since) }
}
