// SPDX-License-Identifier: Apache-2.0

import CountersignCNGHTTP2
import CountersignHTTP1

/// One exchange on an ``HTTP2Session``. Its methods queue frames, which ``HTTP2Session/drain(atMost:)`` writes; they
/// have no effect once the stream has ended.
package final class HTTP2Stream {
    /// The identifier on the wire: odd and growing (RFC 9113 §5.1.1).
    package let id: Int32
    /// Nil once the stream has ended.
    @exclusivity(unchecked) package internal(set) var session: HTTP2Session?
    /// For the caller's own object of this stream, until the stream ends.
    @exclusivity(unchecked) package var owner: AnyObject?
    /// The protocol of an extended CONNECT, such as `websocket` (RFC 8441 §4). Its request is reported as the GET with
    /// Upgrade that asks for the same in HTTP/1.1.
    @exclusivity(unchecked) package internal(set) var extendedProtocol: String?
    /// Names of received fields that must stay out of every compression table (RFC 7541 §6.2.3), in lower case, other
    /// than those that always do. Pass them on with the message.
    @exclusivity(unchecked) package internal(set) var neverIndexed: [[UInt8]] = []

    /// The method of the request, which decides about the content of the response.
    @exclusivity(unchecked) var method = Method.other
    /// The delegate knows the stream.
    @exclusivity(unchecked) var isReported = false
    /// HEADERS of the request were written or received.
    @exclusivity(unchecked) var isSent = false
    /// The delegate refused or stopped the peer's message: the rest is dropped.
    @exclusivity(unchecked) var dropsInput = false
    /// The final response was received.
    @exclusivity(unchecked) var hasResponse = false
    /// Octets of the response's content that are still to come; nil if its head does not say how many.
    @exclusivity(unchecked) var contentLeft: UInt64?
    @exclusivity(unchecked) var inputEnded = false
    /// END_STREAM was written.
    @exclusivity(unchecked) var outputEnded = false

    /// The last `:status` of the origin, also that of a response that is refused.
    @exclusivity(unchecked) package internal(set) var receivedStatus: Int?

    /// Why the peer's message was refused, with PROTOCOL_ERROR unless the delegate answered it.
    @exclusivity(unchecked) package internal(set) var refusal: HTTP2Refusal?

    // The message that is sent.

    /// Octets that were queued and not written.
    @exclusivity(unchecked) package internal(set) var queuedBytes = 0
    /// A head was queued.
    @exclusivity(unchecked) var hasHead = false
    @exclusivity(unchecked) var isFinished = false
    @exclusivity(unchecked) var trailers: FieldLines?
    @exclusivity(unchecked) var messageFields: FieldLines?
    /// nghttp2 found nothing to send and waits for `nghttp2_session_resume_data`.
    @exclusivity(unchecked) var isDeferred = false
    @exclusivity(unchecked) private var isFull = false
    /// The code of our RST_STREAM.
    @exclusivity(unchecked) var resetCode: HTTP2ErrorCode?
    /// The code of the peer's RST_STREAM.
    @exclusivity(unchecked) var peerResetCode: HTTP2ErrorCode?

    init(id: Int32, session: HTTP2Session) {
        self.id = id
        self.session = session
    }

    package var isOpen: Bool { session != nil }

    // MARK: Content

    /// Whether more content should be queued now. ``HTTP2SessionDelegate/becameWritable(_:)`` reports that it is true
    /// again.
    package var isWritable: Bool { !isFull }

    /// Announces `byteCount` octets of content, which ``HTTP2SessionDelegate/writeContent(of:byteCount:)`` will collect
    /// in order, in parts. Follows the head.
    package func queueContent(_ byteCount: Int) {
        guard let session, byteCount > 0, resetCode == nil else { return }
        precondition(hasHead && !isFinished, "content outside a message")
        queuedBytes += byteCount
        if queuedBytes >= session.settings.queuedContentBytes { isFull = true }
        resume()
    }

    /// The message is complete when the queued content is written. Fields that may not be trailers are left out.
    package func finish(trailers: FieldLines? = nil) {
        guard session != nil, !isFinished, resetCode == nil else { return }
        precondition(hasHead, "the end of a message without a head")
        isFinished = true
        self.trailers = trailers
        resume()
    }

    /// Returns `byteCount` octets of received content to the sender's window of this stream. Call it when they have
    /// left, so that a slow reader slows only its own sender.
    package func consume(_ byteCount: Int) {
        guard let session, byteCount > 0 else { return }
        nghttp2_session_consume_stream(session.raw, id, byteCount)
    }

    // MARK: The end

    /// RST_STREAM: gives the exchange up, queued content included. ``HTTP2SessionDelegate/ended(_:_:)`` follows once
    /// it is written; a DATA frame that was begun may collect its content until then. A stream that both sides have
    /// ended is closed in any case: nghttp2 would send RST_STREAM, which origins count as a sign of an attack.
    package func reset(_ code: HTTP2ErrorCode) {
        guard let session, resetCode == nil else { return }
        dropsInput = true
        guard !inputEnded || !outputEnded || refusal != nil else { return }
        resetCode = code
        nghttp2_submit_rst_stream(session.raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, code.rawValue)
    }

    /// The rest of the request is not needed: it is dropped from now on, and its window is returned. Servers only.
    ///
    /// A client that goes on for long can be stopped by ``reset(_:)`` with `noError` after the complete response (RFC
    /// 9113 §8.1). But not at once: curl 7.88 loses a response that RST_STREAM follows in the same read.
    package func dropRequest() { dropsInput = true }

    // MARK: Private

    func contentSent(_ byteCount: Int) {
        queuedBytes -= byteCount
        guard let session, isFull, queuedBytes <= session.settings.queuedContentBytes / 2 else { return }
        isFull = false
        session.delegate?.becameWritable(self)
    }

    private func resume() {
        guard isDeferred, let session else { return }
        isDeferred = false
        nghttp2_session_resume_data(session.raw, id)
    }
}
