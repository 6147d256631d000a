// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import NIOCore

/// What the session reports, passed on to the lease of each stream.
extension HTTP2OriginConnection: HTTP2SessionDelegate {
    package func write(_ octets: UnsafeRawBufferPointer) { link.append(octets) }

    package func writeContent(of stream: HTTP2Stream, byteCount: Int) {
        streams[stream.id]?.writeContent(byteCount, to: link.output)
    }

    /// `write()` asks each stream that waits, because the others' content matters as well.
    package func becameWritable(_ stream: HTTP2Stream) {}

    package func received(_ response: consuming ResponseHead, framing: BodyFraming, on stream: HTTP2Stream) {
        streams[stream.id]?.received(response, framing)
    }

    package func received(_ content: UnsafeRawBufferPointer, on stream: HTTP2Stream) {
        guard let lease = streams[stream.id], let piece = link.piece(of: content) else {
            return stream.consume(content.count)
        }
        lease.received(piece)
    }

    package func receivedEnd(trailers: FieldLines?, on stream: HTTP2Stream) {
        streams[stream.id]?.receivedEnd(trailers: trailers)
    }

    package func ended(_ stream: HTTP2Stream, _ end: HTTP2StreamEnd) {
        streams.removeValue(forKey: stream.id)?.ended(stream, end)
    }

    package func goingAway(lastStreamID: Int32, _ code: HTTP2ErrorCode) {
        switch code {
        case .noError:
            isGoingAway(nil)
        case .http11Required, .inadequateSecurity:
            isGoingAway(UpstreamError(.needsHTTP1, "\(place): ended the HTTP/2 connection with \(code)"))
        default:
            isGoingAway(UpstreamError(.closedBeforeResponse, "\(place): ended the HTTP/2 connection with \(code)"))
        }
    }

    package func settingsChanged() { settle() }
}
