// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import NIOCore
import CountersignUpstream

/// Where the proxy listens, and its limits. The values are those of the threat model; each excess has its own answer.
package struct ProxyConfiguration: Sendable {
    /// An address that clients connect to.
    package enum ListeningAddress: Sendable, Equatable {
        case tcp(host: String, port: Int)
        case unix(path: String)
    }

    package var listeningAddresses: [ListeningAddress] = [.tcp(host: "127.0.0.1", port: 3128)]
    /// What `Proxy-Authorization` must carry; nil: nothing.
    package var clientToken: Secret?
    /// Whether processes that descend from this one are served without the token: they have it in their environment, and some,
    /// Java's for one, have no way to send it.
    package var admitsDescendants = false
    /// Whether the process at the other end must belong to this process's user.
    package var requiresSameUser = true
    /// The origin's first byte.
    package var originTimeoutSeconds: UInt64 = 300
    /// A body, either way, without a byte.
    package var bodyIdleSeconds: UInt64 = 60
    /// A client's head, from its first byte to its last.
    package var headSeconds: UInt64 = 10
    /// A kept client connection without a request.
    package var keepAliveSeconds: UInt64 = 75
    /// A tunnel without a byte either way.
    package var tunnelIdleSeconds: UInt64 = 3600
    /// The client's TLS handshake inside a CONNECT.
    package var clientHandshakeSeconds: UInt64 = 10
    /// What is kept of a request's body to send it again.
    package var replayLimitBytes = 1024 * 1024
    /// What is read of a challenge's body so that its connection can go on.
    package var swallowedBodyBytes = 64 * 1024
    /// What is in flight at a stop may take this long.
    package var drainSeconds: Int64 = 10
    /// Whoever is asked about an origin that is not trusted; after that it is a no.
    package var trustQuestion: TimeAmount = .seconds(30)
    /// A challenge's whole dialogue, up to the request with the last answer; after that the client gets the challenge.
    package var dialogueSeconds: UInt64 = 30
    package var connector = UpstreamTimeLimits()

    package init() {}
}
