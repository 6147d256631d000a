// SPDX-License-Identifier: Apache-2.0

import CountersignCNGHTTP2
import CountersignHTTP1
import CountersignHTTP2

/// Records what a session reports as lines of text, such as `1 request GET /` and `1 ended complete`.
final class Recorder: HTTP2SessionDelegate {
    var output: [UInt8] = []
    var events: [String] = []
    var streams: [Int32: HTTP2Stream] = [:]
    var requests: [Int32: RequestHead] = [:]
    var responses: [Int32: ResponseHead] = [:]
    var content: [Int32: [UInt8]] = [:]
    var trailers: [Int32: FieldLines] = [:]
    /// Content to be sent that was not collected yet.
    var queued: [Int32: [UInt8]] = [:]
    /// Received content is returned to its sender at once.
    var consumes = true
    var onRequest: (HTTP2Stream) -> Void = { _ in }
    var onRefusal: (HTTP2Stream) -> Void = { _ in }
    var onEnd: (HTTP2Stream) -> Void = { _ in }

    func write(_ octets: UnsafeRawBufferPointer) { output.append(contentsOf: octets) }

    func writeContent(of stream: HTTP2Stream, byteCount: Int) {
        output.append(contentsOf: queued[stream.id, default: []].prefix(byteCount))
        queued[stream.id]?.removeFirst(byteCount)
    }

    func becameWritable(_ stream: HTTP2Stream) { events.append("\(stream.id) writable") }

    func received(_ request: consuming RequestHead, on stream: HTTP2Stream) {
        events.append("\(stream.id) request \(request.methodText) \(request.target)")
        requests[stream.id] = request
        streams[stream.id] = stream
        onRequest(stream)
    }

    func refused(_ refusal: HTTP2Refusal, on stream: HTTP2Stream) {
        events.append("\(stream.id) refused \(refusal.statusHint) \(refusal.detail)")
        onRefusal(stream)
    }

    func received(_ response: consuming ResponseHead, framing: BodyFraming, on stream: HTTP2Stream) {
        events.append("\(stream.id) response \(response.status) \(framing)")
        responses[stream.id] = response
    }

    func received(_ octets: UnsafeRawBufferPointer, on stream: HTTP2Stream) {
        content[stream.id, default: []] += octets
        if consumes { stream.consume(octets.count) }
    }

    func receivedEnd(trailers: FieldLines?, on stream: HTTP2Stream) {
        let text = content[stream.id].map { " after \($0.count)" } ?? ""
        events.append("\(stream.id) end\(text)")
        self.trailers[stream.id] = trailers
        onEnd(stream)
    }

    func ended(_ stream: HTTP2Stream, _ end: HTTP2StreamEnd) { events.append("\(stream.id) ended \(end)") }

    func goingAway(lastStreamID: Int32, _ code: HTTP2ErrorCode) { events.append("goaway \(lastStreamID) \(code)") }

    func send(_ octets: [UInt8], on stream: HTTP2Stream) {
        queued[stream.id, default: []] += octets
        stream.queueContent(octets.count)
    }
}

/// A session whose peer is a test that sends frames of its own making.
final class UnderTest {
    let recorder = Recorder()
    let session: HTTP2Session
    /// Nanoseconds.
    var now: UInt64 = 1_000_000_000
    private var inflater = Inflater()

    /// A server that has received the preface, or a client that has received SETTINGS.
    init(_ role: HTTP2Session.Role, _ settings: HTTP2Settings? = nil, hasStarted: Bool = true) {
        session = HTTP2Session(
            role, settings: settings ?? (role == .server ? .server : .client), delegate: recorder, at: now)
        guard hasStarted else { return }
        send((role == .server ? Frame.preface : []) + Frame.settings().octets + Frame.settingsAck.octets)
        _ = replies()
    }

    func send(_ octets: [UInt8]) { octets.withUnsafeBytes { session.receive($0, at: now) } }

    func send(_ frames: Frame...) { send(frames.flatMap(\.octets)) }

    /// What the session sends now, without a client's preface.
    func replies() -> [Frame] {
        while session.drain() {}
        defer { recorder.output = [] }
        let octets = recorder.output
        return Frame.all(in: Array(octets.starts(with: Frame.preface) ? octets.dropFirst(24) : octets[...]))
    }

    /// The fields of a HEADERS frame that the session sent. Every such frame must be read, in order.
    func fields(_ frame: Frame) -> [Field] { inflater.fields(frame.payload) }

    /// The code of the GOAWAY among what the session sends now; nil without one.
    func goAwayCode() -> HTTP2ErrorCode? {
        replies().last { $0.type == 7 }.map { HTTP2ErrorCode(rawValue: $0.number(at: 4)) }
    }
}

/// Two sessions that are each other's peers, with all they send delivered in pieces.
final class Pair {
    let client: UnderTest
    let server: UnderTest
    /// The octets delivered at a time.
    var step = Int.max

    init(server settings: HTTP2Settings = .server) {
        client = UnderTest(.client, hasStarted: false)
        server = UnderTest(.server, settings, hasStarted: false)
        run()
    }

    /// Delivers until nothing is left to deliver.
    func run() {
        while deliver(from: client, to: server) || deliver(from: server, to: client) {}
    }

    private func deliver(from sender: UnderTest, to receiver: UnderTest) -> Bool {
        while sender.session.drain() {}
        let octets = sender.recorder.output
        sender.recorder.output = []
        var start = 0
        while start < octets.count {
            let end = octets.count - start < step ? octets.count : start + step
            receiver.send(Array(octets[start..<end]))
            start = end
        }
        return !octets.isEmpty
    }

    func open(
        _ text: String, _ forwarding: consuming RequestForwarding? = nil, endsStream: Bool = true
    ) throws -> HTTP2Stream {
        let head = try requestHead(text)
        let stream =
            if let forwarding = forwarding.take() {
                client.session.open(head, forwarding, endsStream: endsStream)
            } else {
                client.session.open(
                    head,
                    RequestForwarding(target: head.targetBytes, host: head.host ?? "", framing: head.framing),
                    endsStream: endsStream)
            }
        guard let stream else { throw Unexpected(what: "no stream") }
        client.recorder.streams[stream.id] = stream
        return stream
    }
}

struct Unexpected: Error { let what: String }

/// The head of an HTTP/1 request; line ends are `\n`.
func requestHead(_ text: String) throws -> RequestHead {
    let octets = Array((text.replacing("\n", with: "\r\n") + "\r\n\r\n").utf8)
    guard let parsed = try RequestHead.parse(octets.span.bytes) else { throw Unexpected(what: "incomplete head") }
    return parsed.head
}

/// The head of an HTTP/1 response; line ends are `\n`.
func responseHead(_ text: String) throws -> ResponseHead {
    try responseHead(octets: Array((text.replacing("\n", with: "\r\n") + "\r\n\r\n").utf8))
}

func responseHead(octets: [UInt8]) throws -> ResponseHead {
    guard let parsed = try ResponseHead.parse(octets.span.bytes) else { throw Unexpected(what: "incomplete head") }
    return parsed.head
}

/// The decoder of HPACK of nghttp2.
final class Inflater {
    private let raw: OpaquePointer

    init() {
        var created: OpaquePointer?
        guard nghttp2_hd_inflate_new(&created) == 0, let created else { preconditionFailure("no memory") }
        raw = created
    }

    deinit { nghttp2_hd_inflate_del(raw) }

    func fields(_ block: [UInt8]) -> [Field] {
        var fields: [Field] = []
        var rest = block[...]
        while true {
            var entry = nghttp2_nv()
            var flags: Int32 = 0
            let used = rest.withUnsafeBufferPointer {
                nghttp2_hd_inflate_hd2(raw, &entry, &flags, $0.baseAddress, $0.count, 1)
            }
            guard used >= 0 else { return fields }
            rest = rest.dropFirst(used)
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                fields.append(
                    Field(
                        name: Array(UnsafeBufferPointer(start: entry.name, count: entry.namelen)),
                        value: Array(UnsafeBufferPointer(start: entry.value, count: entry.valuelen)),
                        isNeverIndexed: entry.flags & UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) != 0))
            }
            if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 { break }
            if rest.isEmpty, flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) == 0 { break }
        }
        nghttp2_hd_inflate_end_headers(raw)
        return fields
    }
}
