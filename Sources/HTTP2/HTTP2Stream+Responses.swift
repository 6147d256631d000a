// SPDX-License-Identifier: Apache-2.0

import CountersignCNGHTTP2
import CountersignHTTP1

/// The responses of a server.
extension HTTP2Stream {
    /// Sends an interim (1xx) response. 101 does not exist in HTTP/2 and is not sent.
    package func sendInterim(_ head: ResponseHead, _ changes: ResponseChanges) {
        guard head.isInformational, head.status != 101 else { return }
        sendHeaders(head, changes, framing: .none, kind: .interim)
    }

    /// Asks a client that waits for it to send the request's content (RFC 9110 §10.1.1).
    package func sendContinue() {
        send(status: 100, lines: { _ in 0 }, about: 0, kind: .interim)
    }

    /// Sends the head of the final response. Unless `endsStream`, content may follow, and ``finish(trailers:)`` does.
    ///
    /// `framing` is that of the content, as in ``ResponseHead/forwarded(_:framing:connection:)``: with `length` the
    /// client is told it, with `none` the origin's valid Content-Length passes unchanged. There is no content if
    /// `endsStream`, as for HEAD, 204 and 304.
    package func send(
        _ head: ResponseHead, _ changes: ResponseChanges, framing: BodyFraming, endsStream: Bool,
        neverIndexed: [[UInt8]] = []
    ) {
        messageFields = head.fields
        sendHeaders(head, changes, framing: framing, kind: endsStream ? .whole : .final, neverIndexed)
    }

    /// Opens the WebSocket that the client asked for, with the fields of the origin's 101 response `head`. Its octets
    /// follow, in both directions (RFC 8441 §5).
    package func accept(_ head: ResponseHead, _ changes: ResponseChanges) {
        // Drops a Content-Length: a 101 response has no content.
        sendHeaders(head, changes, framing: .chunked, kind: .final, status: 200)
    }

    /// Sends the head of a response made by the proxy. Names must be tokens; control characters in values become
    /// spaces, and octets beyond ASCII become `?`. Unless `endsStream`, content of `contentLength` octets and
    /// ``finish(trailers:)`` follow.
    package func send(
        status: Int, fields: [(String, String)], contentLength: Int?, endsStream: Bool
    ) {
        let response = GeneratedResponse(status: status, fields: fields)
        let size = fields.reduce(64) { $0 + $1.0.utf8.count + $1.1.utf8.count + 4 }
        send(
            status: status, lines: { response.writeFields(contentLength: contentLength, into: $0) }, about: size,
            kind: endsStream ? .whole : .final)
    }

    private enum HeadKind {
        case interim
        /// Content follows.
        case final
        case whole
    }

    private func sendHeaders(
        _ head: ResponseHead, _ changes: ResponseChanges, framing: BodyFraming, kind: HeadKind,
        _ neverIndexed: [[UInt8]] = [], status: Int? = nil
    ) {
        guard session != nil, !hasHead, resetCode == nil else { return }
        var own = FieldScratch()
        own.append(text: String(status ?? head.status))
        own.append(about: 256) { head.writeNewFields(changes, framing: framing, into: $0) }
        head.fields.bytes.withUnsafeBytes { bytes in
            var list = FieldList(about: head.fields.lines.count + 8, neverIndexed: neverIndexed)
            list.add(":status", UnsafeRawBufferPointer(rebasing: own.octets[0..<3]))
            head.forEachKeptField(changes, framing: framing) { list.add($0, of: bytes) }
            list.add(lines: UnsafeRawBufferPointer(rebasing: own.octets[3...]))
            submit(list, kind)
        }
    }

    private func send(
        status: Int, lines: (UnsafeMutableRawBufferPointer) -> Int, about: Int, kind: HeadKind
    ) {
        guard session != nil, !hasHead, resetCode == nil else { return }
        var own = FieldScratch()
        own.append(text: String(status))
        own.append(about: about, lines)
        var list = FieldList(about: 8, neverIndexed: [])
        list.add(":status", UnsafeRawBufferPointer(rebasing: own.octets[0..<3]))
        list.add(lines: UnsafeRawBufferPointer(rebasing: own.octets[3...]))
        submit(list, kind)
    }

    private func submit(_ list: borrowing FieldList, _ kind: HeadKind) {
        guard let session else { return }
        let status = list.withEntries { entries, count in
            switch kind {
            case .interim:
                return nghttp2_submit_headers(
                    session.raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, nil, entries, count, nil)
            case .whole:
                return nghttp2_submit_response(session.raw, id, entries, count, nil)
            case .final:
                var provider = content
                return nghttp2_submit_response(session.raw, id, entries, count, &provider)
            }
        }
        guard kind != .interim else { return }
        hasHead = true
        isFinished = kind == .whole
        if status < 0 { reset(.internalError) }
    }

    /// The source of this stream's content for nghttp2.
    var content: nghttp2_data_provider {
        nghttp2_data_provider(
            source: nghttp2_data_source(ptr: Unmanaged.passUnretained(self).toOpaque()),
            read_callback: Callbacks.source)
    }
}

extension HTTP2Session {
    /// Sends trailers, which end the stream; false if none of the fields may be a trailer.
    func submit(_ trailers: FieldLines, on stream: HTTP2Stream) -> Bool {
        let lines = ChunkedEncoding.forwardedTrailers(trailers, head: stream.messageFields)
        guard !lines.isEmpty else { return false }
        return trailers.bytes.withUnsafeBytes { bytes in
            var list = FieldList(about: lines.count, neverIndexed: [])
            for line in lines { list.add(line, of: bytes) }
            return list.withEntries { nghttp2_submit_trailer(raw, stream.id, $0, $1) } == 0
        }
    }
}
