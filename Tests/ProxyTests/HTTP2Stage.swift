// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignHTTP1
import CountersignHTTP2
import NIOCore
import NIOEmbedded

@testable import CountersignProxy

/// A client's HTTP/2 connection inside the tunnel to a site, and idle connections to that site, in memory. The client's
/// end is a session of our own.
final class HTTP2Stage: HTTP2SessionDelegate {
    static let site = Origin(scheme: .https, host: "a.example", port: 443)

    let bench: Bench
    let connection: HTTP2ClientConnection
    let channel: EmbeddedChannel
    /// What the client has received, such as `1 200`, `1 end` and `1 complete`.
    private(set) var events: [String] = []
    /// The octets of content that the client has received on each stream.
    private(set) var received: [Int32: Int] = [:]
    /// Whether the client returns what it has received to the streams' windows.
    var reads = true

    private var client: HTTP2Session?
    private var output = ByteBuffer()
    private var queued: [Int32: ByteBuffer] = [:]

    init(windowBytes: Int32 = 256 * 1024) throws {
        bench = try Bench()
        let session = ClientSession(process: ClientProcess(uid: Bench.uid), addresses: nil)
        let site = ClientSession.ConnectSite(origin: Self.site)
        session.role = .inside(site)
        channel = EmbeddedChannel(handler: Wire(isNarrow: false), loop: bench.loop)
        connection = HTTP2ClientConnection(
            bench.services, session, site, RequestAdmission(session: session, services: bench.services),
            DistrustWatch(), nil)
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        var settings = HTTP2Settings.client
        settings.streamWindowBytes = windowBytes
        client = HTTP2Session(.client, settings: settings, delegate: self, at: 0)
        try exchange()
    }

    /// An idle connection to the site, which the next request takes.
    func origin() throws -> EmbeddedChannel { try bench.idleConnection(to: Self.site) }

    // MARK: The client

    /// Opens a stream with a request. `fields` are lines without their ends, and decide about its content.
    func open(_ method: String = "GET", _ fields: String..., endsStream: Bool = true) throws -> HTTP2Stream {
        let lines = fields.map { $0 + "\r\n" }.joined()
        let head = try requestHead("\(method) /x HTTP/1.1\r\nHost: a.example\r\n\(lines)\r\n")
        guard
            let stream = client?.open(
                head, RequestForwarding(target: head.targetBytes, host: "a.example", framing: head.framing),
                endsStream: endsStream)
        else { throw Incomplete() }
        try exchange()
        return stream
    }

    func send(_ text: String, on stream: HTTP2Stream) throws {
        queued[stream.id, default: ByteBuffer()].writeString(text)
        stream.queueContent(text.utf8.count)
        try exchange()
    }

    /// Sends octets that a session of ours would not send.
    func send(raw octets: [UInt8]) throws {
        try channel.writeInbound(ByteBuffer(bytes: octets))
        try exchange()
    }

    /// A second has passed for the proxy, which sees `seconds` on its clock.
    func pass(seconds: UInt64) throws {
        connection.secondPassed(now: bench.services.now + seconds)
        try exchange()
    }

    /// Transfers octets until both ends wait.
    func exchange() throws {
        guard let client else { return }
        var isMore = true
        while isMore {
            isMore = false
            bench.loop.run()
            while client.drain() {}
            if output.readableBytes > 0 {
                let sent = output
                output = ByteBuffer()
                isMore = true
                if channel.isActive { try channel.writeInbound(sent) }
            }
            while let piece = try channel.readOutbound(as: ByteBuffer.self) {
                piece.withUnsafeReadableBytes { client.receive($0, at: 0) }
                isMore = true
            }
        }
    }

    /// The client returns the octets that it has received before.
    func readAll(_ streams: [HTTP2Stream]) throws {
        reads = true
        for stream in streams { stream.consume(received[stream.id] ?? 0) }
        try exchange()
    }

    // MARK: Its delegate

    func write(_ octets: UnsafeRawBufferPointer) { output.writeBytes(octets) }

    func writeContent(of stream: HTTP2Stream, byteCount: Int) {
        guard var waiting = queued[stream.id], let part = waiting.readSlice(length: byteCount) else { return }
        output.writeImmutableBuffer(part)
        queued[stream.id] = waiting
    }

    func becameWritable(_ stream: HTTP2Stream) {}

    func received(_ response: consuming ResponseHead, framing: BodyFraming, on stream: HTTP2Stream) {
        events.append("\(stream.id) \(response.status)")
    }

    func received(_ content: UnsafeRawBufferPointer, on stream: HTTP2Stream) {
        received[stream.id, default: 0] += content.count
        if reads { stream.consume(content.count) }
    }

    func receivedEnd(trailers: FieldLines?, on stream: HTTP2Stream) { events.append("\(stream.id) end") }

    func ended(_ stream: HTTP2Stream, _ end: HTTP2StreamEnd) { events.append("\(stream.id) \(end)") }

    func goingAway(lastStreamID: Int32, _ code: HTTP2ErrorCode) { events.append("GOAWAY \(code)") }
}
