// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import Testing

/// Streams that are half-closed or closed, and the windows of streams that are open (RFC 9113 §5.1, §5.2 and §6.9).
@Suite struct StreamStateTests {
    private let get = Frame.headers(1, Field.get)
    private let post = Frame.headers(1, Field.request("POST"), ends: false)

    /// What arrives for a stream whose both sides have ended ends the connection, but for PRIORITY and what may have
    /// been on its way (RFC 9113 §5.1).
    @Test(arguments: [
        (Frame.data(1, "x", ends: true), HTTP2ErrorCode.streamClosed), (.headers(1, Field.get), .streamClosed),
        (.continuation(1, Field.get.flatMap(\.literal)), .protocolError),
    ])
    func closedStreamGetsNothingMore(_ frame: Frame, _ code: HTTP2ErrorCode) throws {
        let server = UnderTest(.server)
        server.recorder.onRequest = { $0.send(status: 204, fields: [], contentLength: nil, endsStream: true) }
        server.send(get)
        #expect(server.replies().map(\.type) == [1])
        for harmless in [Frame.priority(1), .windowUpdate(1, 1), .reset(1)] { server.send(harmless) }
        #expect(server.replies().isEmpty && server.session.failure == nil)
        server.send(frame)
        #expect(server.goAwayCode() == code)
    }

    /// A stream that waits for its window takes the frames that RFC 9113 §5.1 allows it.
    @Test(arguments: [Frame.windowUpdate(1, 1), .priority(1)]) func halfClosedStreamGoesOn(_ frame: Frame) throws {
        let server = UnderTest(.server)
        server.send(.settings([(4, 0)]), get, frame)
        let stream = try #require(server.recorder.streams[1])
        stream.send(status: 200, fields: [], contentLength: nil, endsStream: false)
        server.recorder.send(Array("hello".utf8), on: stream)
        let sent = server.replies().filter { $0.type == 0 }
        #expect(sent == (frame.type == 8 ? [.data(1, "h")] : []))
        server.send(.windowUpdate(1, 10))
        #expect(server.replies() == [.data(1, frame.type == 8 ? "ello" : "hello")])
    }

    @Test func lastOfSeveralValuesOfASettingCounts() throws {
        let server = UnderTest(.server)
        server.send(.settings([(4, 100), (4, 1)]), get)
        let stream = try #require(server.recorder.streams[1])
        stream.send(status: 200, fields: [], contentLength: nil, endsStream: false)
        server.recorder.send(Array("hello".utf8), on: stream)
        #expect(server.replies().filter { $0.type == 0 } == [.data(1, "h")])
    }

    @Test func clientThatIsGoingAwayGetsItsResponse() throws {
        let server = UnderTest(.server)
        server.send(get, .goAway())
        #expect(!server.session.isOver)
        let stream = try #require(server.recorder.streams[1])
        stream.send(status: 204, fields: [], contentLength: nil, endsStream: true)
        #expect(server.replies().map(\.type) == [1])
        #expect(server.session.isOver)
    }

    // MARK: Windows

    /// RFC 9113 §6.9: an error of the stream. The frame is cut wherever a read may cut it.
    @Test(arguments: 1...13, [UInt32(0), 0x8000_0000])
    func incrementOf0EndsItsStreamOnly(after count: Int, increment: UInt32) throws {
        let server = UnderTest(.server)
        server.send(post, .headers(3, Field.request("POST"), ends: false))
        let octets = Frame.windowUpdate(1, increment).octets + Frame.ping().octets
        server.send(Array(octets[..<count]))
        server.send(Array(octets[count...]))
        // The reply to a PING overtakes.
        #expect(
            server.replies().sorted { $0.type < $1.type }
                == [.reset(1, HTTP2ErrorCode.protocolError.rawValue), .ping(isAck: true)])
        #expect(server.recorder.events.last == "1 ended resetByUs(PROTOCOL_ERROR)")
        server.send(.data(3, "x", ends: true))
        #expect(server.recorder.content[3] == Array("x".utf8) && server.session.failure == nil)
    }

    @Test func incrementOf0OfAFullWindowEndsItsStreamOnly() throws {
        let server = UnderTest(.server)
        server.send(post, .windowUpdate(1, 0x7FFF_0000), .windowUpdate(1, 0), .windowUpdate(1, 0), .ping())
        // The reply to a PING overtakes.
        #expect(
            server.replies().sorted { $0.type < $1.type }
                == [.reset(1, HTTP2ErrorCode.protocolError.rawValue), .ping(isAck: true)])
    }

    @Test(arguments: [UInt32(1), 256, 65_536, 0x0100_0000, 0x8000_0001]) func incrementAbove0IsNone(_ number: UInt32) {
        let server = UnderTest(.server)
        for octet in (post.octets + Frame.windowUpdate(1, number).octets + Frame.ping().octets) {
            server.send([octet])
        }
        #expect(server.replies() == [.ping(isAck: true)])
    }

    /// An origin's mistake costs one request and not the connection.
    @Test func originsIncrementOf0EndsItsStreamOnly() throws {
        let client = UnderTest(.client)
        let head = try requestHead("GET / HTTP/1.1\nHost: a.example")
        for _ in 0..<2 {
            let forwarding = RequestForwarding(target: head.targetBytes, host: "a.example", framing: .none)
            let stream = client.session.open(head, forwarding, endsStream: true)
            #expect(stream != nil)
        }
        _ = client.replies()
        client.send(.windowUpdate(1, 0), .headers(3, [Field(":status", "204")]))
        #expect(client.replies() == [.reset(1, HTTP2ErrorCode.protocolError.rawValue)])
        #expect(client.recorder.events.contains("3 ended complete") && client.session.failure == nil)
    }

    @Test func windowOfOneOctetSendsOneOctet() throws {
        let server = UnderTest(.server)
        server.recorder.onRequest = { stream in
            stream.send(status: 200, fields: [], contentLength: nil, endsStream: false)
        }
        server.send(.settings([(4, 1)]), get)
        server.recorder.send(Array("hello".utf8), on: try #require(server.recorder.streams[1]))
        #expect(server.replies().filter { $0.type == 0 } == [.data(1, "h")])
        server.send(.settings([(4, 2)]))
        #expect(server.replies().filter { $0.type == 0 } == [.data(1, "e")])
    }

    @Test func windowMayBecomeNegative() throws {
        let server = UnderTest(.server)
        server.send(.settings([(4, 3)]), get)
        let stream = try #require(server.recorder.streams[1])
        stream.send(status: 200, fields: [], contentLength: nil, endsStream: false)
        server.recorder.send(Array("hello".utf8), on: stream)
        #expect(server.replies().last == .data(1, "hel"))
        server.send(.settings([(4, 2)]), .windowUpdate(1, 1))
        #expect(!server.replies().contains { $0.type == 0 })
        server.send(.windowUpdate(1, 1))
        #expect(server.replies() == [.data(1, "l")])
    }

    @Test func clientThatSendsMoreThanItsWindowIsRefused() {
        let server = UnderTest(.server)
        server.recorder.consumes = false
        server.send(post)
        for _ in 0..<17 { server.send(.data(1, octets: .init(repeating: 1, count: 16_384))) }
        let codes = server.replies().filter { $0.type == 3 || $0.type == 7 }.map { $0.number(at: $0.type == 7 ? 4 : 0) }
        #expect(codes == [HTTP2ErrorCode.flowControlError.rawValue])
        // nghttp2 reports the frame that exceeds the window before it resets the stream.
        #expect((server.recorder.content[1]?.count ?? 0) <= 256 * 1024 + 16_384)
    }
}
