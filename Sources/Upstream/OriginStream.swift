// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignHTTP1
import CountersignTLS
import NIOCore

/// The origin's side of one exchange, in the terms of RFC 9110: a head, content, trailers, a reset and writability.
///
/// An exchange sends its request through this protocol and receives the response through the stream's
/// ``OriginStreamDelegate``. ``OriginConnection`` implements it for HTTP/1.1, with one stream at a time per connection.
/// It handles the chunked coding, `Connection` and the framing of responses. ``HTTP2OriginStream`` implements it for
/// HTTP/2. The state of the connection, such as its TLS session and whether it may be reused, is in ``OriginLease``.
///
/// Owned by the connection's event loop.
package protocol OriginStream: AnyObject {
    // MARK: The request

    /// Sends the request's head with `changes`. ``finish(trailers:)`` must follow.
    func send(_ head: RequestHead, _ changes: consuming RequestChanges)

    /// Sends a part of the request's content. It may wait for ``flush()``. Writability may change during the call.
    func send(_ content: ByteBuffer)

    /// The request is complete.
    func finish(trailers: FieldLines?)

    /// Writes out everything sent so far.
    func flush()

    /// Whether the origin takes more content now.
    var isWritable: Bool { get }

    /// Whether the last request was sent to its end.
    var requestIsWhole: Bool { get }

    // MARK: The response

    /// Stops the delivery of the response until ``resumeReading()``.
    func pauseReading()

    func resumeReading()

    // MARK: The end

    /// Gives the exchange up. The delegate is not called again.
    func reset()

    /// Leaves HTTP after a 101 response; nil if the connection is gone.
    func upgrade() -> UpgradedConnection?
}

/// Receives the origin's part of an exchange. Called on the connection's event loop.
package protocol OriginStreamDelegate: AnyObject {
    /// A response head arrived, which may be an interim one. ``OriginStream/pauseReading()`` holds back its content.
    func originResponded(_ head: consuming ResponseHead, content: ContentEnd)
    /// A part of the response's content arrived.
    func originSent(_ content: ByteBuffer)
    /// The response is complete. Its connection may carry another request from now on.
    func originResponseEnded(trailers: FieldLines?)
    /// Everything that one read delivered has been reported: a good moment to flush.
    func originReadCompleted()
    /// No response will arrive, or no more of it. The connection is closed.
    func originFailed(_ error: UpstreamError)
    func originWritabilityChanged(_ isWritable: Bool)
    /// The origin requests a client certificate. `answer` may be called later, on the event loop; nil declines.
    func originAskedForCertificate(_ request: CertificateRequest, _ answer: @escaping (Identity?) -> Void)
}

extension OriginStreamDelegate {
    /// Declines.
    package func originAskedForCertificate(
        _ request: CertificateRequest, _ answer: @escaping (Identity?) -> Void
    ) {
        answer(nil)
    }
}

/// How the recipient of a response recognises the end of its content.
package enum ContentEnd: Hashable, Sendable {
    /// The response has no content.
    case none
    /// After this many bytes.
    case length(UInt64)
    /// The sender marks the end, and trailers may come before it: the chunked coding, or END_STREAM in HTTP/2.
    case marked
    /// The sender closes the connection, as HTTP/1.0 does. A truncated response cannot be distinguished from a complete
    /// one.
    case connectionClose
}

/// How a request differs from the client's when it reaches the origin, apart from fields that concern one connection
/// only. Built for each request and consumed, without a copy.
package struct RequestChanges: ~Copyable {
    /// The path and query, or `*`.
    package let target: ArraySlice<UInt8>
    /// The target contains a secret.
    package let hidesTarget: Bool
    /// The origin's host and port: `Host`, or `:authority`.
    package let authority: String
    /// The request goes out without its content, and without Expect and Upgrade: it only opens a dialogue that
    /// authenticates the connection.
    package let withholdsContent: Bool
    /// `Expect: 100-continue` is added: the content follows when the origin invites it (RFC 9110 §10.1.1).
    package let expectsContinue: Bool
    /// Replaces the client's Authorization; nil leaves it unchanged.
    package let authorization: AuthorizationField?
    /// Replaces the client's Cookie; nil leaves it unchanged.
    package let cookie: (any SecretFieldValue)?
    /// Appended to the client's fields, or in their place.
    package let added: [AddedField]
    /// The names of the client's fields that are left out.
    package let omitted: [String]
    /// The request may have cookies that are kept secret, and the response may set some.
    package let sharesSession: Bool
    /// Appended to `Via` (RFC 9110 §7.6.3).
    package let via: ViaField
    /// Replaces Max-Forwards; nil leaves it unchanged.
    package let maxForwards: UInt?

    package init(
        target: ArraySlice<UInt8>, authority: String, withholdsContent: Bool, authorization: AuthorizationField?,
        via: ViaField, maxForwards: UInt?, expectsContinue: Bool = false, cookie: (any SecretFieldValue)? = nil,
        added: [AddedField] = [], omitted: [String] = [], hidesTarget: Bool = false, sharesSession: Bool = false
    ) {
        self.target = target
        self.hidesTarget = hidesTarget
        self.authority = authority
        self.withholdsContent = withholdsContent
        self.expectsContinue = expectsContinue
        self.authorization = authorization
        self.via = via
        self.maxForwards = maxForwards
        self.cookie = cookie
        self.added = added
        self.omitted = omitted
        self.sharesSession = sharesSession
    }
}

extension RequestChanges {
    /// The framing of the content that goes out with `head`.
    func framing(of head: borrowing RequestHead) -> BodyFraming {
        withholdsContent && head.hasBody ? .length(0) : head.framing
    }

    func forwarding(
        _ framing: BodyFraming, connection: ConnectionOption, isForParent: Bool
    ) -> RequestForwarding {
        RequestForwarding(
            target: target, host: authority, framing: framing, authorization: authorization, via: via,
            connection: connection, keepsExpect: !withholdsContent, expectsContinue: expectsContinue,
            maxForwards: maxForwards, cookie: cookie, added: added, omitted: omitted, hidesTarget: hidesTarget,
            isForParent: isForParent)
    }
}

/// A connection that has left HTTP after a 101 response.
package struct UpgradedConnection {
    package let channel: any Channel
    /// The bytes received after the response's head.
    package let received: ByteBuffer
    /// The origin sends nothing more.
    package let inputEnded: Bool
}

extension AuthorizationField: SecretFieldValue {}
