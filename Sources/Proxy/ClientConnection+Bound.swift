// SPDX-License-Identifier: Apache-2.0

import Upstream

/// The connections of one client alone: those that were authenticated for it.
extension ClientConnection {
    func boundConnection(for slot: UpstreamPool.Slot) -> OriginConnection? {
        guard !bound.isEmpty, let connection = bound.removeValue(forKey: slot.key) else { return nil }
        if connection.isReusable { return connection }
        connection.close()
        return nil
    }

    /// Whether a connection for `key` has already been authenticated for this client.
    func hasAuthenticatedConnection(for key: UpstreamKey) -> Bool {
        bound[key].map { $0.isReusable && $0.isAuthenticated } ?? false
    }

    func bind(_ connection: OriginConnection, for key: UpstreamKey) {
        connection.delegate = nil
        connection.certificateSource = nil
        guard connection.isReusable, context != nil else { return connection.close() }
        bound.updateValue(connection, forKey: key)?.close()
        if bound.count > 16, let surplus = bound.keys.first(where: { $0 != key }) {
            bound.removeValue(forKey: surplus)?.close()
        }
    }

    func closeBound() {
        for connection in bound.values { connection.close() }
        bound = [:]
    }
}
