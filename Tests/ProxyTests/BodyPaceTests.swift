// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import CountersignProxy

/// Back-pressure over real sockets: content is forwarded only as fast as its recipient reads it, and completely.
@Suite(.serialized) struct BodyPaceTests {
    private static let mebibyte = 1024 * 1024
    private static let total = 192 * mebibyte
    /// Far less than is sent, and more than the kernel buffers on the two connections.
    private static let most = 64 * mebibyte

    @Test func contentThatTheOriginDoesNotReadStaysAtTheClient() async throws {
        let stage = try await TunnelStage()
        let way = try await stage.exchange("PUT", fields: "Content-Length: \(Self.total)\r\n")
        let sent = await Self.sendUntilBlocked(way.client)
        #expect(sent < Self.most)
        async let isSent = onThread { way.client.sendAll(Self.total - sent, seed: 3 + sent) }
        #expect(await onThread { way.origin.expects(Self.total, seed: 3) })
        #expect(await isSent)
        #expect(await onThread { way.origin.send(text: "HTTP/1.1 204 No Content\r\n\r\n") })
        #expect(await onThread { way.client.head() }.hasPrefix("HTTP/1.1 204 "))
        way.close()
        try await stage.stop()
    }

    @Test func aResponseThatTheClientDoesNotReadStaysAtTheOrigin() async throws {
        let stage = try await TunnelStage()
        let way = try await stage.exchange("GET")
        let head = "HTTP/1.1 200 OK\r\nContent-Length: \(Self.total)\r\n\r\n"
        #expect(await onThread { way.origin.send(text: head) })
        let sent = await Self.sendUntilBlocked(way.origin)
        #expect(sent < Self.most)
        async let isSent = onThread { way.origin.sendAll(Self.total - sent, seed: 3 + sent) }
        #expect(await onThread { way.client.head() }.hasPrefix("HTTP/1.1 200 "))
        #expect(await onThread { way.client.expects(Self.total, seed: 3) })
        #expect(await isSent)
        way.close()
        try await stage.stop()
    }

    // MARK: The minimum rate

    private static let upload = "POST http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n"

    /// Sends `bytesPerSecond` and advances the clock by a second, `seconds` times. Returns the second at which the
    /// client got a response.
    private static func pass(_ seconds: Int, _ bench: Bench, bytesPerSecond: Int) throws -> (at: Int, answer: String)? {
        for second in 1...seconds {
            if bytesPerSecond > 0 { try bench.send(String(repeating: "x", count: bytesPerSecond)) }
            bench.connection.secondPassed(now: bench.services.now)
            let answer = try bench.answer()
            if !answer.isEmpty { return (second, answer) }
        }
        return nil
    }

    @Test(arguments: [1, 100, 239]) func contentBelowTheMinimumRateIsCutAfterAMinute(_ rate: Int) throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.upload + "\r\n")
        let cut = try #require(try Self.pass(120, bench, bytesPerSecond: rate))
        #expect(cut.at == 60)
        #expect(cut.answer.hasPrefix("HTTP/1.1 408 "))
        #expect(cut.answer.contains("less than 240 bytes per second"))
        #expect(cut.answer.contains("Connection: close\r\n"))
        #expect(!origin.isActive)
    }

    @Test func contentAtTheMinimumRateIsForwarded() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.upload + "\r\n")
        #expect(try Self.pass(600, bench, bytesPerSecond: 240) == nil)
        #expect(origin.isActive)
        #expect(try origin.sent().utf8.count > 600 * 240)
    }

    @Test func aFastStartDoesNotExcuseLaterMinutes() throws {
        let bench = try Bench()
        _ = try bench.idleOrigin()
        try bench.send(Self.upload + "\r\n" + String(repeating: "x", count: 500_000))
        #expect(try Self.pass(120, bench, bytesPerSecond: 1)?.at == 120)
    }

    @Test func secondsInWhichTheOriginDoesNotReadDoNotCount() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.upload + "\r\nx")
        origin.isWritable = false
        origin.pipeline.fireChannelWritabilityChanged()
        #expect(try Self.pass(600, bench, bytesPerSecond: 0) == nil)
        origin.isWritable = true
        origin.pipeline.fireChannelWritabilityChanged()
        // The first of these seconds began while the client was held back.
        #expect(try Self.pass(120, bench, bytesPerSecond: 1)?.at == 61)
    }

    @Test func contentAfterTheResponseHasBegunHasNoMinimumRate() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.upload + "\r\n")
        try origin.receive("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
        #expect(try bench.answer().hasPrefix("HTTP/1.1 200 "))
        #expect(try Self.pass(600, bench, bytesPerSecond: 1) == nil)
        #expect(origin.isActive)
    }

    @Test func responsesHaveNoMinimumRate() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a\r\n\r\n")
        try origin.receive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in 0..<600 {
            try origin.receive("1\r\nx\r\n")
            bench.connection.secondPassed(now: bench.services.now)
        }
        try origin.receive("0\r\n\r\n")
        #expect(try bench.answer().hasSuffix("0\r\n\r\n"))
    }

    @Test func aClientThatWaitsFor100ContinueIsNotSlow() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.upload + "Expect: 100-continue\r\n\r\n")
        #expect(try Self.pass(600, bench, bytesPerSecond: 0) == nil)
        try origin.receive("HTTP/1.1 100 Continue\r\n\r\n")
        #expect(try bench.answer().hasPrefix("HTTP/1.1 100 "))
        #expect(try Self.pass(120, bench, bytesPerSecond: 1)?.at == 60)
    }

    /// Neither is the origin to blame if the client stops.
    @Test func contentThatStopsIsTheClientsFault() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.upload + "\r\nx")
        bench.connection.secondPassed(now: bench.services.now + 61)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 408 "))
        #expect(!origin.isActive)
    }

    /// Sends until the socket blocks. Returns the number of bytes sent.
    private static func sendUntilBlocked(_ sender: BulkSocket) async -> Int {
        sender.setPatience(.seconds(1))
        let sent = await onThread { sender.send(upTo: total, seed: 3) }
        sender.setPatience(.seconds(20))
        return sent
    }
}
