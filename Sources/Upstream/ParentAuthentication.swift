// SPDX-License-Identifier: Apache-2.0

/// The clients for which a connection to a forwarding parent is authenticated.
package enum ParentAuthentication {
    /// None, or a handshake has not ended.
    case none
    /// The proxy has authenticated it to the parent, and nothing else has happened on it that concerns a client: it can
    /// carry any request of the same user.
    case shared
    /// It serves only one client from now on: something behind the parent may know it as that client, or the parent no
    /// longer accepts it.
    case personal
}

extension OriginConnection {
    package func authenticatedToParent() {
        if parentAuthentication == .none, forwarder != nil { parentAuthentication = .shared }
    }

    package func becomesPersonal() { parentAuthentication = .personal }
}
