// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// WebSockets in streams of a client's HTTP/2 connection (RFC 8441), to sites that open them over HTTP/1.1.
@Suite(.waiting) struct HTTP2WebSocketTests {
    private struct Seen: Decodable, Equatable {
        let path: String
        let status: String?
        let content: Content
        let end: End
        let isSame: Bool

        enum Content: Decodable, Equatable {
            case text(String)
            case length(Int)

            init(from decoder: any Decoder) throws {
                let value = try decoder.singleValueContainer()
                self = try (try? value.decode(Int.self)).map { .length($0) } ?? .text(value.decode(String.self))
            }
        }

        enum End: Decodable, Equatable {
            case whole
            case reset(Int)

            init(from decoder: any Decoder) throws {
                let value = try decoder.singleValueContainer()
                self = (try? value.decode(Int.self)).map { .reset($0) } ?? .whole
            }
        }
    }

    /// What a client sees that opens these WebSockets, all on one connection.
    private static func seen(_ proxy: RunningProxy, port: Int, _ items: [String]) throws -> [Seen] {
        let done = try Command.run(
            Tool.python(),
            [
                Tool.client("websocket_http2.py"), "127.0.0.1:\(proxy.port)", proxy.anchor,
                "two.test.localhost:\(port)",
            ] + items, in: TemporaryFolder())
        guard done.status == 0 else { throw HarnessError(done.said) }
        return try done.output.split(separator: "\n").map { try JSONDecoder().decode(Seen.self, from: Data($0.utf8)) }
    }

    private static func proxy(_ origin: WebSocketFaults) throws -> RunningProxy {
        let user = try Countersign()
        try user.enroll()
        try user.allow("https://two.test.localhost:\(origin.port) answer=basic")
        return try RunningProxy(user, [])
    }

    @Test func octetsGoBothWays() throws {
        let origin = try WebSocketFaults()
        let proxy = try Self.proxy(origin)
        let seen = try Self.seen(proxy, port: origin.port, ["/echo?hello", "/echo?3000000", "/early", "/echo?x"])
        #expect(seen.map(\.status) == ["200", "200", "200", "200"])
        #expect(seen.map(\.content) == [.text("hellobye"), .length(3_000_003), .text("early"), .text("xbye")])
        #expect(seen.allSatisfy { $0.end == .whole })
        #expect(seen.map(\.isSame) == [true, true, false, true])
        let lines = TextFile.lines(proxy.accessLog).filter { $0.contains(#""status":101"#) }
        #expect(lines.count == 4 && lines.allSatisfy { $0.contains(#""http":"2","origin_http":"1.1""#) }, "\(lines)")
    }

    /// The fields of an opening handshake in HTTP/1.1, with a key of the proxy's own.
    @Test func theSiteGetsAnUpgrade() throws {
        let origin = try WebSocketFaults()
        let seen = try Self.seen(try Self.proxy(origin), port: origin.port, ["/request"])
        guard case .text(let head)? = seen.first?.content else {
            Issue.record("\(seen)")
            return
        }
        let lines = head.split(separator: "\r\n").map(String.init)
        #expect(lines.first == "GET /request HTTP/1.1")
        for line in ["connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13"] {
            #expect(lines.filter { $0.lowercased() == line }.count == 1, "\(lines)")
        }
        let keys = lines.filter { $0.lowercased().hasPrefix("sec-websocket-key: ") }.map { $0.dropFirst(19) }
        #expect(keys.count == 1 && keys.first.flatMap { Data(base64Encoded: String($0)) }?.count == 16, "\(keys)")
    }

    @Test func theClientIsToldWhatTheSiteDoesNotOpen() throws {
        let origin = try WebSocketFaults()
        let proxy = try Self.proxy(origin)
        let seen = try Self.seen(
            proxy, port: origin.port,
            ["/wrong-accept", "/no-accept", "/other", "/ok", "/forbidden", "connect-udp=/echo", "/echo?still"])
        #expect(seen.map(\.status) == ["502", "502", "502", "502", "403", "501", "200"])
        #expect(seen[4].content == .text("page"))
        #expect(seen[3].content != .text("page") && seen[3].end == .whole)
        #expect(seen[6].isSame)
    }

    @Test func aBrokenConnectionIsAResetStream() throws {
        let origin = try WebSocketFaults()
        let seen = try Self.seen(try Self.proxy(origin), port: origin.port, ["/cut?x", "/echo?still"])
        // CONNECT_ERROR
        #expect(seen.first?.end == .reset(10), "\(seen)")
        #expect(seen.last?.isSame == true)
    }
}
