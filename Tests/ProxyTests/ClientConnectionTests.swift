// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy

@Suite struct ClientConnectionTests {
    private static let get = "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n"
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    private static func status(_ answer: String) -> String { String(answer.prefix(12)) }

    static let badHeads: [(String, String)] = [
        ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "400"),
        ("GET /\r\n\r\n", "400"),
        ("GET http://a.example/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a b\r\n\r\n", "400"),
        ("GET http://a.example/ HTTP/1.1\nHost: a\n\n", "400"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", "400"),
        ("GET http://a.example/ HTTP/2.0\r\nHost: a\r\n\r\n", "505"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
        (
            "POST http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "400"
        ),
        ("POST http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 010\r\n\r\n", "400"),
        ("POST http://a.example/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "501"),
        ("GET http://u:p@a.example/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a\r\nVia: 1.1 csn-test\r\n\r\n", "508"),
        ("CONNECT a.example HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "400"),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a\r\nCountersign-Trust: sha256:00\r\n\r\n", "400"),
        ("GET http://a.example/ HTTP/1.1\r\nHost: a\r\nCountersign-Trust: yes\r\n\r\n", "400"),
        (
            "GET http://a.example/ HTTP/1.1\r\nHost: a\r\n"
                + String(
                    repeating: "Countersign-Trust: sha256:" + String(repeating: "0", count: 64) + "\r\n", count: 2)
                + "\r\n", "400"
        ),
        ("GET http://a.example/" + String(repeating: "a", count: 17_000) + " HTTP/1.1\r\nHost: a\r\n\r\n", "414"),
        (
            "GET http://a.example/ HTTP/1.1\r\nHost: a\r\n" + String(repeating: "A: b\r\n", count: 200) + "\r\n", "431"
        ),
    ]

    @Test(arguments: badHeads) func aMalformedHeadIsRefusedAndNothingIsSent(_ head: String, _ status: String) throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(head)
        let answer = try bench.answer()
        #expect(Self.status(answer) == "HTTP/1.1 \(status)")
        #expect(answer.contains("Connection: close\r\n"))
        #expect(answer.components(of: "\r\n\r\n") == 1)
        #expect(try origin.sent() == "")
    }

    /// The handler leaves when the channel closes, or when a tunnel replaces it.
    @Test(arguments: [true, false]) func aConnectionIsReleasedWhenItLeavesItsChannel(_ closes: Bool) throws {
        let bench = try Bench()
        weak var left: ClientConnection?
        let (channel, session) = {
            let connection = ClientConnection(
                services: bench.services, process: ClientProcess(uid: Bench.uid), addresses: nil)
            left = connection
            return (EmbeddedChannel(handler: connection, loop: bench.loop), connection.session)
        }()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        #expect(session.isConnected && left != nil)
        if closes {
            try channel.close().wait()
        } else {
            let there = try #require(left)
            _ = channel.pipeline.syncOperations.removeHandler(there)
        }
        bench.loop.run()
        #expect(!session.isConnected)
        #expect(channel.isActive != closes)
        #expect(left == nil)
    }

    @Test func aFingerprintOfTheWrongLengthIsReported() throws {
        let bench = try Bench()
        try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a\r\nCountersign-Trust: sha256:0011\r\n\r\n")
        #expect(try bench.answer().contains("it has 4 hexadecimal digits instead of 64"))
    }

    @Test func aMalformedHeadIsRefusedEvenByteByByte() throws {
        let bench = try Bench()
        for octet in "GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8 {
            try bench.send(String(decoding: [octet], as: UTF8.self))
        }
        #expect(Self.status(try bench.answer()) == "HTTP/1.1 400")
    }

    @Test func aRequestThatHasPassedThroughIsALoop() throws {
        for request in ["GET http://a.example/", "CONNECT a.example:443"] {
            for via in ["1.1 csn-test", "1.0 other, 1.1 csn-test, 1.1 third", "1.1 other\r\nVia: 1.1 csn-test"] {
                let bench = try Bench()
                try bench.send("\(request) HTTP/1.1\r\nHost: a.example\r\nVia: \(via)\r\n\r\n")
                let answer = try bench.answer()
                #expect(Self.status(answer) == "HTTP/1.1 508", "\(request), \(via)")
                #expect(answer.contains("Proxy-Status: countersign; error=proxy_loop_detected; details="))
            }
        }
    }

    @Test(arguments: ["", "Proxy-Authorization: Bearer wrong\r\n", "Authorization: Bearer t0ken\r\n"])
    func withoutTheTokenEveryRequestGetsA407(_ field: String) throws {
        for request in ["GET http://a.example/x", "GET /", "CONNECT a.example:443", "OPTIONS *"] {
            let bench = try Bench(token: "t0ken")
            let origin = try bench.idleOrigin()
            try bench.send("\(request) HTTP/1.1\r\nHost: a.example\r\n\(field)\r\n" + Self.get)
            let answer = try bench.answer()
            #expect(Self.status(answer) == "HTTP/1.1 407")
            #expect(answer.contains("\r\nProxy-Authenticate: Basic realm="))
            #expect(answer.components(of: "\r\n\r\n") == 1)
            #expect(try origin.sent() == "")
        }
    }

    @Test func theTokenIsNotForwarded() throws {
        let bench = try Bench(token: "t0ken")
        let origin = try bench.idleOrigin()
        try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: Bearer t0ken\r\n\r\n")
        let sent = try origin.sent()
        #expect(sent.hasPrefix("GET / HTTP/1.1\r\nHost: a.example\r\n"))
        #expect(!sent.contains("t0ken"))
    }

    @Test func aRequestAndItsResponseAreForwarded() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.get)
        #expect(try origin.sent() == "GET /x HTTP/1.1\r\nHost: a.example\r\nVia: 1.1 csn-test\r\n\r\n")
        try origin.receive(Self.ok)
        let answer = try bench.answer()
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(answer.contains("\r\nDate: "))
        #expect(answer.hasSuffix("\r\n\r\nok"))
        try bench.send(Self.get)
        #expect(try origin.sent().hasPrefix("GET /x "))
    }

    @Test func pipelinedRequestsAreAnsweredInOrderUntilAMalformedOne() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.get + "GET / HTTP/1.1\r\nHost: a\r\n\r\n" + Self.get)
        #expect(try bench.answer() == "")
        #expect(try origin.sent().components(of: "GET ") == 1)
        try origin.receive(Self.ok)
        let answer = try bench.answer()
        #expect(answer.hasPrefix("HTTP/1.1 200 "))
        #expect(answer.components(of: "HTTP/1.1 ") == 2)
        #expect(answer.contains("okHTTP/1.1 400 "))
        #expect(try origin.sent() == "")
    }

    @Test func aClientThatHalfClosesStillGetsEveryResponse() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.get + Self.get)
        bench.clientEndsInput()
        #expect(bench.client.isActive)
        try origin.receive(Self.ok)
        #expect(try origin.sent().components(of: "GET ") == 2)
        try origin.receive(Self.ok)
        #expect(try bench.answer().components(of: "HTTP/1.1 200 ") == 2)
        #expect(!bench.client.isActive)
    }

    @Test func aClientThatHalfClosesInsideItsContentAbortsTheRequest() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send("POST http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel")
        bench.clientEndsInput()
        #expect(!bench.client.isActive)
        #expect(!origin.isActive)
    }

    @Test func malformedContentIsNeverEndedCleanlyAtTheOrigin() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(
            "POST http://a.example/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n")
        #expect(!(try origin.sent()).contains("\r\n0\r\n"))
        #expect(!origin.isActive)
        #expect(!bench.client.isActive)
    }

    @Test func pausedContentIsResumedAndFlushed() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send("POST http://a.example/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
        #expect(try origin.sent().hasSuffix("\r\n\r\n2\r\nab\r\n"))
        origin.isWritable = false
        origin.pipeline.fireChannelWritabilityChanged()
        try bench.send("2\r\ncd\r\n2\r\nef\r\n")
        #expect(try origin.sent() == "")
        origin.isWritable = true
        origin.pipeline.fireChannelWritabilityChanged()
        #expect(try origin.sent() == "2\r\ncd\r\n2\r\nef\r\n")
    }

    @Test func contentReceivedBeforeAHalfCloseIsSentOnceTheOriginIsWritable() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        origin.isWritable = false
        try bench.send(
            "POST http://a.example/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n")
        bench.clientEndsInput()
        origin.isWritable = true
        origin.pipeline.fireChannelWritabilityChanged()
        #expect(try origin.sent().hasSuffix("2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"))
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("ok"))
    }

    @Test func aSlowHeadGetsA408AndAnIdleConnectionIsClosed() throws {
        let slow = try Bench()
        try slow.send("GET http")
        slow.connection.secondPassed(now: slow.services.now + 10)
        #expect(try slow.answer() == "")
        slow.connection.secondPassed(now: slow.services.now + 11)
        #expect(Self.status(try slow.answer()) == "HTTP/1.1 408")
        let idle = try Bench()
        idle.connection.secondPassed(now: idle.services.now + 75)
        #expect(idle.client.isActive)
        idle.connection.secondPassed(now: idle.services.now + 76)
        #expect(!idle.client.isActive)
    }

    @Test func drainingCompletesTheResponseAndThenCloses() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.get)
        bench.services.drain()
        #expect(bench.client.isActive)
        try origin.receive(Self.ok)
        let answer = try bench.answer()
        #expect(answer.contains("\r\nConnection: close\r\n"))
        #expect(answer.hasSuffix("ok"))
        #expect(!bench.client.isActive)
        bench.loop.run()
        #expect(bench.services.isQuiet)
    }

    @Test func aSilentOriginIsA504() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.get)
        bench.connection.secondPassed(now: bench.services.now + 300)
        #expect(try bench.answer() == "")
        bench.connection.secondPassed(now: bench.services.now + 301)
        #expect(Self.status(try bench.answer()) == "HTTP/1.1 504")
        #expect(!origin.isActive)
    }

    @Test func theRequestOfAClientThatHasGoneIsAborted() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.get)
        bench.client.close(promise: nil)
        #expect(!origin.isActive)
        bench.loop.run()
        #expect(bench.services.isQuiet)
    }
}

extension String {
    /// How often `part` occurs.
    func components(of part: String) -> Int {
        var count = 0
        var rest = self[...]
        while let range = rest.firstRange(of: part) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }
}
