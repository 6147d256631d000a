// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy

@Suite struct BulkReadDetectorTests {
    /// For each round: whether to wait after it.
    private static func waits(_ rounds: [Int], _ run: inout BulkReadDetector) -> [Bool] {
        rounds.map {
            run.bytesRead($0)
            return run.roundEnded()
        }
    }

    @Test func halfAMebibyteInOneDirectionIsWorthAWait() {
        var run = BulkReadDetector()
        #expect(Self.waits([Int](repeating: 16 * 1024, count: 31), &run).contains(true) == false)
        #expect(Self.waits([16 * 1024], &run) == [true])
    }

    @Test func alternatingDirectionsNeverWait() {
        var run = BulkReadDetector()
        for _ in 0..<1000 {
            #expect(Self.waits([100_000, 100_000, 100_000, 100_000, 100_000], &run).contains(true) == false)
            run.oppositeDirectionCarried()
        }
    }

    @Test func waitsContinueWhileTheyBringEnough() {
        var run = BulkReadDetector()
        let rounds = [600_000, 16 * 1024, 32 * 1024, 100_000, 32 * 1024 - 1, 100_000]
        #expect(Self.waits(rounds, &run) == [false, true, true, true, false, false])
    }

    @Test func aFullRoundIsFollowedByTheNextAtOnce() {
        var run = BulkReadDetector()
        let rounds = [512 * 1024 - 1, 1, 240 * 1024, 10, 240 * 1024 - 1]
        #expect(Self.waits(rounds, &run) == [false, true, false, true, true])
    }
}

/// When the ends of a tunnel read, on an embedded event loop.
@Suite struct TunnelReadingTests {
    private let bench: Bench
    private let client: EmbeddedChannel
    private let origin: EmbeddedChannel

    init() throws {
        bench = try Bench()
        client = EmbeddedChannel(loop: bench.loop)
        origin = EmbeddedChannel(loop: bench.loop)
        for channel in [client, origin] {
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }
        TunnelHandler.join(
            client: (client, ByteBuffer(), false), origin: (origin, ByteBuffer(), false),
            tally: TunnelHandler.Tally(now: 0, nil) { _ in }, services: bench.services)
    }

    /// Whether the channel is reading.
    private func reads(_ channel: EmbeddedChannel) -> Bool {
        let last = channel.options.last { $0.option is ChannelOptions.Types.AutoReadOption }
        return last.map { $0.value as? Bool == true } ?? true
    }

    /// Rounds of 16 KiB.
    private func bringOneWay(_ rounds: Int) throws {
        for _ in 0..<rounds { try origin.writeInbound(ByteBuffer(repeating: 0x61, count: 16 * 1024)) }
    }

    @Test func aWaitLastsHalfAMillisecond() throws {
        try bringOneWay(31)
        #expect(reads(origin))
        try bringOneWay(1)
        #expect(!reads(origin))
        #expect(try client.sent().utf8.count == 32 * 16 * 1024)
        bench.loop.advanceTime(by: .microseconds(499))
        #expect(!reads(origin))
        bench.loop.advanceTime(by: .microseconds(1))
        #expect(reads(origin))
        #expect(reads(client))
    }

    @Test func dataInTheOtherDirectionEndsAWait() throws {
        try bringOneWay(32)
        try client.writeInbound(ByteBuffer(string: "x"))
        #expect(reads(origin))
        bench.loop.advanceTime(by: .microseconds(500))
        try bringOneWay(31)
        #expect(reads(origin))
    }

    @Test func nothingIsReadForAPeerThatIsNotWritable() throws {
        client.isWritable = false
        client.pipeline.fireChannelWritabilityChanged()
        try bringOneWay(1)
        #expect(!reads(origin))
        client.isWritable = true
        client.pipeline.fireChannelWritabilityChanged()
        #expect(reads(origin))
    }

    @Test func theEndOfAWaitDoesNotReadForAPeerThatIsNotWritable() throws {
        try bringOneWay(32)
        client.isWritable = false
        client.pipeline.fireChannelWritabilityChanged()
        bench.loop.advanceTime(by: .microseconds(500))
        #expect(!reads(origin))
        client.isWritable = true
        client.pipeline.fireChannelWritabilityChanged()
        #expect(reads(origin))
    }
}
