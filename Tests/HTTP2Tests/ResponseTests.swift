// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import Testing

/// The frames of responses to a client.
@Suite struct ResponseTests {
    let server = UnderTest(.server)

    private func stream(_ method: String = "GET") throws -> HTTP2Stream {
        server.send(.headers(1, Field.request(method)))
        return try #require(server.recorder.streams[1])
    }

    @Test func fieldsAreThoseOfTheOriginExceptConnectionFields() throws {
        let stream = try stream()
        let head = try responseHead(
            """
            HTTP/1.1 200 OK
            Date: today
            Connection: keep-alive, X-Hop
            Keep-Alive: timeout=5
            X-Hop: 1
            X-Mixed: Case
            Transfer-Encoding: chunked
            Trailer: X-Sum
            Upgrade: h2c
            Proxy-Authenticate: Basic
            Set-Cookie: a=1
            Set-Cookie: b=2
            """)
        stream.send(head, ResponseChanges(via: ViaField("1.1 countersign")), framing: .chunked, endsStream: false)
        server.recorder.send(Array("hello".utf8), on: stream)
        stream.finish()
        let frames = server.replies()
        #expect(frames.map(\.type) == [1, 0])
        #expect(
            server.fields(frames[0]).map(\.description) == [
                ":status: 200", "date: today", "x-mixed: Case", "set-cookie: a=1", "set-cookie: b=2",
                "via: 1.1 countersign",
            ])
        #expect(frames[0].flags == Frame.endHeaders)
        #expect(frames[1] == .data(1, "hello", ends: true))
        #expect(server.recorder.events.last == "1 ended complete")
    }

    @Test func secretsAreNeverIndexed() throws {
        let stream = try stream()
        stream.send(
            try responseHead("HTTP/1.1 200 OK\nSet-Cookie: a=1\nX-A: 1\nX-Token: 2"), ResponseChanges(), framing: .none,
            endsStream: true, neverIndexed: [Array("x-token".utf8)])
        let fields = server.fields(server.replies()[0])
        #expect(fields.filter(\.isNeverIndexed).map(\.description) == ["set-cookie: a=1", "x-token: 2"])
    }

    @Test func octetsBeyondASCIIAreKept() throws {
        let stream = try stream()
        let octets = Array("HTTP/1.1 200 OK\r\nX: ".utf8) + [0xE9, 0x80, 0xFF] + Array("\r\n\r\n".utf8)
        stream.send(try responseHead(octets: octets), ResponseChanges(), framing: .none, endsStream: true)
        #expect(server.fields(server.replies()[0]).last?.value == [0xE9, 0x80, 0xFF])
    }

    static let lengths: [(String, BodyFraming, String?)] = [
        ("HTTP/1.1 200 OK\nContent-Length: 5", .length(5), "5"),
        ("HTTP/1.1 200 OK", .length(5), "5"),
        ("HTTP/1.1 200 OK\nContent-Length: 5", .none, "5"),
        ("HTTP/1.1 204 No Content\nContent-Length: 5", .none, nil),
        ("HTTP/1.1 304 Not Modified\nContent-Length: 5", .none, "5"),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked", .chunked, nil),
        ("HTTP/1.1 200 OK", .untilClose, nil),
    ]

    @Test(arguments: lengths)
    func lengthIsSentIfItIsKnown(head: String, framing: BodyFraming, length: String?) throws {
        let stream = try stream("HEAD")
        stream.send(try responseHead(head), ResponseChanges(), framing: framing, endsStream: true)
        let frames = server.replies()
        #expect(frames.map(\.type) == [1])
        #expect(frames[0].flags == Frame.endHeaders | Frame.endStream)
        let fields = server.fields(frames[0]).filter { $0.name == Array("content-length".utf8) }
        #expect(fields.map { String(decoding: $0.value, as: UTF8.self) } == (length.map { [$0] } ?? []))
    }

    @Test func interimResponsesComeBeforeTheFinalOne() throws {
        let stream = try stream()
        stream.sendContinue()
        stream.sendInterim(try responseHead("HTTP/1.1 103 Early Hints\nLink: </a>\nConnection: x"), ResponseChanges())
        stream.sendInterim(try responseHead("HTTP/1.1 101 Switching\nUpgrade: a"), ResponseChanges())
        stream.send(try responseHead("HTTP/1.1 200 OK"), ResponseChanges(), framing: .length(0), endsStream: true)
        let frames = server.replies()
        #expect(
            frames.map { server.fields($0).map(\.description) } == [
                [":status: 100"], [":status: 103", "link: </a>"], [":status: 200", "content-length: 0"],
            ])
        #expect(frames.map(\.flags) == [4, 4, 5])
    }

    @Test func trailersEndTheStream() throws {
        let stream = try stream()
        stream.send(
            try responseHead("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nConnection: x-hop"), ResponseChanges(),
            framing: .chunked, endsStream: false)
        server.recorder.send(Array("hello".utf8), on: stream)
        let section = "Grpc-Status: 0\r\nX-Hop: 1\r\nContent-Type: a\r\nSet-Cookie: a\r\n\r\n"
        stream.finish(trailers: try FieldLines.trailers(Array(section.utf8), limits: .response, sentBy: .origin))
        let frames = server.replies()
        #expect(frames.map(\.type) == [1, 0, 1])
        #expect(frames.map(\.flags) == [4, 0, 5])
        _ = server.fields(frames[0])
        #expect(server.fields(frames[2]).map(\.description) == ["grpc-status: 0"])
    }

    @Test func trailersWithoutAnyFieldAreOnlyAnEnd() throws {
        let stream = try stream()
        stream.send(try responseHead("HTTP/1.1 200 OK"), ResponseChanges(), framing: .chunked, endsStream: false)
        stream.finish(
            trailers: try FieldLines.trailers(Array("Content-Type: a\r\n\r\n".utf8), limits: .response, sentBy: .origin)
        )
        #expect(server.replies().map(\.flags) == [Frame.endHeaders, Frame.endStream])
    }

    @Test func ownResponseHasNoConnectionFields() throws {
        let stream = try stream()
        stream.send(
            status: 502, fields: [("Proxy-Status", "countersign"), ("Connection", "close"), ("X-A", "a\r\nb: é")],
            contentLength: 3, endsStream: false)
        server.recorder.send(Array("no\n".utf8), on: stream)
        stream.finish()
        let frames = server.replies()
        #expect(
            server.fields(frames[0]).map(\.description) == [
                ":status: 502", "proxy-status: countersign", "x-a: a  b: ??", "content-length: 3",
            ])
        #expect(frames[1] == .data(1, "no\n", ends: true))
    }

    @Test func aDroppedRequestCanBeResetAfterTheResponse() throws {
        server.send(.headers(1, Field.request("POST"), ends: false))
        let stream = try #require(server.recorder.streams[1])
        stream.send(status: 413, fields: [], contentLength: 5, endsStream: false)
        stream.dropRequest()
        server.recorder.send(Array("large".utf8), on: stream)
        stream.finish()
        server.send(.data(1, "more"))
        #expect(server.replies().map(\.type) == [1, 0])
        stream.reset(.noError)
        let frames = server.replies()
        #expect(frames.map(\.type) == [3] && frames[0].number() == 0)
        #expect(server.recorder.content[1] == nil)
        #expect(server.recorder.events.last == "1 ended resetByUs(NO_ERROR)")
    }

    @Test func resetDropsQueuedContent() throws {
        let stream = try stream()
        stream.send(status: 200, fields: [], contentLength: nil, endsStream: false)
        server.recorder.send(Array("hello".utf8), on: stream)
        stream.reset(.internalError)
        #expect(server.replies().map(\.type) == [3], "the head as well")
        #expect(server.recorder.events.last == "1 ended resetByUs(INTERNAL_ERROR)")
        stream.finish()
        stream.queueContent(5)
        stream.consume(5)
        #expect(server.replies().isEmpty, "the stream has ended")
    }

    // MARK: Windows and writability

    @Test func contentWaitsForTheClientsWindow() throws {
        let stream = try stream()
        stream.send(status: 200, fields: [], contentLength: nil, endsStream: false)
        server.recorder.send([UInt8](repeating: 1, count: 70_000), on: stream)
        stream.finish()
        #expect(!stream.isWritable)
        let sent = server.replies().filter { $0.type == 0 }
        #expect(sent.reduce(0) { $0 + $1.payload.count } == 65_535)
        #expect(stream.isWritable)
        #expect(server.recorder.events.last == "1 writable")
        server.send(.windowUpdate(0, 100_000), .windowUpdate(1, 100_000))
        let rest = server.replies()
        #expect(rest.reduce(0) { $0 + $1.payload.count } == 70_000 - 65_535)
        #expect(rest.last?.flags == Frame.endStream)
    }

    @Test func stoppedStreamDoesNotStopTheOthers() throws {
        server.send(.settings([(4, 0)]), .windowUpdate(0, 1_000_000))
        server.send(.headers(1, Field.get), .headers(3, Field.get), .windowUpdate(3, 200_000))
        for id: Int32 in [1, 3] {
            let stream = try #require(server.recorder.streams[id])
            stream.send(status: 200, fields: [], contentLength: nil, endsStream: false)
            server.recorder.send([UInt8](repeating: 1, count: 200_000), on: stream)
            stream.finish()
        }
        let sent = server.replies().filter { $0.type == 0 }
        #expect(sent.allSatisfy { $0.stream == 3 })
        #expect(sent.reduce(0) { $0 + $1.payload.count } == 200_000)
    }

    @Test func drainStopsAtItsLimitAndGoesOn() throws {
        let stream = try stream()
        stream.send(status: 200, fields: [], contentLength: nil, endsStream: false)
        server.recorder.send([UInt8](repeating: 1, count: 60_000), on: stream)
        stream.finish()
        #expect(server.session.drain(atMost: 20_000))
        #expect(server.recorder.output.count < 20_000 + 16_384 + 9)
        while server.session.drain(atMost: 20_000) {}
        let frames = Frame.all(in: server.recorder.output)
        #expect(frames.filter { $0.type == 0 }.reduce(0) { $0 + $1.payload.count } == 60_000)
        #expect(frames.last?.flags == Frame.endStream)
    }
}
