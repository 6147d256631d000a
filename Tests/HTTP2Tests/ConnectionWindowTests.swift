// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import Testing

/// Content of streams that are reset before anybody has read it. It must be returned to the connection's window, or
/// the connection stops for good after a mebibyte of it (RFC 9113 §5.4.2).
@Suite struct ConnectionWindowTests {
    private static let windowBytes = 1024 * 1024

    /// A peer that keeps count of what it may send on the connection.
    private final class Sender {
        let receiver: UnderTest
        private(set) var window = windowBytes

        init(to receiver: UnderTest) { self.receiver = receiver }

        /// Sends DATA with `padding` octets behind `count` of content. The frame arrives in two reads if `cut` is
        /// not nil, with `between` between them.
        func data(
            _ stream: UInt32, _ count: Int, padding: UInt8 = 0, ends: Bool = false, cut: Int? = nil,
            between: () -> Void = {}
        ) {
            var frame = Frame.data(stream, octets: [UInt8](repeating: 1, count: count), ends: ends)
            if padding > 0 {
                frame.flags |= Frame.padded
                frame.payload = [padding] + frame.payload + [UInt8](repeating: 0, count: Int(padding))
            }
            window -= frame.payload.count
            let octets = frame.octets
            receiver.send(Array(octets[..<(cut ?? octets.count)]))
            between()
            if let cut { receiver.send(Array(octets[cut...])) }
        }

        /// The frames that the receiver sends now, without those for the connection's window, which are counted.
        func replies() -> [Frame] {
            let frames = receiver.replies()
            for frame in frames where frame.type == 8 && frame.stream == 0 { window += Int(frame.number()) }
            return frames.filter { $0.type != 8 }
        }
    }

    private let ids = (0..<100).map { 2 * UInt32($0) + 1 }

    /// All streams have sent content that nobody has read when each is reset, and go on for a while.
    private func reset(_ streams: [HTTP2Stream], _ sender: Sender) {
        sender.receiver.recorder.consumes = false
        for (index, stream) in streams.enumerated() {
            sender.data(UInt32(stream.id), 9000 + index, padding: UInt8(index % 3))
            _ = sender.replies()
            requireWhole(sender)
        }
        for (index, stream) in streams.enumerated() {
            let id = UInt32(stream.id)
            // RST_STREAM is written when it has been queued inside a frame, before one, or between two.
            if index.isMultiple(of: 3) {
                sender.data(id, 4000, cut: 2000) { stream.reset(.cancel) }
            } else {
                stream.reset(.cancel)
            }
            sender.data(id, 5000, padding: 9)
            sender.data(id, 4000, cut: 2000) {
                #expect(sender.replies().contains { $0.type == 3 && $0.stream == id })
            }
            sender.data(id, 3000, ends: index.isMultiple(of: 5))
            _ = sender.replies()
            requireWhole(sender)
        }
        #expect(sender.receiver.session.openStreams == 0)
    }

    /// The receiver returns octets when it owes more than half the window.
    private func requireWhole(_ sender: Sender, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(sender.window >= Self.windowBytes / 2, sourceLocation: sourceLocation)
        #expect(sender.receiver.session.failure == nil, sourceLocation: sourceLocation)
    }

    @Test func downloadsThatAreResetReturnTheirContent() throws {
        let client = UnderTest(.client)
        let sender = Sender(to: client)
        let head = try requestHead("GET / HTTP/1.1\nHost: a.example")
        let streams = try ids.map { _ in
            let forwarding = RequestForwarding(target: head.targetBytes, host: "a.example", framing: .none)
            let stream = client.session.open(head, forwarding, endsStream: true)
            return try #require(stream)
        }
        _ = sender.replies()
        for id in ids { client.send(.headers(id, [Field(":status", "200")], ends: false)) }
        reset(streams, sender)
    }

    @Test func uploadsThatAreResetReturnTheirContent() throws {
        let server = UnderTest(.server)
        let sender = Sender(to: server)
        for id in ids { server.send(.headers(id, Field.request("POST"), ends: false)) }
        reset(try ids.map { try #require(server.recorder.streams[Int32($0)]) }, sender)
    }

    /// The sender gives its uploads up.
    @Test func uploadsThatTheClientResetsReturnTheirContent() {
        let server = UnderTest(.server)
        server.recorder.consumes = false
        let sender = Sender(to: server)
        for id in ids {
            server.send(.headers(id, Field.request("POST"), ends: false))
            for _ in 0..<3 { sender.data(id, 16_000) }
            server.send(.reset(id))
            _ = sender.replies()
            requireWhole(sender)
        }
    }
}
