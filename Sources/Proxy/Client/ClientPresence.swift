// SPDX-License-Identifier: Apache-2.0

/// A client connection while it is there, for whoever may outlive it and must not keep it.
///
/// In the place of a weak reference. An object that somebody has once referred to weakly counts all its references in a table apart
/// from then on, and each count costs several times as much.
final class ClientPresence {
    /// Nil before the connection has its place in a channel, once it has left it, and once the client has gone.
    var connection: ClientConnection?
}
