// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1

/// Receives what happens on a connection. Every call comes from inside ``HTTP2Session/receive(_:at:)``,
/// ``HTTP2Session/drain(atMost:)`` or ``HTTP2Session/connectionClosed()``, and may call the streams' methods.
package protocol HTTP2SessionDelegate: AnyObject {
    // MARK: Output, inside drain

    /// Appends `octets` to the output. They are valid during the call only.
    func write(_ octets: UnsafeRawBufferPointer)

    /// Appends the next `byteCount` octets of the content that was queued on `stream` to the output.
    func writeContent(of stream: HTTP2Stream, byteCount: Int)

    /// Less than the limit is queued on `stream` again, after ``HTTP2Stream/isWritable`` was false.
    func becameWritable(_ stream: HTTP2Stream)

    // MARK: The peer's message

    /// A valid request arrived on a new stream. Its framing is `.none` if END_STREAM came with it, `.length` with a
    /// Content-Length, otherwise `.chunked`: END_STREAM marks the end. ``receivedEnd(trailers:on:)`` follows in every
    /// case, at once if there is no content. Servers only.
    func received(_ request: consuming RequestHead, on stream: HTTP2Stream)

    /// A request that HTTP/2 allows but the proxy does not. Nothing else of it is reported. The delegate may send a
    /// complete response during the call; otherwise the stream is reset with PROTOCOL_ERROR. Servers only.
    func refused(_ refusal: HTTP2Refusal, on stream: HTTP2Stream)

    /// A response arrived: interim ones first, then the final one. `framing` is that of its content: `.none`, `.length`
    /// or `.chunked`, as for requests. ``receivedEnd(trailers:on:)`` follows every final response. Clients only.
    func received(_ response: consuming ResponseHead, framing: BodyFraming, on stream: HTTP2Stream)

    /// A part of the content, never empty. `content` points into the octets given to ``HTTP2Session/receive(_:at:)``,
    /// so a caller that holds them in a buffer can take a slice. ``HTTP2Stream/consume(_:)`` must return the same
    /// number of octets to the sender, all at once or in parts.
    func received(_ content: UnsafeRawBufferPointer, on stream: HTTP2Stream)

    /// The peer's message is complete.
    func receivedEnd(trailers: FieldLines?, on stream: HTTP2Stream)

    // MARK: The end

    /// The stream is closed: the last call about it, exactly once for each that was opened or reported. If
    /// ``receivedEnd(trailers:on:)`` did not come before, the peer's message is truncated. The stream's methods have no
    /// effect any more.
    func ended(_ stream: HTTP2Stream, _ end: HTTP2StreamEnd)

    /// GOAWAY arrived: no stream can be opened here any more. Those above `lastStreamID` end with
    /// ``HTTP2StreamEnd/notProcessed``, the others go on (RFC 9113 §6.8).
    func goingAway(lastStreamID: Int32, _ code: HTTP2ErrorCode)

    /// SETTINGS arrived, so ``HTTP2Session/freeStreams`` may have changed.
    func settingsChanged()
}

extension HTTP2SessionDelegate {
    package func received(_ request: consuming RequestHead, on stream: HTTP2Stream) {
        preconditionFailure("only the delegate of a server receives requests")
    }

    package func received(_ response: consuming ResponseHead, framing: BodyFraming, on stream: HTTP2Stream) {
        preconditionFailure("only the delegate of a client receives responses")
    }

    package func refused(_ refusal: HTTP2Refusal, on stream: HTTP2Stream) {}

    package func goingAway(lastStreamID: Int32, _ code: HTTP2ErrorCode) {}

    package func settingsChanged() {}
}
