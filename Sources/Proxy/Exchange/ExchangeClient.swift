// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignUpstream
import NIOCore

/// The client's side of one exchange, in the terms of RFC 9110: interim responses, a head, content, trailers, a reset
/// and writability.
///
/// An ``ExchangeDriver`` sends its response through this protocol and knows nothing else of the connection behind it.
/// ``ClientConnection`` implements it for HTTP/1. It handles the chunked coding, `Connection`, and the order of
/// pipelined responses. ``HTTP2ClientStream`` implements it for one stream of HTTP/2.
///
/// In the other direction the implementer reports the client's actions by calling the driver, on the event loop:
/// ``ExchangeDriver/clientSent(_:)``, ``ExchangeDriver/clientRequestEnded(trailers:)``,
/// ``ExchangeDriver/clientReadCompleted()``, ``ExchangeDriver/clientWritabilityChanged(_:)`` and
/// ``ExchangeDriver/clientGone()``.
///
/// The head of a request is a ``RequestHead`` in both versions: that of HTTP/2 is written as one of HTTP/1 and parsed,
/// so that everything behind it is the same.
protocol ExchangeClient: AnyObject {
    /// Whether the request came over HTTP/2.
    var speaksHTTP2: Bool { get }

    // MARK: The response

    /// Sends an interim (1xx) response, unless the client's version of HTTP has none (RFC 9110 §15.2).
    func sendInterim(_ head: ResponseHead, _ changes: ResponseChanges)

    /// Asks a client that waits for it to send the request's content: 100 Continue of the proxy's own (RFC 9110
    /// §10.1.1).
    func inviteContent()

    /// Sends the head of the final response. Content may follow, and ``finish(trailers:)`` does.
    func send(_ response: BufferedResponse, _ changes: ResponseChanges)

    /// Sends a part of the response's content. It may wait for ``flush()``.
    func send(_ content: ByteBuffer)

    /// The response is complete. The client may start its next exchange before this call returns.
    func finish(trailers: FieldLines?)

    /// Sends a complete response made by the proxy in place of the origin's.
    func finish(with response: OwnResponse)

    /// The response cannot be completed. The client must be able to see that.
    func reset()

    /// Writes out everything sent so far.
    func flush()

    /// Whether the client takes more content now. The driver pauses the origin's response while it does not.
    var isWritable: Bool { get }

    /// No other exchange may use the client's connection after this one.
    func closeAfterResponse()

    // MARK: The request

    /// Stops the delivery of the request's content until ``resumeRequest()``: the origin is slow, or enough is
    /// buffered.
    func pauseRequest()

    func resumeRequest()

    // MARK: Upgrade

    /// Sends the 101 response `head` and joins the client to `origin`. The exchange is over; `tally` reports the end of
    /// the tunnel.
    func switchProtocols(
        _ head: ResponseHead, _ changes: ResponseChanges, to origin: UpgradedConnection, tally: TunnelHandler.Tally)
}
