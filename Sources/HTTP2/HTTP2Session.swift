// SPDX-License-Identifier: Apache-2.0

import CountersignCNGHTTP2
import CountersignHTTP1

/// One HTTP/2 connection (RFC 9113): frames, HPACK, flow control and the rules of heads, without any I/O.
///
/// A session is a server towards a client, or a client towards an origin. Its caller owns the socket. It passes the
/// octets that it reads to ``receive(_:at:)``, and lets ``drain(atMost:)`` write into its output buffer. Events are
/// reported to the ``HTTP2SessionDelegate``, stream by stream; messages are sent by the methods of ``HTTP2Stream``.
///
/// The caller works like this:
/// 1. After creation, and after every `receive`, and after sending something: `drain`, then write to the socket.
///    Repeat while `drain` returns true and the socket is writable; go on when it becomes writable again. A peer that
///    does not read is never drained, and what is queued for it is bounded.
/// 2. Close the connection when ``isOver`` is true and the output is written, or at once if the peer does not read.
/// 3. When the connection is gone, ``connectionClosed()``, which ends all streams and releases the delegate.
///
/// Inside a delegate's call, `receive` is not allowed, and `drain` does nothing and returns false: the caller drains
/// afterwards in any case.
///
/// Content is never copied here. Received content points into the caller's octets. Content to be sent stays with the
/// caller, who announces its size with ``HTTP2Stream/queueContent(_:)`` and appends it to the output when frames and
/// windows permit.
///
/// Not thread-safe: one event loop owns a session.
package final class HTTP2Session {
    package enum Role: Hashable, Sendable {
        /// Receives requests from a client.
        case server
        /// Sends requests to an origin.
        case client
    }

    package let role: Role
    package let settings: HTTP2Settings
    /// Held until ``connectionClosed()``.
    @exclusivity(unchecked) package internal(set) var delegate: (any HTTP2SessionDelegate)?
    /// Why we ended the connection; nil before. The peer is told by GOAWAY.
    @exclusivity(unchecked) package internal(set) var failure: HTTP2ErrorCode?
    /// Nothing more can be received or sent: the caller closes the connection once the output is written.
    package var isOver: Bool {
        nghttp2_session_want_write(raw) == 0 && (failure != nil || nghttp2_session_want_read(raw) == 0)
    }
    /// The peer announced by GOAWAY that it opens no further stream, or we did.
    @exclusivity(unchecked) package internal(set) var isGoingAway = false
    /// How many frames with heads and content have arrived.
    @exclusivity(unchecked) package internal(set) var messageFrames: UInt64 = 0
    /// Streams that are not closed yet.
    package var openStreams: Int { streams.count }

    // nghttp2 calls back while a method of the session runs. No method holds an access to a property meanwhile, so the
    // checks of that at run time are left out: they cost more than a thousand instructions per request.

    /// The session of nghttp2, which calls the functions in `HTTP2Session+Callbacks.swift`.
    let raw: OpaquePointer
    @exclusivity(unchecked) var streams: [Int32: HTTP2Stream] = [:]
    @exclusivity(unchecked) var budget: FrameBudget
    /// The field block that is being received. Blocks of one connection do not interleave (RFC 9113 §4.3).
    @exclusivity(unchecked) var block: FieldBlock
    /// Identifiers that the client skipped, at most ``skippedRangeLimit`` ranges.
    @exclusivity(unchecked) var skipped: [ClosedRange<Int32>] = []
    @exclusivity(unchecked) var lastStreamID: Int32 = 0
    @exclusivity(unchecked) var walk: FrameWalk
    /// The time of the current `receive`, in nanoseconds.
    @exclusivity(unchecked) var now: UInt64
    @exclusivity(unchecked) var isBusy = false
    @exclusivity(unchecked) private var settingsAreOut = false
    @exclusivity(unchecked) private var drainLimit = 0
    @exclusivity(unchecked) private var drainedBytes = 0

    static let skippedRangeLimit = 64

    /// Queues the connection preface. `now` is the time in nanoseconds of a monotonic clock, as in ``receive(_:at:)``.
    package init(
        _ role: Role, settings: HTTP2Settings, delegate: any HTTP2SessionDelegate, at now: UInt64
    ) {
        self.role = role
        self.settings = settings
        self.delegate = delegate
        self.now = now
        budget = FrameBudget(at: now)
        block = FieldBlock(settings)
        // The client's preface (RFC 9113 §3.4).
        walk = FrameWalk(prefaceBytes: role == .server ? 24 : 0)
        var session: OpaquePointer?
        let isServer = role == .server
        var memory = WipedMemory.functions
        let status =
            isServer
            ? nghttp2_session_server_new3(&session, Callbacks.shared, nil, Callbacks.options, &memory)
            : nghttp2_session_client_new3(&session, Callbacks.shared, nil, Callbacks.options, &memory)
        // The only failure is a lack of memory.
        guard status == 0, let session else { preconditionFailure("no memory for an HTTP/2 session") }
        raw = session
        nghttp2_session_set_user_data(raw, Unmanaged.passUnretained(self).toOpaque())
        announceSettings()
    }

    deinit { nghttp2_session_del(raw) }

    // MARK: Input and output

    /// Processes octets from the peer. Reports everything they complete before it returns. `now` is the time in
    /// nanoseconds of a monotonic clock.
    package func receive(_ octets: UnsafeRawBufferPointer, at now: UInt64) {
        precondition(!isBusy, "receive called inside a delegate's call")
        guard failure == nil, octets.count > 0 else { return }
        self.now = now
        guard let increments = follow(octets) else { return }
        pass(octets, without: increments)
    }

    /// Lets the delegate append what is to be sent to its output, until that is about `limit` octets long or nothing
    /// is left. True if the limit stopped it.
    package func drain(atMost limit: Int = 64 * 1024) -> Bool {
        guard !isBusy, let delegate else { return false }
        isBusy = true
        defer { isBusy = false }
        drainLimit = limit
        drainedBytes = 0
        while drainedBytes < limit {
            var octets: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(raw, &octets)
            guard count > 0 else {
                if count < 0, failure == nil { failure = .internalError }
                break
            }
            drainedBytes += count
            let frames = UnsafeRawBufferPointer(start: octets, count: count)
            if role == .server, !settingsAreOut {
                // The first frame of a server (RFC 9113 §3.4).
                settingsAreOut = true
                withStreamLimit(frames).withUnsafeBytes { delegate.write($0) }
            } else {
                delegate.write(frames)
            }
        }
        return drainedBytes >= limit
    }

    /// Writes the head of a DATA frame and its content. False if the output is full.
    func writeData(_ head: UnsafePointer<UInt8>, _ byteCount: Int, of stream: HTTP2Stream) -> Bool {
        guard drainedBytes < drainLimit, let delegate else { return false }
        drainedBytes += 9 + byteCount
        delegate.write(UnsafeRawBufferPointer(start: head, count: 9))
        if byteCount > 0 {
            budget.contentPassed(byteCount)
            delegate.writeContent(of: stream, byteCount: byteCount)
            stream.contentSent(byteCount)
            if stream.queuedBytes == 0 { budget.pieceSent() }
        }
        return true
    }

    /// Asks the peer for a reply (RFC 9113 §6.7).
    package func ping() { nghttp2_submit_ping(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil) }

    // MARK: The end

    /// Opens no further stream, but completes those that are open. Servers announce it first with the highest
    /// identifier, so that requests on their way are still answered; ``refuseNewStreams()`` ends that (RFC 9113 §6.8).
    package func announceEnd() {
        isGoingAway = true
        if role == .server { nghttp2_submit_shutdown_notice(raw) } else { refuseNewStreams() }
    }

    /// Tells the peer the last stream that is processed. Its connection is over when those are complete.
    package func refuseNewStreams() {
        isGoingAway = true
        nghttp2_submit_goaway(
            raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(raw),
            HTTP2ErrorCode.noError.rawValue, nil, 0)
    }

    /// Ends the connection: GOAWAY is queued, and nothing after it is read or sent.
    package func fail(_ code: HTTP2ErrorCode) {
        guard failure == nil else { return }
        failure = code
        nghttp2_session_terminate_session(raw, code.rawValue)
    }

    /// The connection is gone. Every open stream ends with ``HTTP2StreamEnd/connectionLost``, except those of a client
    /// that were never sent.
    package func connectionClosed() {
        if failure == nil { failure = .noError }
        let open = streams.values.sorted { $0.id < $1.id }
        for stream in open { end(stream, stream.isSent ? .connectionLost : .notProcessed) }
        delegate = nil
    }
}
