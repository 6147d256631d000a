// SPDX-License-Identifier: Apache-2.0

import CountersignCNGHTTP2
import CountersignHTTP1

/// What nghttp2 asks and reports about frames to the peer, and the end of streams.
extension HTTP2Session {
    func announceSettings() {
        let none = UInt8(NGHTTP2_FLAG_NONE.rawValue)
        var entries = [
            entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, UInt32(settings.streamWindowBytes)),
            entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, UInt32(settings.limits.headBytes)),
        ]
        switch role {
        case .server:
            if settings.webSocketKey != nil {
                entries.append(entry(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1))
            }
        case .client:
            entries.append(entry(NGHTTP2_SETTINGS_ENABLE_PUSH, 0))
        }
        nghttp2_submit_settings(raw, none, entries, entries.count)
        nghttp2_session_set_local_window_size(raw, none, 0, settings.connectionWindowBytes)
    }

    /// Our SETTINGS with the limit of streams. nghttp2 must not know it, because it ends the connection of a client
    /// with more streams, which are to be refused one by one (RFC 9113 §5.1.2).
    func withStreamLimit(_ frame: UnsafeRawBufferPointer) -> [UInt8] {
        let length = frame.count - 9 + 6
        let limit = settings.maximumStreams
        let entry =
            [0, UInt8(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue)]
            + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: limit >> $0) }
        return [16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) } + frame.dropFirst(3) + entry
    }

    private func entry(_ identifier: nghttp2_settings_id, _ value: UInt32) -> nghttp2_settings_entry {
        nghttp2_settings_entry(settings_id: Int32(identifier.rawValue), value: value)
    }

    // MARK: Content

    /// The size of the next DATA frame's content, and with `flags` whether the message ends.
    func nextContent(of stream: HTTP2Stream, atMost limit: Int, _ flags: inout UInt32) -> Int {
        flags |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
        let count = min(limit, stream.queuedBytes)
        if count == stream.queuedBytes, stream.isFinished {
            flags |= NGHTTP2_DATA_FLAG_EOF.rawValue
            if let trailers = stream.trailers, submit(trailers, on: stream) {
                flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
            }
        } else if count == 0 {
            stream.isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        return count
    }

    // MARK: Sent frames

    func frameSent(_ frame: UnsafePointer<nghttp2_frame>) {
        let head = frame.head
        switch UInt32(head.pointee.type) {
        case NGHTTP2_DATA.rawValue, NGHTTP2_HEADERS.rawValue:
            guard let stream = streams[head.pointee.stream_id] else { return }
            stream.isSent = true
            if head.isEndOfStream { outputEnded(stream) }
        case NGHTTP2_RST_STREAM.rawValue:
            let stream = streams[head.pointee.stream_id]
            guard stream?.resetCode == nil else { return }
            let code = frame.member(nghttp2_rst_stream.self).pointee.error_code
            stream?.resetCode = HTTP2ErrorCode(rawValue: code)
            // The peer made nghttp2 reset the stream.
            _ = spend(.other)
        case NGHTTP2_GOAWAY.rawValue:
            let code = HTTP2ErrorCode(rawValue: frame.member(nghttp2_goaway.self).pointee.error_code)
            if failure == nil, code != .noError { failure = code }
        default:
            break
        }
    }

    private func outputEnded(_ stream: HTTP2Stream) {
        stream.outputEnded = true
        budget.messageCompleted()
    }

    /// nghttp2 drops frames of streams that ended, and requests after GOAWAY.
    func frameNotSent(_ frame: UnsafePointer<nghttp2_frame>) {
        guard role == .client, UInt32(frame.head.pointee.type) == NGHTTP2_HEADERS.rawValue else { return }
        guard let stream = streams[frame.head.pointee.stream_id], !stream.isSent else { return }
        end(stream, stream.resetCode.map { .resetByUs($0) } ?? .notProcessed)
    }

    // MARK: Closed streams

    func streamClosed(_ id: Int32, _ code: HTTP2ErrorCode) {
        guard let stream = streams[id] else { return }
        let isWhole = stream.inputEnded && stream.outputEnded
        let end: HTTP2StreamEnd =
            if let reset = stream.resetCode {
                .resetByUs(reset)
            } else if let reset = stream.peerResetCode {
                .resetByPeer(reset)
            } else if isWhole, code == .noError {
                .complete
            } else if code == .refusedStream {
                .notProcessed
            } else {
                .resetByUs(code)
            }
        self.end(stream, end)
    }

    func end(_ stream: HTTP2Stream, _ end: HTTP2StreamEnd) {
        guard streams.removeValue(forKey: stream.id) != nil else { return }
        if stream.isReported { delegate?.ended(stream, end) }
        stream.session = nil
        stream.owner = nil
        stream.trailers = nil
        stream.messageFields = nil
    }
}
