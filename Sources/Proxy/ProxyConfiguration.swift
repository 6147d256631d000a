// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import NIOCore
import CountersignUpstream

/// The addresses that the proxy listens on, and its limits. The defaults are those of the threat model.
package struct ProxyConfiguration: Sendable {
    /// An address that clients connect to.
    package enum ListeningAddress: Sendable, Equatable {
        case tcp(host: String, port: Int)
        case unix(path: String)
        /// A listening stream socket that this process has inherited, and owns. `isOwn`: this process removes the
        /// socket file, if it has one.
        case inherited(descriptor: Int32, isOwn: Bool)
        /// A listening TCP socket in the network namespace of a sandbox, in which this process's command runs and
        /// nothing else. This process owns it.
        case sandbox(descriptor: Int32)
    }

    package var listeningAddresses: [ListeningAddress] = [.tcp(host: "127.0.0.1", port: 3128)]
    /// The tokens of which `Proxy-Authorization` must contain one, if one is required.
    package var clientTokens: [ClientToken] = []
    /// The process whose descendants are served without the token. They have it in their environment, but some of
    /// them, such as Java, cannot send it. They count as clients that have sent the first of ``clientTokens``.
    package var admittedAncestor: Int32?
    /// Whether requests to sites that are not listed are refused, in place of being forwarded without an answer.
    package var refusesUnlistedSites = false
    /// Whether a client must run as the same user as this process, or as one of ``allowedUsers``.
    package var requiresSameUser = true
    /// The numbers of the other users that are served.
    package var allowedUsers: Set<UInt32> = []
    /// The proxy's own page, which only this user's clients get; nil for none.
    package var ownSite: OwnSite?
    /// The time until the origin's first byte.
    package var originTimeoutSeconds: UInt64 = 300
    /// The time without a byte of a request's or response's content.
    package var bodyIdleSeconds: UInt64 = 60
    /// The time that a client has to send a request's head.
    package var headSeconds: UInt64 = 10
    /// The time that an idle client connection stays open.
    package var keepAliveSeconds: UInt64 = 75
    /// The time without a byte in either direction of a tunnel.
    package var tunnelIdleSeconds: UInt64 = 3600
    /// How long the client of a tunnel that may carry http to a listed site may be silent, before it is taken for one
    /// whose server sends the first byte.
    package var tunnelSilence = TimeAmount.milliseconds(200)
    /// The time for the client's TLS handshake inside a CONNECT.
    package var clientHandshakeSeconds: UInt64 = 10
    /// How much of a request's content is buffered so that it can be sent again.
    package var replayLimitBytes = 1024 * 1024
    /// How much more of it is kept in encrypted files, over all exchanges, if the origin may challenge it; 0 for none.
    package var spoolLimitBytes = 256 << 20
    /// The folders in which these files may be, in order of preference. They have no names there.
    package var spoolFolders: [String] = []
    /// The time that an origin has to invite a request's content before it is sent uninvited.
    package var invitationWait = TimeAmount.seconds(1)
    /// How much of a challenge's content is read and discarded so that its connection can carry the next request.
    package var swallowedBodyBytes = 64 * 1024
    /// The time that exchanges in progress have to finish when the proxy stops.
    package var drainSeconds: Int64 = 10
    /// The same if another process has the listening sockets now.
    package var handOverSeconds: Int64 = 3600
    /// The time to decide about an untrusted origin. After it the origin is refused.
    package var trustQuestion: TimeAmount = .seconds(30)
    /// The time to answer a challenge, until the request with the final answer goes out. After it the client gets the
    /// challenge.
    package var dialogueSeconds: UInt64 = 30
    package var connector = UpstreamTimeLimits()
    /// Whether listed sites are answered and intercepted. If not, only parents are answered.
    package var answersSites = true
    /// Whether names of sites that are not listed may lead to this machine or its link. Addresses, `localhost` and
    /// names in the machine's hosts file always may.
    package var permitsLocalNames = false
    /// Whether intercepted sites may be used over HTTP/2.
    package var speaksHTTP2 = true

    package init() {}
}
