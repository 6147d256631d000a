// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import CountersignUpstream
import NIOCore

/// What the session reports: requests, their content, and the end of streams.
extension HTTP2ClientConnection: HTTP2SessionDelegate {
    func write(_ octets: UnsafeRawBufferPointer) { link.append(octets) }

    func writeContent(of stream: HTTP2Stream, byteCount: Int) {
        streams[stream.id]?.writeContent(byteCount, to: link.output)
    }

    /// `write()` asks each stream that waits, because the others' content matters as well.
    func becameWritable(_ stream: HTTP2Stream) {}

    // MARK: Requests

    func received(_ request: consuming RequestHead, on stream: HTTP2Stream) {
        let client = HTTP2ClientStream(stream, of: self)
        streams[stream.id] = client
        if let refusal = admission.refusal(of: request) { return client.refuse(with: refusal, request.method) }
        do throws(RequestTarget.Failure) {
            let (route, path) = try admission.destination(of: request, inside: site)
            try admission.checkTrace(request, route)
            client.begin(
                ExchangeDriver(
                    client: client, session: session, services: services, head: request, route: route, path: path,
                    pin: site.pin))
        } catch {
            client.refuse(with: .init(status: error.status, detail: error.detail), request.method)
        }
    }

    func refused(_ refusal: HTTP2Refusal, on stream: HTTP2Stream) {
        let client = HTTP2ClientStream(stream, of: self)
        streams[stream.id] = client
        client.refuse(with: .init(status: refusal.statusHint, detail: refusal.detail), .get)
    }

    func received(_ content: UnsafeRawBufferPointer, on stream: HTTP2Stream) {
        guard let client = streams[stream.id], let piece = link.piece(of: content) else { return }
        client.received(piece)
    }

    func receivedEnd(trailers: FieldLines?, on stream: HTTP2Stream) {
        streams[stream.id]?.requestEnded(trailers: trailers)
    }

    func ended(_ stream: HTTP2Stream, _ end: HTTP2StreamEnd) {
        streams.removeValue(forKey: stream.id)?.ended()
        if streams.isEmpty { idleSince = services.now }
    }
}
