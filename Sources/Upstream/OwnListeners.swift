// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import NIOCore

/// The addresses on which this proxy listens. A connection that ends at one of them would make requests loop, under any
/// name. One event loop uses it.
package final class OwnListeners {
    private struct Listener: Hashable {
        let address: IPAddress
        let port: Int
    }

    private var listeners: Set<Listener> = []

    package init() {}

    /// Does nothing for the address of a Unix-domain socket.
    package func add(_ address: SocketAddress) {
        if let listener = Self.listener(address) { listeners.insert(listener) }
    }

    /// Whether the other end of a connection is one of them. `local` is this end. On a connection to another address of
    /// the own machine, the kernel gives both ends the same one.
    package func include(_ peer: SocketAddress?, local: SocketAddress?) -> Bool {
        guard !listeners.isEmpty, let peer = peer.flatMap(Self.listener) else { return false }
        if listeners.contains(peer) { return true }
        // Linux connects the unspecified address to the loopback address.
        if peer.address.isUnspecified { return listeners.contains { $0.port == peer.port } }
        guard peer.address.isLoopback || peer.address == local.flatMap(Self.listener)?.address else { return false }
        return listeners.contains { $0.port == peer.port && $0.address.isUnspecified }
    }

    private static func listener(_ address: SocketAddress) -> Listener? {
        guard let ip = address.ipAddress.flatMap({ IPAddress($0) }), let port = address.port else { return nil }
        return Listener(address: ip, port: port)
    }
}
