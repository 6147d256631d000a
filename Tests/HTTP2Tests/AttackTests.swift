// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignHTTP2
import Testing

/// Floods and bombs. Each is sent for one second at most, by the session's clock, and must end its connection early.
@Suite struct AttackTests {
    let server = UnderTest(.server)

    /// The number of rounds of `frames` until the session ended the connection; nil if it did not within `limit`.
    private func rounds(
        _ limit: Int = 2000, readsReplies: Bool = true, _ frames: (UInt32) -> [Frame]
    ) -> Int? {
        for round in 0..<limit {
            server.send(frames(2 * UInt32(round) + 1).flatMap(\.octets))
            if readsReplies, !server.replies().allSatisfy({ $0.type != 7 }) { return round + 1 }
            if server.session.failure != nil || server.session.isOver { return round + 1 }
        }
        return nil
    }

    static let floods: [(String, @Sendable (UInt32) -> [Frame])] = [
        ("rapid reset (CVE-2023-44487)", { [.headers($0, Field.get), .reset($0)] }),
        ("rapid reset of open requests", { [.headers($0, Field.request("POST"), ends: false), .reset($0)] }),
        (
            "resets by content beyond its length",
            {
                [
                    .headers($0, Field.request("POST", [Field("content-length", "1")]), ends: false), .data($0, "12"),
                ]
            }
        ),
        ("resets by malformed heads", { [.headers($0, Field.request("GET", [Field("X", "1")]))] }),
        ("resets by heads that the parser refuses", { [.headers($0, Field.request("GET", "/#"))] }),
        ("resets by WINDOW_UPDATE of 0", { [.headers($0, Field.get), .windowUpdate($0, 0)] }),
        ("resets by an overflow", { [.headers($0, Field.get), .windowUpdate($0, 0x7FFF_FFFF)] }),
        ("resets by a dependency on itself", { [.headers($0, Field.get), .priority($0, on: $0)] }),
        ("resets by DATA after END_STREAM", { [.headers($0, Field.get), .data($0, "x")] }),
        ("SETTINGS", { _ in [.settings()] }),
        ("SETTINGS that change the table", { [.settings([(1, $0 % 4096)])] }),
        ("SETTINGS that change the windows", { [.settings([(4, $0 % 65_536)])] }),
        ("PRIORITY", { [.priority($0, on: 0)] }),
        ("PRIORITY in loops", { [.priority(3, on: $0 % 4 < 2 ? 5 : 7)] }),
        ("unknown frames", { _ in [Frame(0xBB)] }),
        ("unknown frames with content", { _ in [Frame(0xBB, on: 1, [UInt8](repeating: 1, count: 1000))] }),
        ("ALTSVC", { _ in [Frame(0x0A, on: 0, [0, 1, 0x61, 0x62])] }),
        ("ORIGIN", { _ in [Frame(0x0C, on: 0, [0, 1, 0x61])] }),
        ("PRIORITY_UPDATE", { _ in [Frame(0x10, on: 0, [0, 0, 0, 1, 0x75, 0x3D, 0x31])] }),
        ("GOAWAY", { _ in [.goAway()] }),
    ]

    static let replyFloods: [(String, [Frame])] = [
        ("PING", [.ping()]),
        ("PING replies", [.ping(isAck: true)]),
        ("WINDOW_UPDATE of 1", [.windowUpdate(0, 1)]),
        ("WINDOW_UPDATE of 1 of a stream", [.windowUpdate(1, 1)]),
        ("WINDOW_UPDATE of 1 of a closed stream", [.windowUpdate(3, 1)]),
    ]

    @Test(arguments: replyFloods)
    func floodOfRepliesEndsTheConnection(_ name: String, _ frames: [Frame]) throws {
        server.send(.headers(1, Field.request("POST"), ends: false), .headers(3, Field.get))
        try #require(server.recorder.streams[3]).reset(.cancel)
        _ = server.replies()
        let limit = TokenBucket.Terms.replies.capacity
        let rounds = try #require(rounds(limit + 10) { _ in frames })
        #expect(rounds > limit / 2 && rounds <= limit + 1)
        #expect(server.session.failure == .enhanceYourCalm)
    }

    @Test(arguments: floods)
    func floodEndsTheConnection(_ name: String, _ frames: @Sendable (UInt32) -> [Frame]) throws {
        let rounds = try #require(rounds { frames($0) })
        #expect(rounds <= TokenBucket.Terms.others.capacity + 1)
        #expect(server.session.failure != nil || server.session.isOver)
        server.send(.headers(9999, Field.get))
        #expect(server.recorder.requests[9999] == nil, "nothing is read any more")
    }

    @Test(arguments: [("empty DATA", Frame.data(1)), ("padded empty DATA", Frame(0, flags: 8, on: 1, [3, 0, 0, 0]))])
    func emptyDataEndsTheConnection(_ name: String, _ frame: Frame) throws {
        server.send(.headers(1, Field.request("POST"), ends: false))
        let rounds = try #require(rounds { _ in [frame] })
        #expect(rounds <= TokenBucket.Terms.others.capacity + 1)
        #expect(server.session.failure == .enhanceYourCalm)
    }

    /// nghttp2 drops them without a report.
    @Test(arguments: ["", "x"]) func dataOnAClosedStreamEndsTheConnection(content: String) throws {
        server.send(.headers(1, Field.request("POST"), ends: false))
        try #require(server.recorder.streams[1]).reset(.cancel)
        _ = server.replies()
        let rounds = try #require(rounds { _ in [.data(1, content)] })
        #expect(rounds <= TokenBucket.Terms.others.capacity + 1)
        #expect(server.session.failure == .enhanceYourCalm)
    }

    @Test func peerThatDoesNotReadIsBounded() throws {
        let rounds = try #require(rounds(readsReplies: false) { _ in [.ping()] })
        #expect(rounds <= 201)
        #expect(server.replies().reduce(0) { $0 + 9 + $1.payload.count } < 16_384)
    }

    @Test func continuationFloodEndsTheConnection() throws {
        server.send(.headers(1, block: [], isWhole: false))
        let rounds = try #require(rounds(readsReplies: false) { _ in [.continuation(1, [], isWhole: false)] })
        #expect(rounds < 20)
    }

    @Test func continuationsThatNeverEndAreBounded() throws {
        server.send(.headers(1, Field.get, isWhole: false))
        let block = (0..<16).flatMap { _ in Field("x", String(repeating: "y", count: 1000)).literal }
        let rounds = try #require(rounds(readsReplies: false) { _ in [.continuation(1, block, isWhole: false)] })
        #expect(rounds < 20)
        #expect(server.recorder.requests.isEmpty)
    }

    @Test func referencesToALargeEntryEndTheConnection() {
        let entry = Field("x-bomb", String(repeating: "y", count: 4000))
        server.send(.headers(1, block: Field.get.flatMap(\.literal) + entry.indexedLiteral))
        #expect(server.recorder.requests[1] != nil)
        // Index 62 is the newest entry: one octet for 4,006.
        server.send(.headers(3, block: Field.get.flatMap(\.literal) + [UInt8](repeating: 0x80 | 62, count: 16_000)))
        #expect(server.goAwayCode() == .enhanceYourCalm)
        #expect(server.recorder.requests[3] == nil)
    }

    @Test func cookieBombIsRefused() {
        let crumbs = [UInt8](repeating: 0x80 | 62, count: 2500)
        server.send(.headers(1, block: Field.get.flatMap(\.literal) + Field("cookie", "a").indexedLiteral + crumbs))
        #expect(server.recorder.requests[1] == nil)
    }

    @Test func streamsFarBeyondTheLimitEndTheConnection() {
        for id in 0..<150 { server.send(.headers(2 * UInt32(id) + 1, Field.get)) }
        #expect(server.goAwayCode() == nil)
        for id in 150..<1000 {
            server.send(.headers(2 * UInt32(id) + 1, Field.get))
            while server.session.drain() {}
        }
        #expect(server.recorder.requests.count == 100)
        #expect(server.goAwayCode() == .enhanceYourCalm)
    }

    @Test func goAwayFloodBesideAnOpenStreamEndsTheConnection() throws {
        server.send(.headers(1, Field.get))
        let rounds = try #require(rounds { _ in [.goAway()] })
        #expect(rounds <= TokenBucket.Terms.others.capacity + 1)
    }

    @Test func highestIdentifierIsServed() {
        server.send(.headers(0x7FFF_FFFF, Field.get))
        #expect(server.recorder.requests[0x7FFF_FFFF] != nil)
        server.send(.headers(0x7FFF_FFFD, Field.get))
        #expect(server.goAwayCode() == .protocolError)
    }

    @Test func responseIsNotBufferedForAClientWithoutWindow() throws {
        server.send(.settings([(4, 0)]), .headers(1, Field.get))
        let stream = try #require(server.recorder.streams[1])
        stream.send(status: 200, fields: [], contentLength: nil, endsStream: false)
        server.recorder.send([UInt8](repeating: 1, count: 64 * 1024), on: stream)
        #expect(!stream.isWritable)
        #expect(!server.replies().contains { $0.type == 0 })
    }

    // MARK: Good clients

    /// gRPC measures the bandwidth with a PING per round trip while content arrives.
    @Test func bandwidthPingsPass() throws {
        server.send(.headers(1, Field.get), .windowUpdate(0, 0x7000_0000), .windowUpdate(1, 0x7000_0000))
        let stream = try #require(server.recorder.streams[1])
        stream.send(status: 200, fields: [], contentLength: nil, endsStream: false)
        for _ in 0..<5000 {
            server.recorder.send([UInt8](repeating: 1, count: 8 * 1024), on: stream)
            #expect(server.replies().contains { $0.type == 0 })
            server.send(.ping())
        }
        #expect(server.session.failure == nil)
    }

    /// On a busy machine, messages arrive together, and gRPC's replies to all of them at once.
    @Test func repliesToMessagesThatArriveTogetherPass() throws {
        for id in 0..<UInt32(20) { server.send(.headers(2 * id + 1, Field.request("POST"), ends: false)) }
        for stream in server.recorder.streams.values {
            stream.send(status: 200, fields: [], contentLength: nil, endsStream: false)
        }
        for _ in 0..<20 {
            for stream in server.recorder.streams.values {
                server.recorder.send([UInt8](repeating: 1, count: 50 * 8), on: stream)
            }
            _ = server.replies()
            for id in server.recorder.streams.keys {
                for _ in 0..<50 { server.send(.windowUpdate(UInt32(id), 8), .windowUpdate(0, 8)) }
                server.send(.ping())
                _ = server.replies()
            }
        }
        #expect(server.session.failure == nil)
    }

    @Test func pingsOfAnIdleClientPass() {
        for _ in 0..<2000 {
            server.now += 100_000_000
            server.send(.ping())
            #expect(server.replies().map(\.type) == [6])
        }
    }

    @Test func manySmallCallsWithPingsPass() throws {
        server.recorder.onRequest = { $0.send(status: 200, fields: [], contentLength: 0, endsStream: true) }
        for round in 0..<5000 {
            server.send(.headers(2 * UInt32(round) + 1, Field.get), .ping())
            _ = server.replies()
        }
        #expect(server.session.failure == nil)
        #expect(server.session.openStreams == 0)
    }

    @Test func cancellingAPageFullOfRequestsPasses() {
        for round in 0..<3 {
            let ids = (0..<100).map { 2 * UInt32(round * 100 + $0) + 1 }
            for id in ids { server.send(.headers(id, Field.get)) }
            for id in ids { server.send(.reset(id)) }
            _ = server.replies()
            server.now += 1_000_000_000
        }
        #expect(server.session.failure == nil)
        #expect(server.session.openStreams == 0)
    }

    @Test func clientOfOurOwnMayCancelAnyNumber() throws {
        let client = UnderTest(.client)
        for _ in 0..<2000 {
            let head = try requestHead("GET / HTTP/1.1\nHost: a.example")
            let opened = client.session.open(
                head, RequestForwarding(target: head.targetBytes, host: "a.example", framing: .none), endsStream: true)
            let stream = try #require(opened)
            _ = client.replies()
            stream.reset(.cancel)
            _ = client.replies()
        }
        #expect(client.session.failure == nil)
    }
}
