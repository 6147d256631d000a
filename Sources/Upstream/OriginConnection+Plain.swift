// SPDX-License-Identifier: Apache-2.0

import NIOCore

extension OriginConnection {
    /// A connection without TLS over a channel that is connected already, ready for a request. On the channel's event
    /// loop. `place` names the other end in error texts. Throws what adding a handler throws; the channel is then as it was.
    package static func plain(over channel: any Channel, place: String) throws -> OriginConnection {
        let connection = OriginConnection(place: place, tlsHandler: nil)
        try channel.pipeline.syncOperations.addHandler(connection)
        return connection
    }
}
