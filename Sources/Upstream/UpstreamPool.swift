// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The connections to origins of one event loop that an exchange may use at once, with one ``Slot`` per key: those of
/// HTTP/1 that are idle, and those of HTTP/2. Only that loop may call it.
package final class UpstreamPool {
    /// The connections of one key. A caller that uses a key often keeps the slot, which saves the look-up.
    package final class Slot {
        package let key: UpstreamKey
        @exclusivity(unchecked) private var idle: IdleConnections<OriginConnection>
        /// Connections of HTTP/2. They stay here while exchanges use them.
        @exclusivity(unchecked) private var shared: [HTTP2OriginConnection] = []
        /// The exchanges that wait until another one has opened a connection; nil if none opens one.
        private var waiting: [() -> Void]?
        /// The last connection was one of HTTP/2, which all exchanges can use.
        package private(set) var speaksHTTP2 = false
        private weak var pool: UpstreamPool?
        /// The slot is in the pool's table, so that the pool closes its connections in time.
        fileprivate var isRegistered = true

        fileprivate init(_ key: UpstreamKey, _ pool: UpstreamPool) {
            self.key = key
            self.pool = pool
            idle = IdleConnections(limits: pool.limits)
        }

        /// A connection of HTTP/2 that takes another request, or else an idle one, which belongs to the caller from now
        /// on.
        package func lease(now: UInt64, needsHTTP1: Bool = false) -> (any OriginLease)? {
            if !shared.isEmpty, !needsHTTP1 {
                if pool?.http1Origins.contains(key.origin, now: now) == true {
                    closeShared()
                } else {
                    for connection in shared { if let lease = connection.newLease() { return lease } }
                }
            }
            while let connection = idle.lease(now: now) {
                connection.slot = nil
                // An origin may have asked for a client identity while the connection was idle; then it is no longer
                // shared.
                if connection.isReusable, !connection.hasShownIdentity, !connection.lacksIdentity { return connection }
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

        // MARK: HTTP/2

        /// Lets other exchanges use `connection`, unless it acts for one client. One that is in a slot stays there.
        package func share(_ connection: HTTP2OriginConnection) {
            guard connection.isReusable, !connection.hasHome, !connection.isAuthenticated,
                !connection.hasShownIdentity, !connection.lacksIdentity, let slot = registered
            else { return }
            slot.add(connection)
        }

        private func add(_ connection: HTTP2OriginConnection) {
            connection.enter(self)
            shared.append(connection)
            speaksHTTP2 = true
        }

        /// `connection` takes no further request.
        func ended(_ connection: HTTP2OriginConnection) {
            shared.removeAll { $0 === connection }
        }

        /// Whether the caller should open a connection. If somebody else is opening one for this key that many can use,
        /// it is false, and `retry` is called when that attempt has ended.
        package func mayOpen(orWait retry: @escaping () -> Void) -> Bool {
            guard speaksHTTP2 else { return true }
            if waiting == nil {
                waiting = []
                return true
            }
            waiting?.append(retry)
            return false
        }

        /// The attempt of a caller that ``mayOpen(orWait:)`` has permitted has ended. `isHTTP2`: with a connection of
        /// HTTP/2 that all can use; nil if nothing is known about that.
        package func hasOpened(isHTTP2: Bool?) {
            if let isHTTP2 { speaksHTTP2 = isHTTP2 }
            guard let ready = waiting else { return }
            waiting = nil
            for retry in ready { retry() }
        }

        // MARK: The end

        package var isEmpty: Bool { idle.isEmpty && shared.isEmpty }

        fileprivate func timePassed(now: UInt64) {
            for connection in idle.timePassed(now: now) { connection.close() }
            for connection in shared where connection.isIdle(for: idle.limits.idleSeconds, now: now) {
                connection.close()
            }
        }

        /// Closes the idle connections, and the others when the requests on them are complete.
        package func closeAll() {
            for connection in idle.removeAll() { connection.close() }
            closeShared()
        }

        private func closeShared() {
            let closing = shared
            for connection in closing { connection.close() }
        }
    }

    private var slots: [UpstreamKey: Slot] = [:]
    fileprivate let limits: IdleConnections<OriginConnection>.Limits
    private var isShutDown = false
    package let http1Origins: HTTP1Origins

    package init(
        idlePerKey: Int = 8, idleSeconds: UInt64 = 55, surplusSeconds: UInt64 = 3,
        http1Origins: HTTP1Origins = HTTP1Origins()
    ) {
        self.http1Origins = http1Origins
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
