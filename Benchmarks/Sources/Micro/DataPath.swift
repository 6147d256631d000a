// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import NIOCore
import NIOEmbedded
import CountersignSitePolicy
import CountersignTLS

@testable import CountersignProxy
@testable import CountersignUpstream

/// A client's connection to the proxy and the proxy's to an origin, as they are in it but for the sockets: embedded
/// channels on one loop.
struct DataPath {
    static let host = "intranet.acme.example"
    /// 2026-01-01, in seconds since 1970.
    static let now: Int64 = 1_767_225_600

    let client: EmbeddedChannel
    let connection: ClientConnection
    let origin: EmbeddedChannel
    let originConnection: OriginConnection
    private let services: LoopServices
    private let route: Route

    /// `sites` is the text of a list. `originTLS` is for connections to https origins; without one the origin is http.
    init(sites: String, originTLS: TLSClientContext? = nil) throws {
        let verifier = ChainVerifier(anchors: try TrustAnchors(system: false))
        let policy = Policy(
            sites: try SiteList(files: [("work.sites", sites)]),
            enrollment: .open(credentials: ["enrollment": ChallengeBenchmarks.credential], identities: []),
            originTLS: try originTLS ?? TLSClientContext(verifier: verifier) { Self.now }, authority: nil,
            generation: 1)
        let shared = ProxyServices(
            configuration: ProxyConfiguration(), policy: CurrentPolicy(policy), accessLog: nil,
            pseudonym: "countersign", wallClock: { Self.now })
        let loop = EmbeddedEventLoop()
        services = LoopServices(shared: shared, loop: loop)
        let process = ClientProcess(uid: 1000)
        connection = ClientConnection(services: services, process: process, addresses: nil)
        client = try EmbeddedChannel.connected(on: loop)
        try client.pipeline.syncOperations.addHandler(connection)

        let isHTTPS = originTLS != nil
        let place = Origin(scheme: isHTTPS ? .https : .http, host: Self.host, port: isHTTPS ? 443 : 80)
        route = services.route(to: place, for: process.uid)
        origin = try EmbeddedChannel.connected(on: loop)
        let spare = services.spare
        let tls = try originTLS.map {
            try TLSHandler(client: $0, host: Self.host, alpn: ["http/1.1"], session: nil, spare: spare)
        }
        originConnection = OriginConnection(place: place.authority, tlsHandler: tls, spare: spare)
        try origin.pipeline.syncOperations.addHandlers((tls.map { [$0] } ?? []) + [originConnection])
    }

    /// The client's TLS is up, and requests may come through it.
    var isIntercepted: Bool {
        guard case .intercepted = connection.role, case .head = connection.phase else { return false }
        return true
    }

    /// From here on the connection to the origin may be used, as one that has served before.
    func makeOriginIdle() {
        route.slot(under: .verified, mayBeAnswered: true).giveBack(originConnection, now: services.now)
    }

    /// The client's connection becomes that of an intercepted site, as after a CONNECT; its TLS comes next.
    func intercept(with leaf: TLSServerContext) throws {
        connection.intercept(.init(origin: route.origin, pin: nil), tls: leaf)
        guard try client.drain() > 0 else { throw SetUpFailure("the tunnel is not established") }
    }
}

extension EmbeddedChannel {
    /// A channel that is active and has no handler.
    static func connected(on loop: EmbeddedEventLoop) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
        return channel
    }

    /// `bytes` come from the network, in one read.
    func receive(_ bytes: ByteBuffer) {
        pipeline.syncOperations.fireChannelRead(NIOAny(bytes))
        pipeline.syncOperations.fireChannelReadComplete()
    }

    /// Drops what was flushed to the network, and says how many bytes it was.
    func drain() throws -> Int {
        var count = 0
        while let piece = try readOutbound(as: ByteBuffer.self) { count += piece.readableBytes }
        return count
    }

    /// What was flushed to the network, as text.
    func takeText() throws -> String {
        var text = ""
        while let piece = try readOutbound(as: ByteBuffer.self) { text += String(buffer: piece) }
        return text
    }
}
