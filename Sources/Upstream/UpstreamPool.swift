// SPDX-License-Identifier: Apache-2.0

/// The idle connections to origins of one event loop, with one ``Slot`` per key. Only that loop may call it.
package final class UpstreamPool {
    /// The idle connections of one key. A caller that uses a key often keeps the slot, which saves the look-up.
    package final class Slot {
        package let key: UpstreamKey
        @exclusivity(unchecked) private var idle: IdleConnections<OriginConnection>
        private weak var pool: UpstreamPool?
        /// The slot is in the pool's table, so that the pool closes its connections in time.
        fileprivate var isRegistered = true

        fileprivate init(_ key: UpstreamKey, _ pool: UpstreamPool) {
            self.key = key
            self.pool = pool
            idle = IdleConnections(limits: pool.limits)
        }

        /// An idle connection, which belongs to the caller from now on, if there is one.
        package func lease(now: UInt64) -> (any OriginLease)? {
            while let connection = idle.lease(now: now) {
                connection.slot = nil
                // An origin may have asked for a client identity while the connection was idle; then it is no longer
                // shared.
                if connection.isReusable, !connection.hasShownIdentity { return connection }
                connection.close()
            }
            return nil
        }

        /// Takes back a connection after an exchange, or closes it if it cannot serve another one.
        package func giveBack(_ lease: any OriginLease, now: UInt64) { lease.giveBack(to: self, now: now) }

        /// Keeps a reusable connection, in this slot or in the one that the pool has for its key.
        func park(_ connection: OriginConnection, now: UInt64) {
            guard let slot = registered else { return connection.close() }
            slot.add(connection, now: now)
        }

        /// The slot that the pool has for this key; nil after the shutdown.
        private var registered: Slot? { isRegistered ? self : pool?.register(self) }

        private func add(_ connection: OriginConnection, now: UInt64) {
            connection.slot = self
            let surplus = idle.giveBack(connection, now: now)
            connection.resumeReading()
            surplus?.close()
        }

        /// `connection` was closed while it was idle.
        func closed(_ connection: OriginConnection) {
            idle.remove { $0 === connection }
        }

        package var isEmpty: Bool { idle.isEmpty }

        fileprivate func timePassed(now: UInt64) {
            for connection in idle.timePassed(now: now) { connection.close() }
        }

        /// Closes the idle connections.
        package func closeAll() {
            for connection in idle.removeAll() { connection.close() }
        }
    }

    private var slots: [UpstreamKey: Slot] = [:]
    fileprivate let limits: IdleConnections<OriginConnection>.Limits
    private var isShutDown = false

    package init(idlePerKey: Int = 8, idleSeconds: UInt64 = 55, surplusSeconds: UInt64 = 3) {
        limits = .init(count: idlePerKey, idleSeconds: idleSeconds, surplusSeconds: surplusSeconds)
    }

    /// The slot for `key`.
    package func slot(for key: UpstreamKey) -> Slot {
        if let slot = slots[key] { return slot }
        let slot = Slot(key, self)
        slot.isRegistered = false
        return slot
    }

    /// Closes connections that have been idle for too long. Called once per second.
    package func timePassed(now: UInt64) {
        for slot in slots.values {
            slot.timePassed(now: now)
            if slot.isEmpty { remove(slot) }
        }
    }

    /// Closes the connections with other settings, which no request will use again.
    package func keepOnly(settings: UInt64) {
        for slot in slots.values where slot.key.settings != settings {
            remove(slot)
            slot.closeAll()
        }
    }

    /// Closes every idle connection.
    package func closeIdle() {
        for slot in slots.values {
            remove(slot)
            slot.closeAll()
        }
    }

    /// Closes every idle connection, and from now on every connection that is given back.
    package func shutDown() {
        isShutDown = true
        closeIdle()
    }

    /// Adds `slot` to the table and returns it, or the slot that the table already has for its key; nil after the
    /// shutdown.
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
