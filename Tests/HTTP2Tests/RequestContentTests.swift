// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import Testing

/// The content of requests, its framing and its end (RFC 9113 §8.1).
@Suite struct RequestContentTests {
    static let framings: [(String?, Bool, BodyFraming)] = [
        (nil, true, .none), ("0", true, .length(0)), ("5", false, .length(5)), (nil, false, .chunked),
    ]

    @Test(arguments: framings)
    func framingIsThatOfEndStreamAndContentLength(length: String?, ends: Bool, framing: BodyFraming) throws {
        let server = UnderTest(.server)
        let more = length.map { [Field("content-length", $0)] } ?? []
        server.send(.headers(1, Field.request("POST", "/", more), ends: ends))
        let request = try #require(server.recorder.requests[1])
        #expect(request.framing == framing)
        #expect(!request.fields.contains(.transferEncoding))
        #expect(server.recorder.events.contains("1 end") == ends)
    }

    @Test func markedEndBecomesChunkedInHTTP1() throws {
        let server = UnderTest(.server)
        server.send(.headers(1, Field.request("POST"), ends: false))
        let request = try #require(server.recorder.requests[1])
        let forwarded = request.forwarded(
            RequestForwarding(target: request.targetBytes, host: "a.example", framing: request.framing))
        #expect(
            String(decoding: forwarded, as: UTF8.self)
                == "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n")
    }

    @Test func contentAndItsEndAreReported() {
        let server = UnderTest(.server)
        server.send(.headers(1, Field.request("POST"), ends: false), .data(1, "hel"), .data(1, "lo", ends: true))
        #expect(server.recorder.events == ["1 request POST /", "1 end after 5"])
        #expect(server.recorder.content[1] == Array("hello".utf8))
    }

    @Test func emptyDataEndsContent() {
        let server = UnderTest(.server)
        server.send(.headers(1, Field.request("POST"), ends: false), .data(1, "hello"), .data(1, "", ends: true))
        #expect(server.recorder.events == ["1 request POST /", "1 end after 5"])
    }

    @Test func paddingIsNoContent() {
        let server = UnderTest(.server)
        let padded = Frame(0, flags: Frame.padded | Frame.endStream, on: 1, [3] + Array("hello".utf8) + [0, 0, 0])
        server.send(.headers(1, Field.request("POST", [Field("content-length", "5")]), ends: false), padded)
        #expect(server.recorder.events == ["1 request POST /", "1 end after 5"])
    }

    static let disagreeing: [(String, [String], Bool)] = [
        ("5", ["hell"], true), ("5", ["hello!"], true), ("5", ["hello", "!"], false), ("0", ["h"], true),
        ("5", [], true),
    ]

    @Test(arguments: disagreeing)
    func contentThatDisagreesWithItsLengthIsRefused(length: String, parts: [String], ends: Bool) {
        let server = UnderTest(.server)
        server.send(.headers(1, Field.request("POST", [Field("content-length", length)]), ends: false))
        if parts.isEmpty { server.send(.data(1, "", ends: true)) }
        for (index, part) in parts.enumerated() { server.send(.data(1, part, ends: ends && index == parts.count - 1)) }
        #expect(server.replies().map(\.type) == [3])
        #expect(!server.recorder.events.contains { $0.hasPrefix("1 end ") || $0 == "1 end" })
        #expect(server.recorder.events.last == "1 ended resetByUs(PROTOCOL_ERROR)")
    }

    // MARK: Trailers

    @Test func trailersEndContent() throws {
        let server = UnderTest(.server)
        server.send(
            .headers(1, Field.request("POST"), ends: false), .data(1, "hello"), .headers(1, [Field("x-sum", "1")]))
        #expect(server.recorder.events == ["1 request POST /", "1 end after 5"])
        #expect(server.recorder.trailers[1]?.values(named: "x-sum") == ["1"])
    }

    @Test(arguments: [
        [Field(":path", "/")], [Field(":status", "200")], [Field("content-length", "5")],
        [Field("transfer-encoding", "chunked")], [Field("connection", "close")], [Field("X-Sum", "1")],
        [Field("x", "1\r\n2")], [Field("x y", "1")], [Field("content_length", "1")],
        (0..<200).map { Field("x-\($0)", "1") }, [Field("x", String(repeating: "y", count: 9000))],
    ])
    func invalidTrailersResetTheStream(fields: [Field]) {
        let server = UnderTest(.server)
        server.send(.headers(1, Field.request("POST"), ends: false), .data(1, "hello"), .headers(1, fields))
        #expect(server.replies().map(\.type) == [3])
        #expect(server.recorder.events.last == "1 ended resetByUs(PROTOCOL_ERROR)")
    }

    @Test func trailersWithoutEndStreamAreRefused() {
        let server = UnderTest(.server)
        server.send(.headers(1, Field.request("POST"), ends: false), .headers(1, [Field("x", "1")], ends: false))
        #expect(server.replies().contains { $0.type == 3 || $0.type == 7 })
        #expect(!server.recorder.events.contains("1 end"))
    }

    // MARK: Extended CONNECT

    private static func webSocketServer() -> UnderTest {
        var settings = HTTP2Settings.server
        settings.webSocketKey = { "a key" }
        return UnderTest(.server, settings)
    }

    @Test func extendedConnectIsAnUpgrade() throws {
        let server = Self.webSocketServer()
        let fields = Field.request(
            "CONNECT", "/chat", [Field("sec-websocket-version", "13"), Field("sec-websocket-key", "another key")])
        server.send(.headers(1, [Field(":protocol", "websocket")] + fields, ends: false))
        let request = try #require(server.recorder.requests[1])
        #expect(request.methodText == "GET")
        #expect(request.target == "/chat")
        #expect(request.upgrade == "websocket")
        #expect(request.fields.values(named: "sec-websocket-key") == ["a key"])
        #expect(!request.hasBody)
        #expect(server.recorder.streams[1]?.extendedProtocol == "websocket")
    }

    @Test(arguments: [("connect-udp", [], 501), ("websocket", [Field("content-length", "3")], 400)])
    func otherExtendedConnectsAreRefused(name: String, more: [Field], status: Int) {
        let server = Self.webSocketServer()
        server.send(.headers(1, [Field(":protocol", name)] + Field.request("CONNECT", "/", more), ends: false))
        #expect(server.recorder.events.first?.hasPrefix("1 refused \(status)") == true, "\(server.recorder.events)")
    }

    @Test func plainConnectIsRefusedBesideExtendedConnect() {
        let server = Self.webSocketServer()
        server.send(.headers(1, [Field(":method", "CONNECT"), Field(":authority", "a.example:443")]))
        #expect(server.recorder.events.first == "1 refused 501 CONNECT inside HTTP/2")
    }
}
