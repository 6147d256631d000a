// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import CountersignSitePolicy
import CountersignChannelTLS
import CountersignTLS
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// A proxy and an https origin with an untrusted certificate, both on loopback, each on its own event loop.
final class TrustBench: Sendable {
    let policy: CurrentPolicy
    let log: String
    let leaf: [UInt8]
    let origin: Origin
    let seen = NIOLockedValueBox<[String]>([])
    /// How far the proxy's clock is ahead, in seconds.
    let later = NIOLockedValueBox<Int64>(0)
    /// Succeeds when the origin has received a request, before it responds.
    let meanwhile = NIOLockedValueBox<(@Sendable () -> Void)?>(nil)
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let originChannel: any Channel
    private let listener: ProxyListener
    let port: Int
    private let makePolicy: @Sendable ([TrustException], UInt64) throws -> Policy

    /// `isPlainToo`: there is an http line for the same host and port. `answersWith`: the origin challenges with Basic,
    /// and this is the enrolled password of `jdoe`.
    init(
        isListed: Bool = true, isPlainToo: Bool = false, password: String? = nil,
        delegate: (any ServerTrustDecider)? = nil,
        patience: TimeAmount = .seconds(30)
    ) async throws {
        let key = try PrivateKey.generateP256()
        let now = WallClock.now().seconds
        let chain = try InterceptionAuthority.throwaway(
            mirroring: nil, host: "localhost", key: key, issuerName: "nobody", at: now)
        leaf = try #require(chain.first).sha256Fingerprint
        let tls = try TLSServerContext(chain: chain, key: key, host: "localhost")
        let (seen, needsPassword, meanwhile) = (seen, password != nil, meanwhile)
        originChannel = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers([
                        TLSHandler(server: tls),
                        TrustOrigin(seen: seen, needsPassword: needsPassword, meanwhile: meanwhile),
                    ])
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let originPort = UInt16(try #require(originChannel.localAddress?.port))
        let origin = Origin(scheme: .https, host: "localhost", port: originPort)
        self.origin = origin
        let lines = (isListed ? "\(origin)\n" : "") + (isPlainToo ? "\(origin.withoutTLS) plaintext=yes\n" : "")
        let sites = try SiteList(files: [("t.sites", lines)])
        let authority = try InterceptionAuthority.issuedForTest(at: now)
        let credentials = password.map {
            [
                "enrollment": PasswordCredential(
                    name: "enrollment", user: "jdoe", password: Secret(utf8: $0), generation: 1)
            ]
        }
        makePolicy = { standing, generation in
            Policy(
                sites: sites, enrolled: .open(credentials: credentials ?? [:], identities: []),
                originTLS: try TLSClientContext(
                    verifier: ChainVerifier(anchors: try TrustAnchors(system: false)),
                    now: { WallClock.now().seconds }),
                interceptionAuthority: authority, trustExceptions: [origin: standing], generation: generation)
        }
        policy = CurrentPolicy(try makePolicy([], 1))
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.trustQuestion = patience
        log = "/tmp/countersign-trust-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).log"
        let services = ProxyServices(
            configuration: configuration, policy: policy, accessLog: try AccessLog(path: log) { _ in },
            serverTrustDecider: delegate, pseudonym: "csn-test",
            wallClock: { [later] in WallClock.now().seconds + later.withLockedValue { $0 } })
        listener = try await ProxyListener(services: services, group: group) { _ in }
        let name = try #require(try await listener.listen().first)
        port = try #require(Int(name.split(separator: ":")[1]))
    }

    func stop() async throws {
        await listener.stop()
        try await originChannel.close().get()
        try await group.shutdownGracefully()
        unlink(log)
    }

    func decide(_ standing: [TrustException], generation: UInt64) throws {
        policy.replace(with: try makePolicy(standing, generation))
    }

    // MARK: A client

    var get: String { "GET \(origin)/x HTTP/1.1\r\nHost: localhost:\(origin.port)\r\n" }
    var connect: String { "CONNECT localhost:\(origin.port) HTTP/1.1\r\nHost: localhost:\(origin.port)\r\n\r\n" }

    func client() async throws -> TrustClient { try await TrustClient(port: port, group: group) }

    /// The response to one request on a client connection of its own.
    func answer(_ fields: String = "") async throws -> String {
        let client = try await client()
        try await client.send(get + fields + "Connection: close\r\n\r\n")
        return try await client.rest()
    }

    /// The lines of the access log.
    var lines: [String] {
        guard let file = fopen(log, "r") else { return [] }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

extension InterceptionAuthority {
    static func issuedForTest(at now: Int64) throws -> InterceptionAuthority {
        let (root, key) = try newRoot(at: now)
        return try issued(by: root, rootKey: key, permitting: ["localhost"], at: now)
    }
}

/// Responds with 200 to every request, or only to those with an `Authorization`.
private final class TrustOrigin: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let seen: NIOLockedValueBox<[String]>
    private let needsPassword: Bool
    private let meanwhile: NIOLockedValueBox<(@Sendable () -> Void)?>
    private var input = ""

    init(
        seen: NIOLockedValueBox<[String]>, needsPassword: Bool,
        meanwhile: NIOLockedValueBox<(@Sendable () -> Void)?>
    ) {
        self.seen = seen
        self.needsPassword = needsPassword
        self.meanwhile = meanwhile
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        input += String(buffer: unwrapInboundIn(data))
        while let end = input.firstRange(of: "\r\n\r\n") {
            let head = String(input[..<end.lowerBound])
            input = String(input[end.upperBound...])
            seen.withLockedValue { $0.append(head) }
            meanwhile.withLockedValue { $0 }?()
            let isIn = !needsPassword || head.lowercased().contains("authorization: basic")
            let response =
                isIn
                ? "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwelcome"
                : "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n"
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: response)), promise: nil)
        }
    }
}

/// A raw client connection to the proxy.
final class TrustClient: Sendable {
    private let channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>
    private let text = NIOLockedValueBox("")
    private let reading: Task<Void, any Error>

    init(port: Int, group: MultiThreadedEventLoopGroup) async throws {
        let channel = try await ClientBootstrap(group: group).connect(host: "127.0.0.1", port: port) { channel in
            channel.eventLoop.makeCompletedFuture {
                try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
            }
        }
        self.channel = channel
        let text = text
        reading = Task {
            try await channel.executeThenClose { inbound, _ in
                for try await bytes in inbound { text.withLockedValue { $0 += String(buffer: bytes) } }
            }
        }
    }

    func send(_ text: String) async throws {
        try await channel.channel.writeAndFlush(ByteBuffer(string: text)).get()
    }

    func close() async { try? await channel.channel.close().get() }

    /// Everything received, as soon as it ends in `suffix` and contains it `count` times.
    func until(_ suffix: String, times: Int = 1) async throws -> String {
        while true {
            let soFar = text.withLockedValue { $0 }
            if soFar.hasSuffix(suffix), soFar.components(of: suffix) >= times { return soFar }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Everything received until the proxy closes.
    func rest() async throws -> String {
        _ = await reading.result
        return text.withLockedValue { $0 }
    }
}
