// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

@testable import CountersignChannelTLS
@testable import CountersignTLS

/// TLS that writes to the socket directly.
struct SocketOutputTests {
    /// Receives at one end of a pair of sockets. Its promises succeed when the handshake is complete and when the peer
    /// has finished.
    private struct End {
        let channel: any Channel
        let tls: NIOLoopBound<TLSHandler>
        let log: NIOLockedValueBox<Recorder.Log>
        /// How many writes the channel got.
        let writes = NIOLockedValueBox(0)

        init(
            _ socket: Int32, completed: EventLoopPromise<Void>? = nil, ended: EventLoopPromise<Void>? = nil,
            _ make: @escaping @Sendable () throws -> TLSHandler
        ) async throws {
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            let writes = writes
            let parts = NIOLockedValueBox<(NIOLoopBound<TLSHandler>, NIOLockedValueBox<Recorder.Log>)?>(nil)
            channel = try await ClientBootstrap(group: loop)
                .channelOption(.allowRemoteHalfClosure, value: true)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let tls = try make()
                        let recorder = Recorder(tls)
                        recorder.onCompleted = { _ in completed?.succeed() }
                        try channel.pipeline.syncOperations.addHandlers([Probe(writes), tls, recorder, Listener(ended)])
                        parts.withLockedValue { $0 = (NIOLoopBound(tls, eventLoop: loop), recorder.log) }
                    }
                }
                .withConnectedSocket(socket).get()
            (tls, log) = try #require(parts.withLockedValue { $0 })
        }
    }

    private final class Probe: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        let writes: NIOLockedValueBox<Int>

        init(_ writes: NIOLockedValueBox<Int>) { self.writes = writes }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            writes.withLockedValue { $0 += 1 }
            context.write(data, promise: promise)
        }
    }

    private final class Listener: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        let ended: EventLoopPromise<Void>?

        init(_ ended: EventLoopPromise<Void>?) { self.ended = ended }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case TLSEvent.inputClosed = event { ended?.succeed() }
        }

        func channelInactive(context: ChannelHandlerContext) { ended?.fail(ChannelError.eof) }
    }

    /// The sockets hold less than most messages: a part of each is sent directly, and the channel gets the rest.
    @Test(arguments: Fixture.bothVersions)
    func bytesThatASmallSocketDoesNotAcceptArriveCompleteAndInOrder(version: Int32) async throws {
        var sockets: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets) == 0)
        var size: Int32 = 4096
        setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let (completed, ended) = (loop.makePromise(of: Void.self), loop.makePromise(of: Void.self))
        // If records arrive out of order, the transfer may never finish.
        let limit = loop.scheduleTask(in: .minutes(15)) {
            completed.fail(ChannelError.connectTimeout(.minutes(15)))
            ended.fail(ChannelError.connectTimeout(.minutes(15)))
        }
        defer { limit.cancel() }
        let (theirs, ours) = (try Fixture.server(), try Fixture.client(version: version))
        let server = try await End(sockets[1], ended: ended) { try TLSHandler(server: theirs, writesToSocket: true) }
        let client = try await End(sockets[0], completed: completed) {
            try TLSHandler(client: ours, host: "localhost", alpn: [], session: nil, writesToSocket: true)
        }
        try await completed.futureResult.get()

        #expect(client.writes.withLockedValue { $0 } == 0, "a handshake fits into the socket")
        let messages = (0..<400).map { index in
            String(repeating: String(index % 10), count: index % 7 == 0 ? 9000 : 10 * index)
        }
        let (channel, tls) = (client.channel, client.tls)
        for start in stride(from: 0, to: messages.count, by: 8) {
            try await channel.eventLoop.submit {
                for message in messages[start..<start + 8] {
                    if message.count < 9000 {
                        tls.value.send(ByteBuffer(string: message))
                    } else {
                        channel.writeAndFlush(ByteBuffer(string: message), promise: nil)
                    }
                }
            }.get()
        }
        channel.close(mode: .output, promise: nil)
        try await ended.futureResult.get()
        let received = server.log.withLockedValue { log in
            log.heard.compactMap { if case .bytes(let text) = $0 { text } else { nil } }.joined()
        }
        #expect(received == messages.joined())
        #expect(client.writes.withLockedValue { $0 } > 0)
        try? await channel.close().get()
        try? await server.channel.close().get()
    }
}
