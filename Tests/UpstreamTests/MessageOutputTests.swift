// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import NIOCore
import NIOEmbedded
import NIOPosix
import CountersignChannelTLS
import Testing

@testable import CountersignUpstream

/// A handler that writes only with a ``MessageOutput``.
private final class Writer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    let output = MessageOutput(spare: SpareBuffer())
    private(set) var context: ChannelHandlerContext?

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        output.open(context, tls: nil, isNextToSocket: true)
    }
}

/// A channel on one end of a pair of sockets. The test uses the other end.
private struct Pair {
    let channel: any Channel
    let writer: NIOLoopBound<Writer>
    let peer: Int32
    let number: Int32

    init() async throws {
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        var size: Int32 = 4096
        setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        // A high descriptor. The system assigns the lowest free ones, so that nothing else reuses it by chance.
        let own = fcntl(ends[0], F_DUPFD_CLOEXEC, 800)
        try #require(own >= 800)
        close(ends[0])
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        channel = try await ClientBootstrap(group: loop).withConnectedSocket(own).get()
        let channel = channel
        writer = try await loop.submit {
            let writer = Writer()
            try channel.pipeline.syncOperations.addHandler(writer)
            return NIOLoopBound(writer, eventLoop: loop)
        }.get()
        peer = ends[1]
        number = own
    }

    /// The bytes received so far.
    func receivedNow() -> [UInt8] { Self.read(peer, flags: Int32(MSG_DONTWAIT)) }

    /// The bytes received until the end, which are read on a separate thread.
    func received() async -> [UInt8] {
        let peer = peer
        return await withCheckedContinuation { continuation in
            let thread = Thread { continuation.resume(returning: Self.read(peer, flags: 0)) }
            thread.start()
        }
    }

    private static func read(_ peer: Int32, flags: Int32) -> [UInt8] {
        var all: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = recv(peer, &room, room.count, flags)
            if count <= 0 { return all }
            all += room[..<count]
        }
    }
}

@Suite(.serialized) struct MessageOutputTests {
    /// Fills the socket with messages of `sizes`, so that the channel holds unsent bytes. Then the peer reads on the
    /// channel's own loop, which makes room in the socket before the channel can write.
    @Test(arguments: [[64 * 1024], [Int](repeating: 1000, count: 40)])
    func laterBytesDoNotOvertakeUnsentOnes(sizes: [Int]) async throws {
        let pair = try await Pair()
        let (channel, writer) = (pair.channel, pair.writer)
        let messages = ([10] + sizes + [20]).enumerated().map { [UInt8](repeating: UInt8($0), count: $1) }
        var received = try await channel.eventLoop.submit {
            var received: [UInt8] = []
            for (index, message) in messages.enumerated() {
                if index == 1 || index == messages.count - 1 { received += pair.receivedNow() }
                writer.value.output.write(ByteBuffer(bytes: message))
                writer.value.output.flush()
            }
            return received
        }.get()
        #expect(received.count > 10)
        // Closes after everything was written. A plain close would drop unsent bytes.
        channel.writeAndFlush(ByteBuffer()).whenComplete { _ in channel.close(promise: nil) }
        received += await pair.received()
        #expect(received == Array(messages.joined()))
        close(pair.peer)
    }

    private final class Probe: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        var writes = 0

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            writes += 1
            context.write(data, promise: promise)
        }
    }

    @Test func bytesThatTheSocketAcceptsBypassTheChannel() async throws {
        let pair = try await Pair()
        let (channel, writer) = (pair.channel, pair.writer)
        let (received, writes) = try await channel.eventLoop.submit {
            let probe = Probe()
            try channel.pipeline.syncOperations.addHandler(probe, position: .first)
            writer.value.output.write(Array("a ".utf8))
            writer.value.output.write(ByteBuffer(string: "whole"))
            writer.value.output.flush()
            let received = pair.receivedNow()
            channel.close(promise: nil)
            return (received, probe.writes)
        }.get()
        #expect(String(decoding: received, as: UTF8.self) == "a whole")
        #expect(writes == 0)
        close(pair.peer)
    }

    /// As in ``TLSHandler``, which relies on this alone.
    @Test func nothingIsSentWhileTheChannelHoldsUnsentBytes() async throws {
        let pair = try await Pair()
        let (channel, writer) = (pair.channel, pair.writer)
        let sent = try await channel.eventLoop.submit {
            let context = try #require(writer.value.context)
            var socket = try #require(SocketOutput(channel))
            var bytes = ByteBuffer(repeating: 1, count: 10)
            var sent = [socket.send(&bytes, in: context)]
            bytes = ByteBuffer(repeating: 2, count: 256 * 1024)
            sent.append(socket.send(&bytes, in: context))
            channel.writeAndFlush(bytes, promise: nil)
            #expect(pair.receivedNow().count > 10)
            bytes = ByteBuffer(repeating: 3, count: 10)
            sent.append(socket.send(&bytes, in: context))
            channel.close(promise: nil)
            return sent
        }.get()
        #expect(sent == [true, false, false])
        close(pair.peer)
    }

    @Test func nothingIsSentToAReusedDescriptor() async throws {
        let pair = try await Pair()
        let (channel, writer) = (pair.channel, pair.writer)
        try await channel.close().get()
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0, &ends) == 0)
        let other = fcntl(ends[0], F_DUPFD_CLOEXEC, pair.number)
        try #require(other == pair.number)
        try await channel.eventLoop.submit {
            writer.value.output.write(Array("of another".utf8))
            writer.value.output.flush()
        }.get()
        var byte: UInt8 = 0
        #expect(recv(ends[1], &byte, 1, 0) == -1 && errno == EAGAIN)
        for end in [ends[0], ends[1], other, pair.peer] { close(end) }
    }

    @Test func channelWithoutASocketWritesItself() throws {
        let channel = EmbeddedChannel()
        let writer = Writer()
        try channel.pipeline.syncOperations.addHandler(writer)
        writer.output.write(Array("a ".utf8))
        writer.output.write(ByteBuffer(string: "whole"))
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
        writer.output.flush()
        #expect(try channel.readOutbound(as: ByteBuffer.self).map(String.init(buffer:)) == "a whole")
        _ = try channel.finish()
    }
}
