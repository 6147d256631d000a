// SPDX-License-Identifier: Apache-2.0

import CountersignCNGHTTP2

/// The functions that nghttp2 calls, and its options. Both objects are copied by every session.
enum Callbacks {
    // Not changed after their initialisation.
    nonisolated(unsafe) static let shared = makeCallbacks()
    nonisolated(unsafe) static let options = makeOptions()

    static let success: Int32 = 0
    /// Ends the connection. Of an attack, the rest is not even decompressed.
    static let failure = Int32(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
    /// Resets the stream with PROTOCOL_ERROR. The rest of the block is decompressed, because the table must stay the
    /// same on both sides.
    static let malformed = Int32(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)

    private static func makeOptions() -> OpaquePointer {
        var created: OpaquePointer?
        guard nghttp2_option_new(&created) == 0, let options = created else { preconditionFailure("no memory") }
        nghttp2_option_set_no_auto_window_update(options, 1)
        nghttp2_option_set_max_outbound_ack(options, 200)
        // The budget decides. This limit counts resets of attackers and of busy browsers alike.
        nghttp2_option_set_stream_reset_rate_limit(options, 1_000_000, 1_000_000)
        // Origins that have not sent their SETTINGS yet.
        nghttp2_option_set_peer_max_concurrent_streams(options, 100)
        nghttp2_option_set_max_send_header_block_length(options, 1 << 20)
        // nghttp2 does not report frames of other types at all, and they cost tokens.
        for type in UInt8(0x0A)...UInt8.max { nghttp2_option_set_user_recv_extension_type(options, type) }
        return options
    }

    private static func makeCallbacks() -> OpaquePointer {
        var created: OpaquePointer?
        guard nghttp2_session_callbacks_new(&created) == 0, let callbacks = created else {
            preconditionFailure("no memory")
        }
        setInputCallbacks(callbacks)
        setOutputCallbacks(callbacks)
        return callbacks
    }

    private static func setInputCallbacks(_ callbacks: OpaquePointer) {
        nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks) { _, head, user in
            guard let head else { return Callbacks.success }
            return HTTP2Session.at(user).frameBegins(head.pointee) ? Callbacks.success : Callbacks.failure
        }
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, user in
            guard let frame else { return Callbacks.success }
            HTTP2Session.at(user).headersBegin(frame)
            return Callbacks.success
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameLength, value, valueLength, flags, user in
            HTTP2Session.at(user).field(
                of: frame?.pointee.hd.stream_id ?? 0,
                UnsafeRawBufferPointer(start: name, count: nameLength),
                UnsafeRawBufferPointer(start: value, count: valueLength),
                isNeverIndexed: flags & UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) != 0)
        }
        // Without this function, nghttp2 leaves invalid fields out of a message and accepts the rest.
        nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks) { _, _, _, _, _, _, _, _ in
            Callbacks.malformed
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            guard let frame else { return Callbacks.success }
            return HTTP2Session.at(user).frameReceived(frame) ? Callbacks.success : Callbacks.failure
        }
        nghttp2_session_callbacks_set_unpack_extension_callback(callbacks) { _, _, _, _ in
            Int32(NGHTTP2_ERR_CANCEL.rawValue)
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { raw, _, id, octets, count, user in
            nghttp2_session_consume_connection(raw, count)
            HTTP2Session.at(user).contentReceived(UnsafeRawBufferPointer(start: octets, count: count), on: id)
            return Callbacks.success
        }
    }

    private static func setOutputCallbacks(_ callbacks: OpaquePointer) {
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, id, code, user in
            HTTP2Session.at(user).streamClosed(id, HTTP2ErrorCode(rawValue: code))
            return Callbacks.success
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, user in
            if let frame { HTTP2Session.at(user).frameSent(frame) }
            return Callbacks.success
        }
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, _, user in
            if let frame { HTTP2Session.at(user).frameNotSent(frame) }
            return Callbacks.success
        }
        nghttp2_session_callbacks_set_send_data_callback(callbacks) { _, frame, head, count, source, user in
            guard let head, let stream = source?.pointee.ptr else { return Callbacks.failure }
            return HTTP2Session.at(user).writeData(head, count, of: HTTP2Stream.at(stream))
                ? Callbacks.success : Int32(NGHTTP2_ERR_WOULDBLOCK.rawValue)
        }
    }

    /// Chooses the content of the next DATA frame of a stream.
    static let source: nghttp2_data_source_read_callback = { _, _, _, limit, flags, source, user in
        guard let flags, let stream = source?.pointee.ptr else { return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue) }
        return HTTP2Session.at(user).nextContent(of: HTTP2Stream.at(stream), atMost: limit, &flags.pointee)
    }
}

// The session owns its streams until nghttp2 has closed them, and its caller owns the session during every call.

extension HTTP2Session {
    fileprivate static func at(_ user: UnsafeMutableRawPointer?) -> HTTP2Session {
        guard let user else { preconditionFailure("nghttp2 forgot its session") }
        return Unmanaged<HTTP2Session>.fromOpaque(user).takeUnretainedValue()
    }
}

extension HTTP2Stream {
    fileprivate static func at(_ pointer: UnsafeMutableRawPointer) -> HTTP2Stream {
        Unmanaged<HTTP2Stream>.fromOpaque(pointer).takeUnretainedValue()
    }
}

extension UnsafePointer<nghttp2_frame> {
    /// The union's member for `HEADERS` and so on, without a copy of the union.
    func member<Member>(_: Member.Type) -> UnsafePointer<Member> {
        UnsafeRawPointer(self).assumingMemoryBound(to: Member.self)
    }

    var head: UnsafePointer<nghttp2_frame_hd> { member(nghttp2_frame_hd.self) }
}

extension UnsafePointer<nghttp2_frame_hd> {
    var isEndOfStream: Bool { pointee.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 }
}
