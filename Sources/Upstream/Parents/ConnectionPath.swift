// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignTLS
import NIOCore

/// One way to reach an origin: directly, or through a parent proxy.
package struct ConnectionPath {
    /// The TCP peer: the origin, or the parent.
    package let host: String
    package let port: UInt16
    /// The path of a Unix-domain socket that takes the place of both; nil for none.
    let socketPath: String?
    /// TLS to the parent; nil for none.
    let tls: ParentTLS?
    /// Begins a tunnel through the parent; nil if TCP leads to the origin, or the parent forwards requests.
    let makeTunnel: (() -> any ParentTunnel)?
    /// The parent that forwards requests in absolute-form (RFC 9112 §3.2.2), by its origin in the list: the connection
    /// ends there.
    let forwarder: Origin?
    /// Called with whether the parent could be reached, and with the failure if not.
    let parentTried: ((UpstreamError?) -> Void)?
    /// ``ConnectionTerms/mayBeLocal`` for the TCP peer. A parent is the person's own word.
    let mayBeLocal: Bool

    /// Directly. `mayBeLocal` is as in ``ConnectionTerms``.
    package init(host: String, port: UInt16, mayBeLocal: Bool, socketPath: String? = nil) {
        self.host = host
        self.port = port
        self.mayBeLocal = mayBeLocal
        self.socketPath = socketPath
        tls = nil
        makeTunnel = nil
        forwarder = nil
        parentTried = nil
    }

    /// Through the parent that is listed as `parent`. Without a tunnel, it forwards requests.
    package init(
        parent: Origin, tls: ParentTLS?, tunnel: (() -> any ParentTunnel)?, tried: @escaping (UpstreamError?) -> Void
    ) {
        host = parent.host
        port = parent.port
        self.tls = tls
        makeTunnel = tunnel
        forwarder = tunnel == nil ? parent : nil
        socketPath = nil
        parentTried = tried
        mayBeLocal = true
    }
}

/// The way through one parent for one connection. A parent that closes its connection after a challenge needs several.
package protocol ParentTunnel: AnyObject {
    /// The step on the next connection to the parent.
    func makeStep() -> any ConnectionStep

    /// The step begins on a connection with TLS to the parent.
    func secured(by tls: TLSSummary)

    /// The bytes from beyond the parent that arrived together with its reply.
    var early: ByteBuffer { get }

    /// The client has left. Returns whether the parent is judging a password, so that its reply to the running step is
    /// of use. Nothing is sent after that reply.
    func awaitsVerdict() -> Bool

    /// There is no further step, because the tunnel is open, or has failed.
    func ended()
}

extension ParentTunnel {
    package func awaitsVerdict() -> Bool { false }
}

/// Knows the ways to origins. Each event loop has its own.
package protocol PathSource: AnyObject {
    /// Calls `completion` once, at once or later on the event loop, with the ways in the order in which to try them:
    /// at least one.
    func findPaths(
        to origin: Origin, _ terms: ConnectionTerms,
        completion: @escaping (Result<[ConnectionPath], UpstreamError>) -> Void)
}
