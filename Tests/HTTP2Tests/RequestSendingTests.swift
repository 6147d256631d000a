// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import Testing

/// The frames of requests to an origin, and the responses to them.
@Suite struct RequestSendingTests {
    let client = UnderTest(.client)

    private func open(
        _ text: String = "GET / HTTP/1.1\nHost: a.example", endsStream: Bool = true,
        _ change: (inout RequestForwarding) -> Void = { _ in }
    ) throws -> HTTP2Stream? {
        let head = try requestHead(text)
        var forwarding = RequestForwarding(
            target: head.targetBytes, host: head.host ?? "", framing: head.framing)
        change(&forwarding)
        return client.session.open(head, forwarding, endsStream: endsStream)
    }

    private struct Text: SecretFieldValue {
        let text: String
        var byteCount: Int { text.utf8.count }

        func forEachPart(_ write: (UnsafeRawBufferPointer) -> Void) {
            var text = text
            text.withUTF8 { write(UnsafeRawBufferPointer($0)) }
        }
    }

    @Test func fieldsAreThoseOfTheClientExceptConnectionFields() throws {
        let text = """
            POST http://a.example/path?q HTTP/1.1
            Host: a.example:8443
            Connection: keep-alive, X-Hop
            X-Hop: 1
            X-Mixed: Case
            TE: trailers, deflate
            Transfer-Encoding: chunked
            Proxy-Authorization: Basic c2VjcmV0
            Authorization: Basic old
            Cookie: a=1
            Expect: 100-continue
            """
        let stream = try #require(
            try open(text, endsStream: false) {
                $0.target = $0.target.suffix(7)
                $0.authorization = Text(text: "Bearer new")
                $0.added = [AddedField("X-Added", Text(text: "2"))]
                $0.via = ViaField("1.1 countersign")
            })
        client.recorder.send(Array("hello".utf8), on: stream)
        stream.finish()
        let frames = client.replies()
        let fields = client.fields(frames[0])
        #expect(
            fields.map(\.description) == [
                ":method: POST", ":scheme: https", ":authority: a.example:8443", ":path: /path?q", "x-mixed: Case",
                "cookie: a=1", "authorization: Bearer new", "x-added: 2", "via: 1.1 countersign", "te: trailers",
            ])
        let secret = fields.filter(\.isNeverIndexed).map { String(decoding: $0.name, as: UTF8.self) }
        #expect(secret == ["cookie", "authorization", "x-added"])
        #expect(frames[0].flags == Frame.endHeaders)
        #expect(frames[1] == .data(1, "hello", ends: true))
    }

    @Test func requestWithoutContentEndsWithItsHead() throws {
        _ = try open()
        let frames = client.replies()
        #expect(frames.map(\.type) == [1])
        #expect(frames[0].flags == Frame.endHeaders | Frame.endStream)
    }

    // MARK: Responses

    static let framings: [(String, [Field], Bool, BodyFraming)] = [
        ("GET", [Field(":status", "200")], false, .chunked),
        ("GET", [Field(":status", "200")], true, .length(0)),
        ("GET", [Field(":status", "200"), Field("content-length", "5")], false, .length(5)),
        ("HEAD", [Field(":status", "200"), Field("content-length", "5")], true, .none),
        ("GET", [Field(":status", "204")], true, .none),
        ("GET", [Field(":status", "304"), Field("content-length", "5")], true, .none),
    ]

    @Test(arguments: framings)
    func framingIsCertainWithTheHead(method: String, fields: [Field], ends: Bool, framing: BodyFraming) throws {
        _ = try open("\(method) / HTTP/1.1\nHost: a.example")
        _ = client.replies()
        client.send(.headers(1, fields, ends: ends))
        let status = String(decoding: fields[0].value, as: UTF8.self)
        #expect(client.recorder.events.first == "1 response \(status) \(framing)")
        #expect(client.recorder.events.contains("1 end") == ends)
    }

    @Test func interimResponsesContentAndTrailersAreReported() throws {
        _ = try open()
        _ = client.replies()
        client.send(
            .headers(1, [Field(":status", "103"), Field("link", "</a>")], ends: false),
            .headers(1, [Field(":status", "100")], ends: false),
            .headers(1, [Field(":status", "200"), Field("x", "1")], ends: false), .data(1, "hello"),
            .headers(1, [Field("grpc-status", "0")]))
        #expect(
            client.recorder.events == [
                "1 response 103 none", "1 response 100 none", "1 response 200 chunked", "1 end after 5",
                "1 ended complete",
            ])
        #expect(client.recorder.trailers[1]?.values(named: "grpc-status") == ["0"])
    }

    static let malformed: [(String, [Field])] = [
        ("no :status", [Field("x", "1")]),
        ("two :status", [Field(":status", "200"), Field(":status", "200")]),
        ("late :status", [Field("x", "1"), Field(":status", "200")]),
        ("a pseudo-field of requests", [Field(":status", "200"), Field(":path", "/")]),
        (":status of four digits", [Field(":status", "2000")]),
        (":status in letters", [Field(":status", "abc")]),
        ("101", [Field(":status", "101")]),
        ("upper case", [Field(":status", "200"), Field("X", "1")]),
        ("transfer-encoding", [Field(":status", "200"), Field("transfer-encoding", "chunked")]),
        ("connection", [Field(":status", "200"), Field("connection", "close")]),
        ("CR LF in a value", [Field(":status", "200"), Field("x", "1\r\ny: 2")]),
        ("NUL in a value", [Field(":status", "200"), Field("x", "\0")]),
        ("space in a name", [Field(":status", "200"), Field("x y", "1")]),
        ("two lengths", [Field(":status", "200"), Field("content-length", "5"), Field("content-length", "6")]),
        ("length as a list", [Field(":status", "200"), Field("content-length", "5, 5")]),
        ("length with END_STREAM", [Field(":status", "200"), Field("content-length", "5")]),
    ]

    @Test(arguments: malformed)
    func malformedResponseResetsItsStream(_ name: String, _ fields: [Field]) throws {
        _ = try open()
        _ = client.replies()
        client.send(.headers(1, fields))
        #expect(client.replies().map(\.type) == [3])
        #expect(client.recorder.events == ["1 ended resetByUs(PROTOCOL_ERROR)"])
        #expect(client.session.freeStreams > 0, "the connection goes on")
    }

    @Test func octetsBeyondASCIIAreKept() throws {
        _ = try open()
        _ = client.replies()
        client.send(.headers(1, [Field(":status", "200"), Field("x", octets: [0xE9, 0xFF])]))
        let response = try #require(client.recorder.responses[1])
        #expect(response.fields.lines.map { Array(response.fields.valueBytes(of: $0)) } == [[0xE9, 0xFF]])
        #expect(response.reason.isEmpty)
        #expect(response.keepsAlive)
    }

    // MARK: Streams that were not processed

    @Test func streamsAboveTheLastOneOfGoAwayAreRetryable() throws {
        for _ in 0..<3 { _ = try open() }
        _ = client.replies()
        client.send(.goAway(last: 1, 0))
        #expect(
            client.recorder.events == ["goaway 1 NO_ERROR", "3 ended notProcessed", "5 ended notProcessed"])
        #expect(client.session.freeStreams == 0)
        #expect(try open() == nil)
        client.send(.headers(1, [Field(":status", "200")]))
        #expect(client.recorder.events.last == "1 ended complete")
        _ = client.replies()
        #expect(client.session.isOver)
    }

    @Test func requestsThatWereNotWrittenAreRetryable() throws {
        _ = try open()
        client.send(.goAway(last: 0, 0))
        _ = client.replies()
        #expect(client.recorder.events == ["goaway 0 NO_ERROR", "1 ended notProcessed"])
    }

    @Test(arguments: [
        (7, HTTP2StreamEnd.resetByPeer(.refusedStream), true, false),
        (13, .resetByPeer(.http11Required), false, true), (2, .resetByPeer(.internalError), false, false),
        (0x1234, .resetByPeer(HTTP2ErrorCode(rawValue: 0x1234)), false, false),
    ])
    func codesOfResetsAreToldApart(code: UInt32, end: HTTP2StreamEnd, isRetryable: Bool, requiresHTTP1: Bool) throws {
        _ = try open()
        _ = client.replies()
        client.send(.reset(1, code))
        #expect(client.recorder.events == ["1 ended \(end)"])
        #expect(end.isRetryable == isRetryable)
        #expect(end.requiresHTTP1 == requiresHTTP1)
    }

    @Test func lostConnectionEndsItsStreams() throws {
        _ = try open()
        _ = client.replies()
        _ = try open()
        client.session.connectionClosed()
        #expect(client.recorder.events == ["1 ended connectionLost", "3 ended notProcessed"])
        #expect(!client.session.drain())
    }

    @Test func resetBeforeTheHeadIsWrittenSendsNothing() throws {
        let stream = try #require(try open())
        stream.reset(.cancel)
        #expect(!client.replies().contains { $0.type == 1 })
        #expect(client.recorder.events == ["1 ended resetByUs(CANCEL)"])
    }

    @Test func completeExchangeIsNotReset() throws {
        client.recorder.onEnd = { $0.reset(.cancel) }
        _ = try open()
        _ = client.replies()
        client.send(.headers(1, [Field(":status", "204")]))
        #expect(client.replies().isEmpty)
        #expect(client.recorder.events.last == "1 ended complete")
    }

    @Test func requestThatIsNotCompleteIsReset() throws {
        client.recorder.onEnd = { $0.reset(.cancel) }
        _ = try open("POST / HTTP/1.1\nHost: a.example\nContent-Length: 5", endsStream: false)
        _ = client.replies()
        client.send(.headers(1, [Field(":status", "204")]))
        #expect(client.replies() == [.reset(1)])
    }

    @Test(arguments: [(5, true), (6, false)])
    func resetWithoutErrorEndsContentThatIsWholeByItsLength(length: Int, isWhole: Bool) throws {
        _ = try open()
        _ = client.replies()
        let fields = [Field(":status", "200"), Field("content-length", "\(length)")]
        client.send(.headers(1, fields, ends: false), .data(1, "hello"), .reset(1, 0))
        #expect(client.recorder.events.contains("1 end after 5") == isWhole)
        #expect(client.recorder.events.last == "1 ended resetByPeer(NO_ERROR)")
    }

    @Test func freeStreamsFollowTheOriginsLimit() throws {
        #expect(client.session.freeStreams == 100)
        client.send(.settings([(3, 2)]))
        #expect(client.session.freeStreams == 2)
        _ = try open()
        _ = try open()
        #expect(try open() == nil)
        _ = client.replies()
        client.send(.headers(1, [Field(":status", "200")]))
        #expect(client.session.freeStreams == 1)
    }

    @Test func pushedStreamEndsTheConnection() throws {
        _ = try open()
        _ = client.replies()
        client.send(Frame(5, flags: Frame.endHeaders, on: 1, Frame.octets(2) + Field.get.flatMap(\.literal)))
        #expect(client.goAwayCode() == .protocolError)
    }

    @Test func alternativeServicesAndOriginsAreIgnored() throws {
        _ = try open()
        _ = client.replies()
        client.send(Frame(0xA, on: 1, [0, 0] + Array("h2=\":443\"".utf8)), Frame(0xC, [0, 1, 0x61]))
        #expect(client.replies().isEmpty)
        #expect(client.recorder.events.isEmpty)
    }
}
