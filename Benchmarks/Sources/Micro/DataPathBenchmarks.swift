// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignEvents
import NIOCore
import NIOEmbedded
import CountersignTLS

/// The proxy's whole data path: one request and a response of 1 KiB, on kept connections to the client and the origin.
/// The figures include the allocations of the embedded channels, which `path-embedded` measures alone.
enum DataPathBenchmarks {
    static let groups = [
        BenchmarkGroup(prefix: "path-embedded", make: embedded), BenchmarkGroup(prefix: "path-plain", make: plain),
        BenchmarkGroup(prefix: "path-basic", make: basic), BenchmarkGroup(prefix: "path-watched", make: watched),
        BenchmarkGroup(prefix: "path-page-open", make: pageOpen),
        BenchmarkGroup(prefix: "path-digest", make: digest),
        BenchmarkGroup(prefix: "path-intercepted", make: intercepted),
        BenchmarkGroup(prefix: "path-bearer", make: bearer),
    ]

    private static let warmUps = 100
    private static let response = HeadSamples.nginx + [UInt8](repeating: UInt8(ascii: "x"), count: 1024)

    /// The same number of reads and writes on two channels that only relay.
    private static func embedded() throws -> [Benchmark] {
        let loop = EmbeddedEventLoop()
        let (client, origin) = (try EmbeddedChannel.connected(on: loop), try EmbeddedChannel.connected(on: loop))
        try client.pipeline.syncOperations.addHandler(Relay(to: origin))
        try origin.pipeline.syncOperations.addHandler(Relay(to: client))
        return [try benchmark("path-embedded", client, origin)]
    }

    /// A request to an origin that is not listed.
    private static func plain() throws -> [Benchmark] {
        let path = try DataPath(sites: "git.acme.example\n")
        path.makeOriginIdle()
        return [try benchmark("path-plain", path.client, path.origin)]
    }

    /// A request to a listed origin in a protection space that accepted Basic before, and so gets `Authorization` at
    /// once.
    private static func basic() throws -> [Benchmark] { try answered("basic", HeadSamples.challenge) }

    /// The same with three readers of events, who take each at once, and the inventory of sites.
    private static func watched() throws -> [Benchmark] {
        let events = EventBoard()
        let readers = (0..<3).map { _ in events.reader() }
        return try answered("basic", HeadSamples.challenge, events, named: "path-watched") {
            for reader in readers where reader.next(timeout: .never)?.count != 1 {
                throw SetUpFailure("a reader has not received the event")
            }
        }
    }

    /// The same with one reader, who makes the bytes of the page's stream from each event.
    private static func pageOpen() throws -> [Benchmark] {
        let events = EventBoard()
        let reader = events.reader()
        return try answered("basic", HeadSamples.challenge, events, named: "path-page-open") {
            guard let batch = reader.next(timeout: .never), batch.count == 1, batch[0].line.count > 100 else {
                throw SetUpFailure("the reader has not received the event")
            }
        }
    }

    /// The same for Digest, whose field is computed for each request.
    private static func digest() throws -> [Benchmark] { try answered("digest", HeadSamples.digestChallenge) }

    private static func answered(
        _ scheme: String, _ head: [UInt8], _ events: EventBoard? = nil, named name: String? = nil,
        afterEach: @escaping () throws -> Void = {}
    ) throws -> [Benchmark] {
        let challenge = head + [UInt8](repeating: UInt8(ascii: "x"), count: 1293)
        let path = try DataPath(
            sites: "http://\(DataPath.host) answer=\(scheme) plaintext=yes\n", events: events,
            inventory: events.map { _ in SiteInventory() })
        path.makeOriginIdle()
        path.client.receive(ByteBuffer(bytes: HeadSamples.curl))
        // Output with a secret is overwritten once it is written, so only its length can be checked.
        let unasked = try path.origin.drain()
        path.origin.receive(ByteBuffer(bytes: challenge))
        let answer = try path.origin.drain()
        path.origin.receive(ByteBuffer(bytes: response))
        guard unasked > 0, answer > unasked, try path.client.drain() > 1024 else {
            throw SetUpFailure("the \(scheme) challenge is not answered")
        }
        try afterEach()
        path.client.receive(ByteBuffer(bytes: HeadSamples.curl))
        let learned = try path.origin.drain()
        path.origin.receive(ByteBuffer(bytes: response))
        guard learned == answer, try path.client.drain() > 1024 else {
            throw SetUpFailure("the accepted credential is not sent")
        }
        try afterEach()
        return [try benchmark(name ?? "path-\(scheme)", path.client, path.origin, afterEach)]
    }

    /// A request through TLS on both sides. The figures include the time of the client and the origin, but not their
    /// allocations. OpenSSL's allocations for the proxy are included; they are the same for each record.
    private static func intercepted() throws -> [Benchmark] {
        let peers = try DataPathPeers(request: HeadSamples.curlInTunnel, response: response)
        let operation = peers.exchange
        for _ in 0..<warmUps { try operation() }
        return [Benchmark("path-intercepted", .exactly, operation)]
    }

    /// The same in a protection space that accepted Bearer before, which is not sent without TLS.
    private static func bearer() throws -> [Benchmark] {
        let peers = try DataPathPeers(
            request: HeadSamples.curlInTunnel, response: response, options: "answer=bearer credential=api")
        try peers.learn(HeadSamples.bearerChallenge)
        let operation = peers.exchange
        for _ in 0..<warmUps { try operation() }
        return [Benchmark("path-bearer", .exactly, operation)]
    }

    /// `client` and `origin` are the proxy's ends of the connections; bytes received at one are sent at the other.
    private static func benchmark(
        _ name: String, _ client: EmbeddedChannel, _ origin: EmbeddedChannel,
        _ afterEach: @escaping () throws -> Void = {}
    ) throws -> Benchmark {
        let (request, response) = (ByteBuffer(bytes: HeadSamples.curl), ByteBuffer(bytes: response))
        let operation = {
            client.receive(request)
            guard try origin.drain() > 0 else { throw SetUpFailure("\(name): the origin receives nothing") }
            origin.receive(response)
            guard try client.drain() > 1024 else { throw SetUpFailure("\(name): the client receives nothing") }
            try afterEach()
        }
        for _ in 0..<warmUps { try operation() }
        return Benchmark(name, .exactly, operation)
    }
}

/// Writes the bytes it receives to another channel.
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
