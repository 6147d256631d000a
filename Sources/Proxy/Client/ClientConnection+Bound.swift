// SPDX-License-Identifier: Apache-2.0

import CountersignUpstream

/// The connections of one client alone: those that were authenticated for it, one for each key, the one that waits longest first.
struct BoundConnections {
    private static let capacity = 16
    /// Looked through in turn: nearly always there is one, and a hash of its key costs more than comparing a few.
    private var entries: [(key: UpstreamKey, connection: OriginConnection)] = []

    /// What waits for `key`; it stays.
    func connection(for key: UpstreamKey) -> OriginConnection? {
        entries.first { $0.key == key }?.connection
    }

    /// What waits for `key`; it waits no longer.
    mutating func take(for key: UpstreamKey) -> OriginConnection? {
        entries.firstIndex { $0.key == key }.map { entries.remove(at: $0).connection }
    }

    /// `connection` waits for `key` from now on: not what did so before, and not more of them than are kept.
    mutating func keep(_ connection: OriginConnection, for key: UpstreamKey) {
        take(for: key)?.close()
        entries.append((key, connection))
        if entries.count > Self.capacity { entries.removeFirst().connection.close() }
    }

    mutating func closeAll() {
        let all = entries
        entries = []
        for entry in all { entry.connection.close() }
    }
}

extension ClientConnection {
    func boundConnection(for slot: UpstreamPool.Slot) -> OriginConnection? {
        guard hasBound, let connection = bound.take(for: slot.key) else { return nil }
        if connection.isReusable { return connection }
        connection.close()
        return nil
    }

    /// Whether a connection for `key` has already been authenticated for this client.
    func hasAuthenticatedConnection(for key: UpstreamKey) -> Bool {
        bound.connection(for: key).map { $0.isReusable && $0.isAuthenticated } ?? false
    }

    func bind(_ connection: OriginConnection, for key: UpstreamKey) {
        connection.delegate = nil
        connection.certificateSource = nil
        guard connection.isReusable, context != nil else { return connection.close() }
        hasBound = true
        bound.keep(connection, for: key)
    }

    func closeBound() { bound.closeAll() }
}
