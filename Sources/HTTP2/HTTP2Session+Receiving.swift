// SPDX-License-Identifier: Apache-2.0

import CountersignCNGHTTP2
import CountersignHTTP1

/// What nghttp2 reports about frames from the peer.
extension HTTP2Session {
    // MARK: The budget

    /// Charges frames that carry nothing. False if the connection ends here.
    func frameBegins(_ head: nghttp2_frame_hd) -> Bool {
        switch UInt32(head.type) {
        case NGHTTP2_DATA.rawValue:
            let ends = head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
            return head.length > 0 || ends || spend(.other)
        case NGHTTP2_HEADERS.rawValue:
            return role == .client || requestBegins(head.stream_id)
        case NGHTTP2_CONTINUATION.rawValue:
            // nghttp2 limits their number per block.
            return true
        case NGHTTP2_WINDOW_UPDATE.rawValue:
            // nghttp2 reports those for open streams, with their increment.
            return head.stream_id == 0 || streams[head.stream_id] != nil || spend(.reply)
        case NGHTTP2_PING.rawValue:
            return spend(.reply)
        default:
            return spend(.other)
        }
    }

    /// Charges DATA on closed streams, which nghttp2 drops without a report. Returns the increments of 0 in `octets`;
    /// nil if the connection ends here.
    func follow(_ octets: UnsafeRawBufferPointer) -> [FrameWalk.NullIncrement]? {
        guard role == .server else { return walk.follow(octets) { _ in } }
        var count = 0
        let (last, open) = (lastStreamID, streams)
        let found = walk.follow(octets) { head in
            guard UInt32(head.type) == NGHTTP2_DATA.rawValue, head.streamID > 0, head.streamID <= last else { return }
            if open[head.streamID] == nil { count += 1 }
        }
        for _ in 0..<count where !spend(.other) { return nil }
        return found
    }

    /// An increment of 0 is an error of its stream (RFC 9113 §6.9), of which nghttp2 makes one of the connection. It
    /// gets an increment of 1 instead, which it ignores because the stream is being reset.
    func pass(_ octets: UnsafeRawBufferPointer, without increments: [FrameWalk.NullIncrement]) {
        var start = 0
        for increment in increments {
            pass(UnsafeRawBufferPointer(rebasing: octets[start..<increment.offset]))
            if failure == nil, let stream = streams[increment.streamID] {
                stream.reset(.protocolError)
                _ = spend(.other)
            }
            withUnsafeBytes(of: UInt8(1)) { pass($0) }
            start = increment.offset + 1
        }
        pass(UnsafeRawBufferPointer(rebasing: octets[start...]))
    }

    private func pass(_ octets: UnsafeRawBufferPointer) {
        guard failure == nil, let first = octets.baseAddress, octets.count > 0 else { return }
        isBusy = true
        let used = nghttp2_session_mem_recv(raw, first.assumingMemoryBound(to: UInt8.self), octets.count)
        isBusy = false
        // A faulty preface, or a peer that does not read the replies that it asks for.
        if used < 0 { fail(used == Int(NGHTTP2_ERR_FLOODED.rawValue) ? .enhanceYourCalm : .protocolError) }
    }

    /// HEADERS on a lower identifier are trailers, or late trailers of a stream that we reset; but a stream that the
    /// client skipped cannot be opened any more (RFC 9113 §5.1.1), which nghttp2 ignores.
    private func requestBegins(_ id: Int32) -> Bool {
        if id > lastStreamID {
            if id > lastStreamID + 2 {
                if skipped.count == HTTP2Session.skippedRangeLimit { skipped.removeFirst() }
                skipped.append(lastStreamID + 1...id - 1)
            }
            lastStreamID = id
            return true
        }
        guard streams[id] == nil else { return true }
        if skipped.contains(where: { $0.contains(id) }) {
            fail(.protocolError)
            return false
        }
        return spend(.other)
    }

    /// Takes a token from the budget; false if the connection ends because none is left.
    func spend(_ kind: FrameBudget.Kind) -> Bool {
        if budget.spend(kind, at: now) { return true }
        fail(.enhanceYourCalm)
        return false
    }

    // MARK: Heads

    func headersBegin(_ frame: UnsafePointer<nghttp2_frame>) {
        let id = frame.head.pointee.stream_id
        if let stream = streams[id] {
            let isTrailers = role == .server || stream.hasResponse
            block.begin(isTrailers ? .trailers : .response)
            return
        }
        guard role == .server else { return block.begin(.response) }
        guard streams.count < settings.maximumStreams else {
            // The block is still decompressed, and belongs to no stream that is known.
            block.begin(.request)
            nghttp2_submit_rst_stream(
                raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, HTTP2ErrorCode.refusedStream.rawValue)
            return
        }
        let stream = HTTP2Stream(id: id, session: self)
        stream.isSent = true
        streams[id] = stream
        block.begin(.request)
    }

    /// Adds a field of the current block; returns the result for nghttp2.
    func field(
        of id: Int32, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isNeverIndexed: Bool
    ) -> Int32 {
        if role == .client, name.elementsEqual(":status".utf8) { streams[id]?.receivedStatus = Self.status(value) }
        block.add(name, value, isNeverIndexed: isNeverIndexed)
        // References to one entry of the table can make a block thousands of times larger (RFC 7541 §7.3).
        guard block.isBomb else { return Callbacks.success }
        fail(.enhanceYourCalm)
        return Callbacks.failure
    }

    private static func status(_ value: UnsafeRawBufferPointer) -> Int? {
        guard value.count == 3, value.allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
        return value.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    private func blockReceived(_ id: Int32, isEndOfStream: Bool) -> Bool {
        defer { block.clear() }
        guard let stream = streams[id] else { return true }
        if stream.dropsInput {
            if isEndOfStream { stream.inputEnded = true }
            return true
        }
        do throws(HTTP2Refusal) {
            switch block.kind {
            case .request:
                let request = try block.request(endsStream: isEndOfStream)
                stream.method = request.method
                stream.extendedProtocol = block.extendedProtocol
                stream.neverIndexed = block.neverIndexed
                stream.isReported = true
                delegate?.received(request, on: stream)
                if isEndOfStream { inputEnded(stream, nil) }
            case .response:
                let response = try block.response()
                let framing = try block.framing(of: response, answering: stream.method, endsStream: isEndOfStream)
                stream.hasResponse = response.status >= 200
                if case .length(let length) = framing { stream.contentLeft = length }
                stream.neverIndexed = block.neverIndexed
                delegate?.received(response, framing: framing, on: stream)
                if isEndOfStream { inputEnded(stream, nil) }
            case .trailers:
                let trailers = try block.trailers()
                inputEnded(stream, trailers)
            }
            return true
        } catch {
            return refuse(stream, error, isEndOfStream: isEndOfStream)
        }
    }

    /// False if the connection ends because the peer has sent too many such messages.
    private func refuse(_ stream: HTTP2Stream, _ refusal: HTTP2Refusal, isEndOfStream: Bool) -> Bool {
        if isEndOfStream { stream.inputEnded = true }
        stream.dropsInput = true
        stream.refusal = refusal
        if role == .server, block.kind == .request {
            stream.isReported = true
            delegate?.refused(refusal, on: stream)
            if stream.isFinished {
                return spend(.other)
            }
        }
        stream.reset(.protocolError)
        return spend(.other)
    }

    // MARK: Content and control frames

    func contentReceived(_ content: UnsafeRawBufferPointer, on id: Int32) {
        guard let stream = streams[id] else { return }
        guard !stream.dropsInput, content.count > 0 else {
            nghttp2_session_consume_stream(raw, id, content.count)
            return
        }
        budget.contentPassed(content.count)
        if let left = stream.contentLeft { stream.contentLeft = left - min(left, UInt64(content.count)) }
        delegate?.received(content, on: stream)
    }

    private func inputEnded(_ stream: HTTP2Stream, _ trailers: FieldLines?) {
        guard !stream.inputEnded else { return }
        stream.inputEnded = true
        guard !stream.dropsInput else { return }
        delegate?.receivedEnd(trailers: trailers, on: stream)
    }

    /// A frame is complete and valid. False if the connection ends here.
    func frameReceived(_ frame: UnsafePointer<nghttp2_frame>) -> Bool {
        let head = frame.head
        let id = head.pointee.stream_id
        switch UInt32(head.pointee.type) {
        case NGHTTP2_DATA.rawValue:
            messageFrames += 1
            let padding = frame.member(nghttp2_data.self).pointee.padlen
            let isEmpty = head.pointee.length > 0 && head.pointee.length <= padding
            if isEmpty, !head.isEndOfStream, !spend(.other) { return false }
            if head.isEndOfStream, let stream = streams[id] { inputEnded(stream, nil) }
        case NGHTTP2_HEADERS.rawValue:
            messageFrames += 1
            return blockReceived(id, isEndOfStream: head.isEndOfStream)
        case NGHTTP2_RST_STREAM.rawValue:
            guard let stream = streams[id] else { break }
            let code = HTTP2ErrorCode(rawValue: frame.member(nghttp2_rst_stream.self).pointee.error_code)
            stream.peerResetCode = code
            // Node sends it in place of END_STREAM if a response ends while the window is closed. RFC 9113 §8.1 permits
            // it after a complete response, which this one is by its Content-Length.
            if code == .noError, stream.contentLeft == 0 { inputEnded(stream, nil) }
        case NGHTTP2_WINDOW_UPDATE.rawValue:
            let increment = frame.member(nghttp2_window_update.self).pointee.window_size_increment
            if UInt32(increment) < FrameBudget.tinyWindowBytes { return spend(.reply) }
        case NGHTTP2_SETTINGS.rawValue:
            if head.pointee.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0 { delegate?.settingsChanged() }
        case NGHTTP2_GOAWAY.rawValue:
            isGoingAway = true
            let goaway = frame.member(nghttp2_goaway.self)
            delegate?.goingAway(
                lastStreamID: goaway.pointee.last_stream_id, HTTP2ErrorCode(rawValue: goaway.pointee.error_code))
        default:
            break
        }
        return true
    }
}
