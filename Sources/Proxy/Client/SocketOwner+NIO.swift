// SPDX-License-Identifier: Apache-2.0

import CountersignLoopback
import NIOCore

extension SocketOwner {
    /// The owner of the socket whose local address is `client` and whose peer is `server`. Nil for addresses that are
    /// not of TCP.
    static func find(client: SocketAddress, server: SocketAddress) throws(NoDescriptors) -> Owner? {
        guard let client = Endpoint(client), let server = Endpoint(server) else { return nil }
        return try find(client: client, server: server)
    }
}

extension SocketOwner.Endpoint {
    fileprivate init?(_ address: SocketAddress) {
        switch address {
        case .v4(let address): self.init(address.address)
        case .v6(let address): self.init(address.address)
        case .unixDomainSocket: return nil
        }
    }
}
