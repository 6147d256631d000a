// SPDX-License-Identifier: Apache-2.0

import CountersignCNGHTTP2
import CountersignHTTP1

/// The requests of a client.
extension HTTP2Session {
    /// Streams that can be opened now: the origin's limit less those that are open (RFC 9113 §5.1.2).
    package var freeStreams: Int {
        guard role == .client, !isGoingAway, failure == nil, nghttp2_session_check_request_allowed(raw) != 0 else {
            return 0
        }
        let limit = nghttp2_session_get_remote_settings(raw, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        // Until SETTINGS arrive there is no limit, but origins refuse more than they will announce.
        return max(0, min(Int(limit), 100) - streams.count)
    }

    /// Sends the head of a request on a new stream; nil if the connection takes no further one. Unless `endsStream`,
    /// content may follow, and ``HTTP2Stream/finish(trailers:)`` does.
    ///
    /// Of `forwarding`, the host becomes `:authority`; only a `length` in its framing is sent, and END_STREAM marks the
    /// end in any case. Upgrade is left out. Authorization and cookies are never indexed (RFC 7541 §6.2.3), and neither
    /// are the fields that were added, nor a target that is secret.
    package func open(
        _ head: RequestHead, _ forwarding: borrowing RequestForwarding, endsStream: Bool
    ) -> HTTP2Stream? {
        precondition(role == .client, "a server sends no requests")
        guard freeStreams > 0 else { return nil }
        let next = nghttp2_session_get_next_stream_id(raw)
        guard next <= UInt32(Int32.max) else { return nil }
        let stream = HTTP2Stream(id: Int32(next), session: self)
        stream.method = head.method
        stream.messageFields = head.fields
        stream.hasHead = true
        stream.isFinished = endsStream
        stream.isReported = true

        var own = FieldScratch()
        own.append(about: forwarding.target.count) { head.writeTarget(forwarding, into: $0) }
        let path = 0..<own.count
        own.append(text: forwarding.host)
        let authority = path.upperBound..<own.count
        own.append(about: 512) { head.writeNewFields(forwarding, into: $0) }
        let id = head.fields.bytes.withUnsafeBytes { bytes in
            var list = FieldList(
                about: head.fields.lines.count + 12, neverIndexed: forwarding.added.map { Array($0.name.utf8) })
            list.add(":method", UnsafeRawBufferPointer(rebasing: bytes[0..<head.targetRange.lowerBound - 1]))
            list.add(":scheme", settings.scheme.octets)
            list.add(":authority", UnsafeRawBufferPointer(rebasing: own.octets[authority]))
            list.add(
                ":path", UnsafeRawBufferPointer(rebasing: own.octets[path]), isSecret: forwarding.hidesTarget)
            head.forEachKeptField(forwarding) { list.add($0, of: bytes) }
            list.add(lines: UnsafeRawBufferPointer(rebasing: own.octets[authority.upperBound...]))
            if head.fields.list(.te, contains: "trailers") { list.add("te", ("trailers" as StaticString).octets) }
            var provider = stream.content
            return list.withEntries { entries, count in
                endsStream
                    ? nghttp2_submit_request(raw, nil, entries, count, nil, nil)
                    : nghttp2_submit_request(raw, nil, entries, count, &provider, nil)
            }
        }
        guard id == stream.id else {
            stream.session = nil
            return nil
        }
        streams[id] = stream
        return stream
    }
}
