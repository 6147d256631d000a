// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import NIOCore
import NIOEmbedded
import CountersignTLS

/// The proxy's whole data path: one request of a client that keeps its connection, to an origin that keeps its own, and
/// a response of 1 KiB. The embedded channels' own allocations are in it; `path-embedded` has nothing else.
enum DataPathBenchmarks {
    static let groups = [
        BenchmarkGroup(prefix: "path-embedded", make: embedded), BenchmarkGroup(prefix: "path-plain", make: plain),
        BenchmarkGroup(prefix: "path-basic", make: basic),
        BenchmarkGroup(prefix: "path-intercepted", make: intercepted),
    ]

    private static let warmUps = 100
    private static let response = HeadSamples.nginx + [UInt8](repeating: UInt8(ascii: "x"), count: 1024)
    private static let challenge = HeadSamples.challenge + [UInt8](repeating: UInt8(ascii: "x"), count: 1293)

    /// As many reads and writes on two channels that pass on what comes.
    private static func embedded() throws -> [Benchmark] {
        let loop = EmbeddedEventLoop()
        let (client, origin) = (try EmbeddedChannel.connected(on: loop), try EmbeddedChannel.connected(on: loop))
        try client.pipeline.syncOperations.addHandler(Relay(to: origin))
        try origin.pipeline.syncOperations.addHandler(Relay(to: client))
        return [try benchmark("path-embedded", client, origin)]
    }

    /// An origin that is not listed.
    private static func plain() throws -> [Benchmark] {
        let path = try DataPath(sites: "git.acme.example\n")
        path.makeOriginIdle()
        return [try benchmark("path-plain", path.client, path.origin)]
    }

    /// A listed one, in whose protection space Basic was accepted before: each request goes out with it.
    private static func basic() throws -> [Benchmark] {
        let path = try DataPath(sites: "http://\(DataPath.host) answer=basic plaintext=yes\n")
        path.makeOriginIdle()
        path.client.receive(ByteBuffer(bytes: HeadSamples.curl))
        let unasked = try path.origin.takeText()
        path.origin.receive(ByteBuffer(bytes: challenge))
        let answer = try path.origin.takeText()
        path.origin.receive(ByteBuffer(bytes: response))
        guard !unasked.contains(authorization), answer.contains(authorization), try path.client.drain() > 1024 else {
            throw SetUpFailure("the challenge for Basic is not answered")
        }
        path.client.receive(ByteBuffer(bytes: HeadSamples.curl))
        let learned = try path.origin.takeText()
        path.origin.receive(ByteBuffer(bytes: response))
        guard learned.contains(authorization), try path.client.drain() > 1024 else {
            throw SetUpFailure("what was learned is not sent")
        }
        return [try benchmark("path-basic", path.client, path.origin)]
    }

    private static let authorization = "\r\nAuthorization: Basic "

    /// TLS on both sides. What the client and the origin allocate is not counted; their time is in the figures.
    /// OpenSSL's allocations are among the proxy's, and the same for each record.
    private static func intercepted() throws -> [Benchmark] {
        let peers = try DataPathPeers(request: HeadSamples.curlInTunnel, response: response)
        let operation = peers.exchange
        for _ in 0..<warmUps { try operation() }
        return [Benchmark("path-intercepted", .exactly, operation)]
    }

    /// `client` and `origin` are the near ends; what goes in there comes out at the other.
    private static func benchmark(
        _ name: String, _ client: EmbeddedChannel, _ origin: EmbeddedChannel
    ) throws -> Benchmark {
        let (request, response) = (ByteBuffer(bytes: HeadSamples.curl), ByteBuffer(bytes: response))
        let operation = {
            client.receive(request)
            guard try origin.drain() > 0 else { throw SetUpFailure("\(name): the origin hears nothing") }
            origin.receive(response)
            guard try client.drain() > 1024 else { throw SetUpFailure("\(name): the client hears nothing") }
        }
        for _ in 0..<warmUps { try operation() }
        return Benchmark(name, .exactly, operation)
    }
}

/// Writes what comes to another channel.
private final class Relay: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let other: EmbeddedChannel

    init(to other: EmbeddedChannel) { self.other = other }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        other.pipeline.syncOperations.write(data, promise: nil)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        other.pipeline.syncOperations.flush()
    }
}
