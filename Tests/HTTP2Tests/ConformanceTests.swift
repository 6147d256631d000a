// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP2
import Testing

/// What a server must do about each fault of a client, by section of RFC 9113 and 7541.
@Suite struct ConformanceTests {
    private static let get = Frame.headers(1, Field.get)
    private static let post = Frame.headers(1, Field.request("POST"), ends: false)
    private static let half = Frame.headers(1, Field.get, isWhole: false)
    private static let block = Field.get.flatMap(\.literal)
    private static let onItself = Frame(1, flags: 0x25, on: 1, Frame.octets(1) + [15] + block)

    /// The connection ends with GOAWAY and this code.
    static let connectionErrors: [(String, [Frame], HTTP2ErrorCode)] = [
        // RFC 9113 §4
        (
            "4.2 HEADERS larger than a frame may be", [.headers(1, block: .init(repeating: 0, count: 16_385))],
            .frameSizeError
        ),
        (
            "4.2 DATA larger than a frame may be", [post, .data(1, octets: .init(repeating: 0, count: 16_385))],
            .frameSizeError
        ),
        ("4.3 invalid field block", [.headers(1, block: [0x40, 0x0A, 0x01])], .compressionError),
        ("4.3 PRIORITY inside a field block", [half, .priority(1)], .protocolError),
        ("4.3 HEADERS of another stream inside a field block", [half, .headers(3, Field.get)], .protocolError),
        // §5.1
        ("5.1 idle: DATA", [.data(1, "x", ends: true)], .protocolError),
        ("5.1 idle: RST_STREAM", [.reset(1)], .protocolError),
        ("5.1 idle: WINDOW_UPDATE", [.windowUpdate(1, 100)], .protocolError),
        ("5.1 idle: CONTINUATION", [.continuation(1, block)], .protocolError),
        ("5.1 half-closed: DATA", [get, .data(1, "x", ends: true)], .streamClosed),
        ("5.1 half-closed: HEADERS", [get, .headers(1, Field.get)], .streamClosed),
        ("5.1 half-closed: CONTINUATION", [get, .continuation(1, block)], .protocolError),
        ("5.1 closed by RST_STREAM: DATA", [get, .reset(1), .data(1, "x", ends: true)], .streamClosed),
        ("5.1 closed by RST_STREAM: HEADERS", [get, .reset(1), .headers(1, Field.get)], .streamClosed),
        ("5.1 closed by RST_STREAM: CONTINUATION", [get, .reset(1), .continuation(1, block)], .protocolError),
        ("5.1.1 even identifier", [.headers(2, Field.get)], .protocolError),
        ("5.1.1 lower identifier", [.headers(5, Field.get), .headers(3, Field.get)], .protocolError),
        ("5.5 unknown frame inside a field block", [half, Frame(0x16), .continuation(1, [])], .protocolError),
        // §6.1, §6.2
        ("6.1 DATA on stream 0", [.data(0, "x")], .protocolError),
        ("6.1 padding larger than DATA", [post, Frame(0, flags: 9, on: 1, [6] + Array("Test".utf8))], .protocolError),
        ("6.2 HEADERS on stream 0", [.headers(0, Field.get)], .protocolError),
        ("6.2 padding larger than HEADERS", [Frame(1, flags: 0xD, on: 1, [200] + block)], .protocolError),
        ("6.2 HEADERS shorter than its priority", [Frame(1, flags: 0x25, on: 1, [0, 0])], .frameSizeError),
        // §6.3, §6.4
        ("6.3 PRIORITY on stream 0", [.priority(0)], .protocolError),
        ("6.3 PRIORITY of 4 octets", [get, Frame(2, on: 1, [0, 0, 0, 0])], .frameSizeError),
        ("6.4 RST_STREAM on stream 0", [.reset(0)], .protocolError),
        ("6.4 RST_STREAM of 3 octets", [get, Frame(3, on: 1, [0, 0, 0])], .frameSizeError),
        // §6.5
        ("6.5 acknowledgement with content", [Frame(4, flags: 1, [0])], .frameSizeError),
        ("6.5 SETTINGS on a stream", [Frame(4, on: 1, [0, 3, 0, 0, 0, 100])], .protocolError),
        ("6.5 SETTINGS of 3 octets", [Frame(4, [0, 3, 0])], .frameSizeError),
        ("6.5.2 ENABLE_PUSH of 2", [.settings([(2, 2)])], .protocolError),
        ("6.5.2 INITIAL_WINDOW_SIZE beyond the maximum", [.settings([(4, 0x8000_0000)])], .flowControlError),
        ("6.5.2 MAX_FRAME_SIZE below the minimum", [.settings([(5, 16_383)])], .protocolError),
        ("6.5.2 MAX_FRAME_SIZE beyond the maximum", [.settings([(5, 16_777_216)])], .protocolError),
        ("8441 3 ENABLE_CONNECT_PROTOCOL of 2", [.settings([(8, 2)])], .protocolError),
        // §6.6 to §6.10
        ("6.6 PUSH_PROMISE of a client", [get, Frame(5, flags: 4, on: 1, Frame.octets(2) + block)], .protocolError),
        ("6.7 PING on a stream", [Frame(6, on: 1, .init(repeating: 0, count: 8))], .protocolError),
        ("6.7 PING of 6 octets", [Frame(6, .init(repeating: 0, count: 6))], .frameSizeError),
        ("6.8 GOAWAY on a stream", [Frame(7, on: 1, .init(repeating: 0, count: 8))], .protocolError),
        ("6.8 GOAWAY of 7 octets", [Frame(7, .init(repeating: 0, count: 7))], .frameSizeError),
        ("6.9 WINDOW_UPDATE of 0", [.windowUpdate(0, 0)], .protocolError),
        ("6.9 WINDOW_UPDATE of 3 octets", [Frame(8, [0, 0, 1])], .frameSizeError),
        ("6.9.1 window beyond 2^31 - 1", [.windowUpdate(0, 0x7FFF_FFFF)], .flowControlError),
        ("6.10 DATA after CONTINUATION", [half, .continuation(1, [], isWhole: false), .data(1, "x")], .protocolError),
        ("6.10 CONTINUATION on stream 0", [half, .continuation(0, [])], .protocolError),
        (
            "6.10 CONTINUATION after the block",
            [.headers(1, Field.request("POST"), ends: false), .continuation(1, [])], .protocolError
        ),
        (
            "6.10 CONTINUATION after CONTINUATION that ended", [half, .continuation(1, []), .continuation(1, [])],
            .protocolError
        ),
        ("6.10 CONTINUATION after DATA", [post, .data(1, "x"), .continuation(1, [])], .protocolError),
        // RFC 7541
        ("hpack 2.3.3 index beyond the tables", [.headers(1, block: block + [0xFF, 0])], .compressionError),
        ("hpack 4.2 size of the table at the end of a block", [.headers(1, block: block + [0x20])], .compressionError),
        (
            "hpack 5.1 integer without an end",
            [.headers(1, block: block + [0xFF] + .init(repeating: 0xFF, count: 12))], .compressionError
        ),
        (
            "hpack 5.2 padding of 8 bits",
            [.headers(1, block: block + [0, 0x85, 0xF2, 0xB2, 0x4A, 0x84, 0xFF, 0x81, 0xFF])], .compressionError
        ),
        (
            "hpack 5.2 padding with zeros",
            [.headers(1, block: block + [0, 0x85, 0xF2, 0xB2, 0x4A, 0x84, 0x80, 0x81, 0x1F])], .compressionError
        ),
        (
            "hpack 5.2 the end-of-string symbol",
            [.headers(1, block: block + [0, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 0x81, 0x1F])], .compressionError
        ),
        ("hpack 5.2 string beyond the block", [.headers(1, block: block + [0, 0x7F, 0x61])], .compressionError),
        ("hpack 6.1 index 0", [.headers(1, block: block + [0x80])], .compressionError),
        (
            "hpack 6.3 size of the table beyond the limit", [.headers(1, block: [0x3F, 0xE2, 0x1F] + block)],
            .compressionError
        ),
    ]

    @Test(arguments: connectionErrors)
    func connectionError(_ name: String, _ frames: [Frame], _ code: HTTP2ErrorCode) {
        let server = UnderTest(.server)
        server.send(frames.flatMap(\.octets))
        #expect(server.goAwayCode() == code)
        #expect(server.session.isOver)
        server.send(.headers(999, Field.get))
        #expect(server.recorder.requests[999] == nil)
    }

    /// The stream is reset, or refused by an error of the connection.
    static let streamErrors: [(String, [Frame], HTTP2ErrorCode)] = [
        (
            "5.1.2 more streams than permitted", (0...100).map { .headers(2 * UInt32($0) + 1, Field.get) },
            .refusedStream
        ),
        ("5.3.1 HEADERS that depend on themselves", [onItself], .protocolError),
        ("6.3 PRIORITY that depends on itself", [get, .priority(1, on: 1)], .protocolError),
        ("8.1.1 malformed trailers", [post, .headers(1, [Field(":path", "/")])], .protocolError),
        ("6.9.1 stream window beyond 2^31 - 1", [get, .windowUpdate(1, 0x7FFF_FFFF)], .flowControlError),
        // The section demands an error of the connection; nghttp2 resets the streams that are concerned.
        (
            "6.9.2 stream window beyond 2^31 - 1", [get, .windowUpdate(1, 0x7000_0000), .settings([(4, 0x7FFF_FFFF)])],
            .flowControlError
        ),
    ]

    @Test(arguments: streamErrors)
    func streamError(_ name: String, _ frames: [Frame], _ code: HTTP2ErrorCode) {
        let server = UnderTest(.server)
        server.send(frames.flatMap(\.octets))
        let codes = server.replies().filter { $0.type == 3 || $0.type == 7 }.map { $0.number(at: $0.type == 7 ? 4 : 0) }
        #expect(codes == [code.rawValue])
    }

    /// The request on stream 1 is served.
    static let harmless: [(String, [Frame])] = [
        ("4.1 unknown frame", [Frame(0x16, .init(repeating: 0, count: 8)), get]),
        (
            "4.2 DATA as large as a frame may be",
            [post, .data(1, octets: .init(repeating: 0, count: 16_384), ends: true)]
        ),
        ("4.1 unknown flags", [Frame(6, flags: 0x16, .init(repeating: 0, count: 8)), get]),
        ("4.1 reserved bit", [Frame(6, on: 0x8000_0000, .init(repeating: 0, count: 8)), get]),
        ("5.1 PRIORITY on an idle stream", [.priority(1), get]),
        ("6.3 PRIORITY of weight 256", [.priority(1, weight: 255), get]),
        ("6.3 PRIORITY that is exclusive", [.priority(1, on: 0x8000_0000), get]),
        ("6.3 PRIORITY that depends on a stream", [.priority(3, on: 1), get]),
        ("6.2 priority in HEADERS", [Frame(1, flags: 0x25, on: 1, [0, 0, 0, 0, 15] + block)]),
        ("6.2 padding in HEADERS", [Frame(1, flags: 0xD, on: 1, [2] + block + [0, 0])]),
        ("6.5.2 unknown setting", [.settings([(0xFF, 1)]), get]),
        ("6.8 GOAWAY with an unknown code", [get, .goAway(0xFF)]),
        ("6.10 two CONTINUATION", [half, .continuation(1, [], isWhole: false), .continuation(1, [])]),
        (
            "6.10 a field in two frames",
            [
                .headers(1, block: Array(block.prefix(20)), isWhole: false),
                .continuation(1, Array(block.dropFirst(20))),
            ]
        ),
        ("7 unknown code in RST_STREAM", [.headers(3, Field.get), .reset(3, 0xFF), .headers(5, Field.get)]),
        (
            "hpack 2.3 indexed fields",
            [
                .headers(1, block: [0x82, 0x87, 0x84] + Field(":authority", "a.example").indexedLiteral)
            ]
        ),
        ("hpack 4.2 size of the table at the start of a block", [.headers(1, block: [0x20] + block)]),
        ("hpack 5.2 Huffman code", [.headers(1, block: block + [0, 0x85, 0xF2, 0xB2, 0x4A, 0x84, 0xFF, 0x81, 0x1F])]),
        (
            "hpack 6.2 literals of each kind",
            [
                .headers(
                    1, block: block + Field("x", "1").indexedLiteral + [0x10] + Field("y", "1").literal.dropFirst())
            ]
        ),
    ]

    @Test(arguments: harmless)
    func requestIsServed(_ name: String, _ frames: [Frame]) {
        let server = UnderTest(.server)
        server.send(frames.flatMap(\.octets))
        #expect(!server.recorder.requests.isEmpty)
        #expect(server.session.failure == nil)
        #expect(!server.replies().contains { $0.type == 7 || $0.type == 3 })
    }

    @Test func clientWithTooManyStreamsGoesOn() throws {
        let server = UnderTest(.server)
        server.send((0..<100).flatMap { Frame.headers(2 * UInt32($0) + 1, Field.get).octets })
        server.send(.headers(201, block: Field.get.flatMap(\.indexedLiteral)))
        #expect(server.replies() == [.reset(201, HTTP2ErrorCode.refusedStream.rawValue)])
        #expect(server.recorder.requests[201] == nil)
        let first = try #require(server.recorder.streams[1])
        first.send(status: 204, fields: [], contentLength: nil, endsStream: true)
        _ = server.replies()
        // The refused block has filled the table.
        server.send(.headers(203, block: [0xC1, 0xC0, 0xBF, 0xBE]))
        #expect(server.recorder.requests[203] != nil)
        #expect(server.session.failure == nil)
    }

    @Test func prefaceIsRequired() {
        for preface in ["INVALID CONNECTION PREFACE\r\n\r\n", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"] {
            let server = UnderTest(.server, hasStarted: false)
            server.send(Array(preface.utf8))
            #expect(server.session.failure == .protocolError)
            _ = server.replies()
            #expect(server.session.isOver)
        }
    }

    @Test func prefaceIsFollowedBySettings() {
        let server = UnderTest(.server, hasStarted: false)
        server.send(Frame.preface + Frame.ping().octets)
        #expect(server.goAwayCode() == .protocolError)
    }

    @Test func settingsAreAnnouncedAndAcknowledged() throws {
        let server = UnderTest(.server, hasStarted: false)
        server.send(Frame.preface + Frame.settings([(3, 100)]).octets)
        let frames = server.replies()
        #expect(frames.map(\.type) == [4, 4, 8])
        let entries = stride(from: 0, to: frames[0].payload.count, by: 6).map { start in
            "\(frames[0].payload[start + 1]): \(frames[0].number(at: start + 2))"
        }
        #expect(entries == ["4: 262144", "6: 65536", "3: 100"])
        #expect(frames[1] == .settingsAck)
        #expect(frames[2] == .windowUpdate(0, 1024 * 1024 - 65_535))
    }

    @Test func pingIsAnsweredUnlessItIsAnAnswer() {
        let server = UnderTest(.server)
        server.send(.ping())
        #expect(server.replies() == [.ping(isAck: true)])
        server.send(.ping(isAck: true))
        #expect(server.replies().isEmpty)
    }
}
