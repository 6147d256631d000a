// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignCryptography
import CountersignEvents
import NIOCore
import NIOEmbedded
import CountersignSitePolicy
import CountersignChannelTLS
import CountersignTLS

@testable import CountersignAnswering
@testable import CountersignProxy
@testable import CountersignUpstream

/// The proxy's connections to a client and to an origin, with their real handlers on embedded channels of one event
/// loop instead of sockets.
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

    /// `sites` is the text of an allowed-sites list. With `originTLS` the origin is https, without it http.
    init(
        sites: String, originTLS: TLSClientContext? = nil, events: EventBoard? = nil, inventory: SiteInventory? = nil
    ) throws {
        let verifier = ChainVerifier(anchors: try TrustAnchors(system: false))
        let policy = Policy(
            sites: try SiteList(files: [("work.sites", sites)]),
            enrolled: .open(
                credentials: ["enrollment": ChallengeBenchmarks.credential],
                tokens: ["api": ChallengeBenchmarks.token], identities: []),
            originTLS: try originTLS ?? TLSClientContext(verifier: verifier) { Self.now }, interceptionAuthority: nil,
            generation: 1)
        let shared = ProxyServices(
            configuration: ProxyConfiguration(), policy: CurrentPolicy(policy), accessLog: nil,
            events: events, inventory: inventory, pseudonym: "countersign", wallClock: { Self.now })
        let loop = EmbeddedEventLoop()
        services = LoopServices(shared: shared, loop: loop)
        let process = ClientProcess(uid: 1000)
        connection = ClientConnection(services: services, process: process, addresses: nil)
        client = try EmbeddedChannel.connected(on: loop)
        try client.pipeline.syncOperations.addHandler(connection)

        let isHTTPS = originTLS != nil
        let place = Origin(scheme: isHTTPS ? .https : .http, host: Self.host, port: isHTTPS ? 443 : 80)
        route = services.route(to: place, for: RouteClient(principal: process.uid))
        origin = try EmbeddedChannel.connected(on: loop)
        let spare = services.spare
        let tls = try originTLS.map {
            try TLSHandler(client: $0, host: Self.host, alpn: ["http/1.1"], session: nil, spare: spare)
        }
        originConnection = OriginConnection(place: place.authority, tlsHandler: tls, spare: spare)
        try origin.pipeline.syncOperations.addHandlers((tls.map { [$0] } ?? []) + [originConnection])
    }

    /// The client's TLS handshake is done, and the connection waits for a request.
    var isIntercepted: Bool {
        guard case .inside = connection.session.role, case .head = connection.phase else { return false }
        return true
    }

    /// Puts the connection to the origin into the pool, as one that is idle.
    func makeOriginIdle() {
        route.slot(under: .verified, mayBeAnswered: true).giveBack(originConnection, now: services.now)
    }

    /// Makes the client's connection one to an intercepted site, as after a CONNECT. The client's TLS handshake is
    /// next.
    func intercept(with leaf: TLSServerContext) throws {
        connection.intercept(.init(origin: route.origin), tls: leaf, isAccepted: false)
        guard try client.drain() > 0 else { throw SetUpFailure("the tunnel is not established") }
    }
}

extension EmbeddedChannel {
    /// An active channel without handlers.
    static func connected(on loop: EmbeddedEventLoop) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
        return channel
    }

    /// Delivers `bytes` to the pipeline as one read from the network.
    func receive(_ bytes: ByteBuffer) {
        pipeline.syncOperations.fireChannelRead(NIOAny(bytes))
        pipeline.syncOperations.fireChannelReadComplete()
    }

    /// Discards the bytes flushed to the network and returns their count.
    func drain() throws -> Int {
        var count = 0
        while let piece = try readOutbound(as: ByteBuffer.self) { count += piece.readableBytes }
        return count
    }
}
