// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP2
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy

/// Clients that use HTTP/2: what reaches the origin, and what the client sees of it.
@Suite struct HTTP2ClientTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    @Test func streamsAreExchangesOfTheirOwn() throws {
        let stage = try HTTP2Stage()
        let origins = try (0..<3).map { _ in try stage.origin() }
        for _ in origins { _ = try stage.open() }
        let requests = try origins.map { try $0.sent() }
        #expect(requests.allSatisfy { $0.hasPrefix("GET /x HTTP/1.1\r\nHost: a.example\r\n") }, "\(requests)")
        // In another order than the requests'.
        for origin in origins { try origin.receive(Self.ok) }
        try stage.exchange()
        #expect(stage.events.filter { $0.hasSuffix(" 200") }.count == 3)
        #expect(stage.events.filter { $0.hasSuffix(" complete") }.count == 3, "\(stage.events)")
        #expect(stage.received == [1: 2, 3: 2, 5: 2])
    }

    /// Before END_STREAM, content beyond its length can still make a request malformed (RFC 9113 §8.1.1).
    @Test(arguments: [("", "Content-Length: 0"), ("hello", "Content-Length: 5")])
    func theOriginGetsNoWholeRequestBeforeTheStreamEnds(content: String, length: String) throws {
        let stage = try HTTP2Stage()
        let origin = try stage.origin()
        let stream = try stage.open("POST", length, endsStream: false)
        if !content.isEmpty { try stage.send(content, on: stream) }
        let before = try origin.sent()
        #expect(content.isEmpty ? before.isEmpty : before.hasSuffix("\r\n\r\n"), "\(before)")
        stream.finish()
        try stage.exchange()
        let sent = before + (try origin.sent())
        #expect(sent.contains("\(length)\r\n") && sent.hasSuffix("\r\n\r\n\(content)"), "\(sent)")
        try origin.receive(Self.ok)
        try stage.exchange()
        #expect(stage.events == ["1 200", "1 end", "1 complete"])
    }

    @Test func contentWithoutALengthIsSentInChunks() throws {
        let stage = try HTTP2Stage()
        let origin = try stage.origin()
        let stream = try stage.open("POST", "Transfer-Encoding: chunked", endsStream: false)
        try stage.send("hello", on: stream)
        stream.finish()
        try stage.exchange()
        let sent = try origin.sent()
        #expect(sent.lowercased().contains("transfer-encoding: chunked\r\n"))
        #expect(sent.hasSuffix("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "\(sent)")
    }

    // MARK: The ends of streams

    /// curl 7.88 loses a response that RST_STREAM follows in the same read.
    @Test func anEarlyResponseIsNotResetAtOnce() throws {
        let stage = try HTTP2Stage()
        let origin = try stage.origin()
        let stream = try stage.open("POST", "Transfer-Encoding: chunked", endsStream: false)
        try stage.send("hello", on: stream)
        try origin.receive("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
        try stage.exchange()
        try stage.send("more", on: stream)
        #expect(stage.events == ["1 413", "1 end"])
        try stage.pass(seconds: 2)
        #expect(stage.events == ["1 413", "1 end"])
        try stage.pass(seconds: 3)
        #expect(stage.events == ["1 413", "1 end", "1 resetByPeer(NO_ERROR)"])
    }

    @Test func aResponseThatIsCutArrivesBeforeItsReset() throws {
        let stage = try HTTP2Stage()
        let origin = try stage.origin()
        _ = try stage.open()
        // In one read with the end, so that nothing has been written before it.
        let part = ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
        origin.pipeline.fireChannelRead(part)
        origin.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        try stage.exchange()
        #expect(stage.events == ["1 200", "1 resetByPeer(INTERNAL_ERROR)"])
        #expect(stage.received == [1: 4])
    }

    @Test func aStreamThatTheClientGivesUpClosesItsOrigin() throws {
        let stage = try HTTP2Stage()
        let (one, other) = (try stage.origin(), try stage.origin())
        let streams = [try stage.open(), try stage.open()]
        streams[0].reset(.cancel)
        try stage.exchange()
        stage.bench.loop.run()
        #expect([one, other].filter(\.isActive).count == 1)
    }

    @Test func aFailedConnectionEndsItsExchanges() throws {
        let stage = try HTTP2Stage()
        let origin = try stage.origin()
        _ = try stage.open()
        let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0] + [UInt8](repeating: 0, count: 8)
        try stage.send(raw: Array((0...TokenBucket.Terms.replies.capacity).map { _ in ping }.joined()))
        stage.bench.loop.run()
        #expect(stage.events.contains("GOAWAY ENHANCE_YOUR_CALM"), "\(stage.events)")
        #expect(!origin.isActive)
    }

    // MARK: Clients that do not read

    @Test func contentThatWaitsIsLimitedForTheConnection() throws {
        let stage = try HTTP2Stage(windowBytes: 16_384)
        stage.reads = false
        let origins = try (0..<20).map { _ in try stage.origin() }
        let streams = try origins.map { _ in try stage.open() }
        let piece = String(repeating: "x", count: 60_000)
        for origin in origins { try origin.receive("HTTP/1.1 200 OK\r\nContent-Length: 120000\r\n\r\n\(piece)") }
        for origin in origins { try origin.receive(piece) }
        try stage.exchange()
        #expect(stage.connection.link.queuedBytes < 20 * 100_000, "\(stage.connection.link.queuedBytes)")
        try stage.readAll(streams)
        #expect(stage.received.values.reduce(0, +) == 20 * 120_000)
        #expect(stage.events.filter { $0.hasSuffix(" complete") }.count == 20)
        #expect(stage.connection.link.queuedBytes == 0 && stage.connection.link.heldBack.isEmpty)
    }

    @Test func aSlowReaderDoesNotStopAnother() throws {
        let stage = try HTTP2Stage(windowBytes: 16_384)
        let origins = [try stage.origin(), try stage.origin()]
        let slow = try stage.open()
        stage.reads = false
        // The pool gives back the connection that was used last first.
        let piece = String(repeating: "x", count: 200_000)
        let first = try #require(try origins.first { try !$0.sent().isEmpty })
        try first.receive("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n\(piece)")
        try stage.exchange()
        stage.reads = true
        _ = try stage.open()
        let second = try #require(origins.first { $0 !== first })
        try second.receive("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n\(piece)")
        try stage.exchange()
        #expect(stage.received[1] == 16_384 && stage.received[3] == 200_000)
        try stage.readAll([slow])
        #expect(stage.received[1] == 200_000)
    }

    // MARK: The end of the connection

    @Test func aStopLetsStreamsEnd() throws {
        let stage = try HTTP2Stage()
        let origin = try stage.origin()
        _ = try stage.open()
        stage.bench.services.drain()
        try stage.exchange()
        #expect(stage.events == ["GOAWAY NO_ERROR"])
        try origin.receive(Self.ok)
        try stage.exchange()
        try stage.pass(seconds: 1)
        stage.bench.loop.run()
        #expect(stage.events.contains("1 complete") && !stage.channel.isActive, "\(stage.events)")
    }

    @Test func anIdleConnectionIsClosed() throws {
        let stage = try HTTP2Stage()
        try stage.pass(seconds: 75)
        #expect(stage.channel.isActive)
        try stage.pass(seconds: 76)
        #expect(stage.events.contains("GOAWAY NO_ERROR"))
    }
}
