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

    /// Sends until the socket blocks. Returns the number of bytes sent.
    private static func sendUntilBlocked(_ sender: BulkSocket) async -> Int {
        sender.setPatience(.seconds(1))
        let sent = await onThread { sender.send(upTo: total, seed: 3) }
        sender.setPatience(.seconds(20))
        return sent
    }
}
