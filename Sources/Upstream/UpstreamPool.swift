// SPDX-License-Identifier: Apache-2.0

/// The idle origin connections of one event loop, a ``Slot`` for each key. Only that loop may call it.
package final class UpstreamPool {
    /// The idle connections of one key. Whoever serves a key often keeps its slot, and need not look it up.
    package final class Slot {
        package let key: UpstreamKey
        private var idle: IdleConnections<OriginConnection>
        private let limits: IdleConnections<OriginConnection>.Limits
        private weak var pool: UpstreamPool?
        /// The pool sees to it that what is idle here is closed in time.
        fileprivate var isRegistered = true

        fileprivate init(_ key: UpstreamKey, _ pool: UpstreamPool) {
            self.key = key
            self.pool = pool
            limits = pool.limits
            idle = IdleConnections(limits: limits)
        }

        /// An idle connection, which is the caller's from here on, or nil: connect one.
        package func lease(now: UInt64) -> OriginConnection? {
            while let connection = takeOne(now) {
                connection.slot = nil
                // What an origin got out of us while nobody was looking is not for whoever comes next.
                if connection.isReusable, !connection.hasShownIdentity { return connection }
                connection.close()
            }
            return nil
        }

        private func takeOne(_ now: UInt64) -> OriginConnection? {
            var all = takeIdle()
            let connection = all.lease(now: now)
            idle = all
            return connection
        }

        /// An access that ends at once needs no check at run time that there is no other.
        private func takeIdle() -> IdleConnections<OriginConnection> {
            let all = idle
            idle = IdleConnections(limits: limits)
            return all
        }

        /// Takes a connection whose exchange is over; closes it when it cannot serve another.
        package func giveBack(_ connection: OriginConnection, now: UInt64) {
            connection.delegate = nil
            connection.certificateSource = nil
            guard connection.isReusable, let slot = isRegistered ? self : pool?.register(self) else {
                return connection.close()
            }
            slot.park(connection, now: now)
        }

        private func park(_ connection: OriginConnection, now: UInt64) {
            connection.slot = self
            var all = takeIdle()
            let surplus = all.giveBack(connection, now: now)
            idle = all
            connection.resumeReading()
            surplus?.close()
        }

        /// It closed while it was idle.
        func closed(_ connection: OriginConnection) {
            idle.remove { $0 === connection }
        }

        fileprivate var isEmpty: Bool { idle.isEmpty }

        fileprivate func timePassed(now: UInt64) {
            for connection in idle.timePassed(now: now) { connection.close() }
        }

        fileprivate func closeAll() {
            for connection in idle.removeAll() { connection.close() }
        }
    }

    private var slots: [UpstreamKey: Slot] = [:]
    fileprivate let limits: IdleConnections<OriginConnection>.Limits
    private var isShutDown = false

    package init(idlePerKey: Int = 8, idleSeconds: UInt64 = 55, surplusSeconds: UInt64 = 3) {
        limits = .init(count: idlePerKey, idleSeconds: idleSeconds, surplusSeconds: surplusSeconds)
    }

    /// Where the idle connections of `key` are.
    package func slot(for key: UpstreamKey) -> Slot {
        if let slot = slots[key] { return slot }
        let slot = Slot(key, self)
        slot.isRegistered = false
        return slot
    }

    /// Closes what has been idle for too long. Called once a second.
    package func timePassed(now: UInt64) {
        for slot in slots.values {
            slot.timePassed(now: now)
            if slot.isEmpty { remove(slot) }
        }
    }

    /// Closes what was handshaken under other settings than these, as nothing will lease it any more.
    package func keepOnly(settings: UInt64) {
        for slot in slots.values where slot.key.settings != settings {
            remove(slot)
            slot.closeAll()
        }
    }

    /// Closes every idle connection; what comes back later is closed at once.
    package func shutDown() {
        isShutDown = true
        for slot in slots.values {
            remove(slot)
            slot.closeAll()
        }
    }

    /// The slot in which connections of that key wait from now on: `slot`, unless there is one already.
    fileprivate func register(_ slot: Slot) -> Slot? {
        guard !isShutDown else { return nil }
        if let other = slots[slot.key] { return other }
        slots[slot.key] = slot
        slot.isRegistered = true
        return slot
    }

    private func remove(_ slot: Slot) {
        slots[slot.key] = nil
        slot.isRegistered = false
    }
}
