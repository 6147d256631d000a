// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import Testing

/// A client and a server of this module against each other.
@Suite struct PairTests {
    /// Answers with the request's content, its method and the trailers given to it.
    private func echo(_ pair: Pair, _ stream: HTTP2Stream) throws {
        let server = pair.server.recorder
        let head = try responseHead("HTTP/1.1 200 OK\nX-Method: \(server.requests[stream.id]?.methodText ?? "")")
        stream.send(head, ResponseChanges(), framing: .chunked, endsStream: false)
        server.send(server.content[stream.id] ?? [], on: stream)
        stream.finish(trailers: server.trailers[stream.id])
    }

    @Test(arguments: [1, 3, 1000, .max])
    func exchangeSurvivesPiecesOfAnySize(step: Int) throws {
        let pair = Pair()
        pair.step = step
        let stream = try pair.open("POST /a HTTP/1.1\nHost: a.example\nTransfer-Encoding: chunked", endsStream: false)
        pair.client.recorder.send(Array("hello".utf8), on: stream)
        stream.finish(
            trailers: try FieldLines.trailers(Array("X-Sum: 1\r\n\r\n".utf8), limits: .standard, sentBy: .client))
        pair.run()
        #expect(pair.server.recorder.events == ["1 request POST /a", "1 end after 5"])
        try echo(pair, try #require(pair.server.recorder.streams[1]))
        pair.run()
        let client = pair.client.recorder
        #expect(client.events == ["1 response 200 chunked", "1 end after 5", "1 ended complete"])
        #expect(client.content[1] == Array("hello".utf8))
        #expect(client.trailers[1]?.values(named: "x-sum") == ["1"])
        #expect(client.responses[1]?.fields.values(named: "x-method") == ["POST"])
        #expect(pair.server.recorder.events.last == "1 ended complete")
        #expect(pair.client.session.openStreams == 0)
        #expect(pair.server.session.openStreams == 0)
    }

    @Test func contentGoesBothWaysAtOnce() throws {
        let pair = Pair()
        let stream = try pair.open("POST / HTTP/1.1\nHost: a.example\nTransfer-Encoding: chunked", endsStream: false)
        pair.run()
        let answer = try #require(pair.server.recorder.streams[1])
        answer.send(status: 200, fields: [], contentLength: nil, endsStream: false)
        for part in ["a", "b", "c"] {
            pair.client.recorder.send(Array(part.utf8), on: stream)
            pair.run()
            pair.server.recorder.send(Array(part.uppercased().utf8), on: answer)
            pair.run()
        }
        #expect(pair.server.recorder.content[1] == Array("abc".utf8))
        #expect(pair.client.recorder.content[1] == Array("ABC".utf8))
        answer.finish()
        pair.run()
        #expect(pair.client.recorder.events.last == "1 end after 3")
        stream.finish()
        pair.run()
        #expect(pair.client.recorder.events.last == "1 ended complete")
    }

    @Test func reusedFieldsOfManyRequestsStayTheSame() throws {
        let pair = Pair()
        for number in 0..<300 {
            let stream = try pair.open("GET /\(number) HTTP/1.1\nHost: a.example\nX-Same: yes\nX-Number: \(number)")
            pair.run()
            try echo(pair, try #require(pair.server.recorder.streams[stream.id]))
            pair.run()
            let request = try #require(pair.server.recorder.requests[stream.id])
            #expect(request.target == "/\(number)")
            #expect(request.fields.values(named: "x-number") == ["\(number)"])
            #expect(request.fields.values(named: "x-same") == ["yes"])
        }
        #expect(pair.server.session.failure == nil)
    }

    // MARK: Flow control

    @Test func readerThatConsumesNothingStopsItsOwnSenderOnly() throws {
        let pair = Pair()
        pair.server.recorder.consumes = false
        let slow = try pair.open("PUT /slow HTTP/1.1\nHost: a.example\nTransfer-Encoding: chunked", endsStream: false)
        pair.client.recorder.send([UInt8](repeating: 1, count: 2_000_000), on: slow)
        pair.run()
        #expect(pair.server.recorder.content[1]?.count == 256 * 1024)
        #expect(!slow.isWritable)

        pair.server.recorder.consumes = true
        let fast = try pair.open("PUT /fast HTTP/1.1\nHost: a.example\nTransfer-Encoding: chunked", endsStream: false)
        pair.client.recorder.send([UInt8](repeating: 1, count: 2_000_000), on: fast)
        fast.finish()
        pair.run()
        #expect(pair.server.recorder.content[3]?.count == 2_000_000)
        #expect(pair.server.recorder.content[1]?.count == 256 * 1024)

        pair.server.recorder.streams[1]?.consume(256 * 1024)
        slow.finish()
        pair.run()
        #expect(pair.server.recorder.content[1]?.count == 2_000_000)
        #expect(slow.isWritable)
    }

    @Test func manyStoppedStreamsDoNotStopTheConnection() throws {
        let pair = Pair()
        pair.client.recorder.consumes = false
        for _ in 0..<20 {
            let stream = try pair.open("GET / HTTP/1.1\nHost: a.example")
            pair.run()
            let answer = try #require(pair.server.recorder.streams[stream.id])
            answer.send(status: 200, fields: [], contentLength: nil, endsStream: false)
            pair.server.recorder.send([UInt8](repeating: 1, count: 300_000), on: answer)
            answer.finish()
            pair.run()
            #expect(pair.client.recorder.content[stream.id]?.count == 256 * 1024)
        }
    }

    // MARK: The end

    @Test func serverThatEndsCompletesItsStreams() throws {
        let pair = Pair()
        _ = try pair.open("GET /1 HTTP/1.1\nHost: a.example")
        pair.run()
        pair.server.session.announceEnd()
        // On its way while the client does not know.
        let late = try pair.open("GET /2 HTTP/1.1\nHost: a.example")
        pair.run()
        #expect(pair.client.session.freeStreams == 0)
        pair.server.session.refuseNewStreams()
        for id in [1, late.id] { try echo(pair, try #require(pair.server.recorder.streams[id])) }
        pair.run()
        #expect(pair.client.recorder.events.suffix(1) == ["3 ended complete"])
        #expect(pair.client.session.isOver)
        #expect(pair.server.session.isOver)
    }

    @Test func resetReachesTheOtherSide() throws {
        let pair = Pair()
        let stream = try pair.open("POST / HTTP/1.1\nHost: a.example\nTransfer-Encoding: chunked", endsStream: false)
        pair.run()
        stream.reset(.cancel)
        pair.run()
        #expect(pair.server.recorder.events.last == "1 ended resetByPeer(CANCEL)")
        #expect(pair.client.recorder.events.last == "1 ended resetByUs(CANCEL)")
        #expect(pair.client.session.openStreams == 0)
    }

    @Test func http11RequiredReachesTheClient() throws {
        let pair = Pair()
        _ = try pair.open("GET / HTTP/1.1\nHost: a.example")
        pair.run()
        pair.server.recorder.streams[1]?.reset(.http11Required)
        pair.run()
        #expect(pair.client.recorder.events == ["1 ended resetByPeer(HTTP_1_1_REQUIRED)"])
    }

    @Test func responseBeforeTheRequestEndsIsComplete() throws {
        let pair = Pair()
        let stream = try pair.open("POST / HTTP/1.1\nHost: a.example\nTransfer-Encoding: chunked", endsStream: false)
        pair.client.recorder.send([UInt8](repeating: 1, count: 1000), on: stream)
        pair.run()
        let answer = try #require(pair.server.recorder.streams[1])
        answer.dropRequest()
        answer.send(status: 413, fields: [], contentLength: 0, endsStream: true)
        pair.run()
        answer.reset(.noError)
        pair.run()
        #expect(
            pair.client.recorder.events == [
                "1 response 413 length(0)", "1 end", "1 ended resetByPeer(NO_ERROR)",
            ])
    }

    @Test func sessionsAreReleased() throws {
        weak var client: HTTP2Session?
        weak var server: HTTP2Session?
        do {
            let pair = Pair()
            _ = try pair.open("POST / HTTP/1.1\nHost: a.example\nTransfer-Encoding: chunked", endsStream: false)
            pair.run()
            client = pair.client.session
            server = pair.server.session
            pair.client.session.connectionClosed()
            pair.server.session.connectionClosed()
        }
        #expect(client == nil)
        #expect(server == nil)
    }
}
