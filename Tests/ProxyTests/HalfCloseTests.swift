// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import Glibc
import NIOCore
import NIOPosix
import CountersignTLS
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// Over real sockets: a client that has half-closed still receives everything.
@Suite struct HalfCloseTests {
    private static let byteCount = 8 * 1024 * 1024

    /// Reads until the client half-closes, then sends `head` and ``byteCount`` bytes and closes.
    private final class Origin: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        let head: String
        let waitsForEnd: Bool
        var answered = false

        init(head: String, waitsForEnd: Bool) {
            self.head = head
            self.waitsForEnd = waitsForEnd
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if !waitsForEnd { answer(context) }
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if waitsForEnd, case ChannelEvent.inputClosed = event { answer(context) }
        }

        private func answer(_ context: ChannelHandlerContext) {
            guard !answered else { return }
            answered = true
            var bytes = ByteBuffer(string: head)
            bytes.writeRepeatingByte(0x61, count: HalfCloseTests.byteCount)
            let channel = context.channel
            context.writeAndFlush(wrapOutboundOut(bytes)).whenComplete { _ in channel.close(promise: nil) }
        }
    }

    private static func origin(head: String, waitsForEnd: Bool) async throws -> any Channel {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Origin(head: head, waitsForEnd: waitsForEnd))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    /// Sends `request`, half-closes and reads to the end. Returns the number of bytes read.
    private static func exchange(_ request: String, with port: Int) async throws -> Int {
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: port)
        return try await NIOThreadPool.singleton.runIfActive {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            var patience = timeval(tv_sec: 20, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
            // Small, so that the proxy still has much to send when the origin has finished.
            var window: Int32 = 32 * 1024
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &window, socklen_t(MemoryLayout<Int32>.size))
            guard address.withSockAddr({ connect(descriptor, $0, socklen_t($1)) }) == 0 else { return -1 }
            let bytes = Array(request.utf8)
            guard send(descriptor, bytes, bytes.count, 0) == bytes.count else { return -1 }
            shutdown(descriptor, Int32(SHUT_WR))
            var total = 0
            var buffer = [UInt8](repeating: 0, count: 16 * 1024)
            while true {
                let count = recv(descriptor, &buffer, buffer.count, 0)
                guard count > 0 else { return count == 0 ? total : -1 }
                total += count
            }
        }
    }

    private static func proxied(_ request: (Int) -> String, head: String, waitsForEnd: Bool) async throws -> Int {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let origin = try await origin(head: head, waitsForEnd: waitsForEnd)
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.drainSeconds = 0
        let policy = Policy(
            sites: .empty, enrolled: .open(credentials: [:], identities: []),
            originTLS: try TLSClientContext(
                verifier: ChainVerifier(anchors: try TrustAnchors(system: false)), now: { 1_800_000_000 }),
            interceptionAuthority: nil, generation: 1)
        let services = ProxyServices(
            configuration: configuration, policy: CurrentPolicy(policy), accessLog: nil, pseudonym: "csn-test",
            wallClock: { 1_800_000_000 })
        let listener = try await ProxyListener(services: services, group: group) { _ in }
        let name = try #require(try await listener.listen().first)
        let port = try #require(name.split(separator: ":").last.flatMap { Int($0) })
        let count = try await exchange(request(try #require(origin.localAddress?.port)), with: port)
        await listener.stop()
        try await origin.close()
        try await group.shutdownGracefully()
        return count
    }

    @Test func aTunnelForwardsTheClientsHalfCloseAndThenEverythingFromTheOrigin() async throws {
        let count = try await Self.proxied(
            { "CONNECT 127.0.0.1:\($0) HTTP/1.1\r\nHost: a\r\n\r\nhello" }, head: "", waitsForEnd: true)
        #expect(count == MadeLength.tunnelEstablished + Self.byteCount)
    }

    @Test func aResponseWithoutALengthIsComplete() async throws {
        let head = "HTTP/1.1 200 OK\r\nDate: x\r\n\r\n"
        let count = try await Self.proxied(
            { "GET http://127.0.0.1:\($0)/ HTTP/1.1\r\nHost: a\r\n\r\n" }, head: head, waitsForEnd: false)
        #expect(count == head.utf8.count + "Connection: close\r\nVia: 1.1 csn-test\r\n".utf8.count + Self.byteCount)
    }

    private enum MadeLength {
        static let tunnelEstablished = "HTTP/1.1 200 Connection established\r\n\r\n".utf8.count
    }
}
