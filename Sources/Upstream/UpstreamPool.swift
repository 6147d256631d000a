// SPDX-License-Identifier: Apache-2.0

/// The idle origin connections of one event loop: ``PoolStateMachine`` thinks, this does. Only that loop may call it.
package final class UpstreamPool {
    private var machine: PoolStateMachine
    private var parked: [PoolStateMachine.ConnectionID: (connection: OriginConnection, key: UpstreamKey)] = [:]
    private var nextID: PoolStateMachine.ConnectionID = 0

    package init(idlePerKey: Int = 8, idleSeconds: UInt64 = 55, surplusSeconds: UInt64 = 3) {
        machine = PoolStateMachine(idlePerKey: idlePerKey, idleSeconds: idleSeconds, surplusSeconds: surplusSeconds)
    }

    /// An idle connection for `key`, which is the caller's from here on, or nil: connect one.
    package func lease(_ key: UpstreamKey, now: UInt64) -> OriginConnection? {
        while case .reuse(let id) = machine.leaseRequested(key, now: now) {
            guard let (connection, _) = parked.removeValue(forKey: id) else { continue }
            connection.parkedAs = nil
            // What an origin got out of us while nobody was looking is not for whoever comes next.
            if connection.isReusable, connection.showedIdentity == nil { return connection }
            connection.close()
        }
        return nil
    }

    /// Takes a connection whose exchange is over; closes it when it cannot serve another.
    package func giveBack(_ connection: OriginConnection, for key: UpstreamKey, now: UInt64) {
        connection.delegate = nil
        connection.certificateSource = nil
        guard connection.isReusable else { return connection.close() }
        nextID += 1
        let id = nextID
        parked[id] = (connection, key)
        connection.parkedAs = { [weak self] in
            self?.parked[id] = nil
            self?.machine.connectionClosed(id, of: key)
        }
        connection.resumeReading()
        if case .close(let surplus) = machine.leaseReturned(id, to: key, now: now) { close(surplus) }
    }

    /// Closes what has been idle for too long. Called once a second.
    package func timePassed(now: UInt64) {
        for id in machine.timePassed(now: now) { close(id) }
    }

    /// Closes what was handshaken under other settings than these, as nothing will lease it any more.
    package func keepOnly(settings: UInt64) {
        for (id, entry) in parked where entry.key.settings != settings {
            machine.connectionClosed(id, of: entry.key)
            close(id)
        }
    }

    /// Closes every idle connection.
    package func shutDown() {
        for id in machine.shutDown() { close(id) }
    }

    private func close(_ id: PoolStateMachine.ConnectionID) {
        guard let (connection, _) = parked.removeValue(forKey: id) else { return }
        connection.parkedAs = nil
        connection.close()
    }
}
