// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignChallenges
import CountersignHTTP1
import CountersignTLS

/// The part of a connection to an origin that one exchange uses: in HTTP/1 all of it, in HTTP/2 one stream at a time.
///
/// It carries the requests of its holder one after the other. What identifies the connection (its TLS session, the
/// client identity, an authentication) is the same for all of its leases. The holder gives a lease back to the pool, or
/// to the client that it belongs to, or closes it.
package protocol OriginLease: OriginStream {
    /// The exchange that holds the lease, until it is given back or closed.
    var delegate: (any OriginStreamDelegate)? { get set }

    // MARK: The connection

    /// `host:port`, for error messages.
    var place: String { get }
    /// The remote address with its port: `192.0.2.1:443`, `[2001:db8::1]:443`.
    var address: String? { get }
    /// The result of the TLS handshake; nil without TLS.
    var tls: TLSSummary? { get }
    /// `TLSv1.3` or `TLSv1.2`, as soon as the origin has chosen it; nil without TLS.
    var tlsVersion: String? { get }
    /// The parent proxy that the connection leads to, and that forwards requests in absolute-form (RFC 9112 §3.2.2).
    var forwarder: Origin? { get }
    /// TLS to the ``forwarder``; nil for none.
    var forwarderTLS: TLSSummary? { get }
    /// The HTTP/2 connection, which others may use at the same time; nil for HTTP/1.
    var http2: HTTP2OriginConnection? { get }

    // MARK: Whom the connection acts for

    /// Answers certificate requests while there is no ``delegate``, that is, during the handshake. Nil declines them.
    var certificateSource: CertificateSource? { get set }
    /// The decision about the origin's last certificate request, if there was one.
    var certificateChecks: ThreeChecks? { get set }
    /// The client identity that was last shown to the origin.
    var shownIdentity: Identity? { get }
    /// A client identity was shown to the origin at some time, so that the connection acts for a person.
    var hasShownIdentity: Bool { get }
    /// The origin has asked for a client identity, and got none for a reason of this request or its client alone. It
    /// may refuse other requests that it would permit with the identity, so the connection is not kept for them.
    var lacksIdentity: Bool { get set }
    /// The name of the client identity that the TLS session shows.
    var showedIdentity: String? { get }
    /// The connection has been authenticated by NTLM or Negotiate, by the proxy or by its client. It can only serve
    /// this client from then on, with one exception: ``ParentAuthentication/shared``.
    var isAuthenticated: Bool { get set }
    /// The origin has said that requests on the connection need no further answer (`Persistent-Auth`, MS-N2HT).
    var isPersistentlyAuthenticated: Bool { get set }
    var parentAuthentication: ParentAuthentication { get }
    /// The parent has accepted an answer of the proxy's, for all requests on the connection.
    func authenticatedToParent()
    /// No other client may use the connection from now on.
    func becomesPersonal()

    // MARK: Requests

    /// Whether another request may be sent: nothing is pending, and nothing unexpected has happened.
    var isReusable: Bool { get }
    /// The number of requests that the connection had carried when the last one of this lease was sent, that one
    /// included.
    var requestCount: Int { get }
    /// Why a response on the connection was not clean, and was repaired; nil if all were clean.
    var repair: HTTP1Error.Code? { get }
    /// A handshake that authenticates the connection, and has not ended yet, continues even after a repaired response.
    var carriesHandshake: Bool { get set }
    /// The status of the response whose head is incomplete or refused, if it can be read.
    var statusOfUnreadHead: Int? { get }

    // MARK: The end

    /// The holder gives the lease up. Its request is abandoned, and so is a connection of HTTP/1.
    func close()
    /// Called by ``UpstreamPool/Slot/giveBack(_:now:)``.
    func giveBack(to slot: UpstreamPool.Slot, now: UInt64)
    /// The connection, to be kept for one client; nil if it cannot serve another request. Ends the lease.
    func keep() -> (any KeptConnection)?
}

/// Answers a certificate request, at once or later on the event loop. Keeping the answer closure keeps the connection.
package typealias CertificateSource = (CertificateRequest, any OriginLease, @escaping (Identity?) -> Void) -> Void

/// A connection to an origin that is kept for one client, because it acts for it.
package protocol KeptConnection: AnyObject {
    /// Whether it may carry further requests.
    var isReusable: Bool { get }
    var hasShownIdentity: Bool { get }
    var isAuthenticated: Bool { get }
    var isPersistentlyAuthenticated: Bool { get }
    /// A part of it for an exchange; nil if none is free. `stays`: others may have more of them at the same time.
    func lease() -> (lease: any OriginLease, stays: Bool)?
    func close()
}
