// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignChallenges
import CountersignCryptography
import CountersignHTTP1
import CountersignParents
import NIOCore
import NIOEmbedded
import CountersignSitePolicy
import CountersignTLS

@testable import CountersignAnswering
@testable import CountersignProxy
@testable import CountersignUpstream

/// A client connection and idle origin connections on one embedded event loop, without a socket between them.
final class Bench {
    static let uid: UInt32 = 1000
    static let origin = Origin(scheme: .http, host: "a.example", port: 80)

    let loop = EmbeddedEventLoop()
    let services: LoopServices
    let client: EmbeddedChannel
    let connection: ClientConnection
    private let uid: UInt32

    /// `sites` is the text of an allowed-sites list; `password` is that of the credential `enrollment` of `jdoe`.
    init(
        sites: String = "", password: String? = nil, identities: [Identity] = [], token: String? = nil,
        standing: [Origin: [TrustException]] = [:], addresses: (client: SocketAddress, server: SocketAddress)? = nil,
        spoolLimitBytes: Int? = nil, sessions: SessionStore? = nil, uid: UInt32 = Bench.uid,
        brokerCookies: BrokerCookies = .none, brokerAccounts: [String: BrokerCookies.Account] = [:],
        lockReason: String? = nil, accessLog: AccessLog? = nil
    ) throws {
        self.uid = uid
        var configuration = ProxyConfiguration()
        if let spoolLimitBytes { configuration.spoolLimitBytes = spoolLimitBytes }
        configuration.clientTokens = token.map { [ClientToken(Secret(utf8: $0))] } ?? []
        let policy = try Self.policy(
            sites: sites, password: password, identities: identities, standing: standing,
            brokerAccounts: brokerAccounts, lockReason: lockReason)
        let shared = ProxyServices(
            configuration: configuration, policy: CurrentPolicy(policy), accessLog: accessLog, sessions: sessions,
            brokerCookies: brokerCookies, pseudonym: "csn-test",
            wallClock: { 1_800_000_000 })
        services = LoopServices(shared: shared, loop: loop)
        client = EmbeddedChannel(handler: Wire(isNarrow: false), loop: loop)
        connection = ClientConnection(services: services, process: ClientProcess(uid: uid), addresses: addresses)
        try client.pipeline.syncOperations.addHandler(connection)
        try client.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    /// A client of a proxy with this policy, and without a way to origins but by connections that are idle, or with
    /// these `routes`.
    init(_ policy: Policy, accessLog: AccessLog? = nil, routes: any RouteFinding = NoWay()) throws {
        uid = Bench.uid
        let shared = ProxyServices(
            configuration: ProxyConfiguration(), policy: CurrentPolicy(policy), accessLog: accessLog, routes: routes,
            pseudonym: "csn-test", wallClock: { 1_800_000_000 })
        services = LoopServices(shared: shared, loop: loop)
        client = EmbeddedChannel(handler: Wire(isNarrow: false), loop: loop)
        connection = ClientConnection(services: services, process: ClientProcess(uid: uid), addresses: nil)
        try client.pipeline.syncOperations.addHandler(connection)
        try client.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    /// A policy as in ``init(sites:password:identities:token:exceptions:addresses:)``.
    static func policy(
        sites: String, password: String?, identities: [Identity] = [], standing: [Origin: [TrustException]] = [:],
        brokerAccounts: [String: BrokerCookies.Account] = [:], lockReason: String? = nil
    ) throws -> Policy {
        var credentials: [String: PasswordCredential] = [:]
        if let password {
            credentials["enrollment"] = PasswordCredential(
                name: "enrollment", user: "jdoe", password: Secret(utf8: password), generation: 1)
        }
        return Policy(
            sites: try SiteList(files: [("t.sites", sites)]),
            enrolled: lockReason.map { .closed(reason: Refusal(.locked, $0)) }
                ?? .open(credentials: credentials, identities: identities),
            brokerAccounts: brokerAccounts,
            originTLS: try TLSClientContext(
                verifier: ChainVerifier(anchors: try TrustAnchors(system: false)), now: { 1_800_000_000 }),
            interceptionAuthority: nil, trustExceptions: standing, generation: 1)
    }

    /// An idle connection to ``origin``, for requests that may carry the enrolled credential, or must not.
    /// `checks` is the decision about a certificate that it requested. `isNarrow`: its network takes one write between
    /// two flushes. `forwarder`: the parent that it leads to.
    func idleOrigin(
        withCredential: Bool = false, checks: ThreeChecks? = nil, isNarrow: Bool = false, forwarder: Origin? = nil
    ) throws -> EmbeddedChannel {
        let (channel, connection) = try origin(isNarrow: isNarrow, forwarder: forwarder)
        connection.certificateChecks = checks
        services.pool.slot(for: Self.key(withCredential: withCredential)).giveBack(connection, now: services.now)
        return channel
    }

    /// An idle connection to `origin`, for requests that may not carry a credential.
    func idleConnection(to origin: Origin) throws -> EmbeddedChannel {
        let (channel, connection) = try self.origin()
        let key = UpstreamKey(origin: origin, trust: .verified, credential: nil, principal: uid, settings: 1)
        services.pool.slot(for: key).giveBack(connection, now: services.now)
        return channel
    }

    /// A connection to `origin`, whose certificate does not verify, and which the client accepts.
    func untrustedConnection(to origin: Origin, leaf: [UInt8]) throws -> EmbeddedChannel {
        let (channel, connection) = try self.origin()
        let key = UpstreamKey(
            origin: origin, trust: TrustOutcome.client(leaf: leaf).key, credential: nil, principal: uid, settings: 1)
        self.connection.session.bind(connection, for: key)
        return channel
    }

    /// A connection to ``origin`` that belongs to this client, for requests that must not carry the enrolled
    /// credential.
    func boundOrigin() throws -> EmbeddedChannel {
        let (channel, origin) = try origin()
        connection.session.bind(origin, for: Self.key(withCredential: false))
        return channel
    }

    private func origin(
        isNarrow: Bool = false, forwarder: Origin? = nil
    ) throws -> (EmbeddedChannel, OriginConnection) {
        let channel = EmbeddedChannel(handler: Wire(isNarrow: isNarrow), loop: loop)
        let connection = OriginConnection(place: "a.example:80", tlsHandler: nil, forwarder: forwarder)
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
        return (channel, connection)
    }

    private static func key(withCredential: Bool) -> UpstreamKey {
        UpstreamKey(
            origin: origin, trust: .verified,
            credential: withCredential ? .init(name: "enrollment", source: .vault(generation: 1)) : nil, principal: uid,
            settings: 1)
    }

    func send(_ text: String) throws {
        try client.writeInbound(ByteBuffer(string: text))
    }

    func clientEndsInput() {
        client.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }

    /// Everything sent to the client since the last call.
    func answer() throws -> String { try client.sent() }
}

/// Knows no way to any origin.
final class NoWay: RouteFinding {
    let version: UInt64 = 1

    func knownRoute(to origin: Origin, path: String) -> [CountersignParents.Route.Candidate]? { [] }

    func findRoute(
        to origin: Origin, path: String
    ) async throws(ParentsError) -> [CountersignParents.Route.Candidate] { [] }

    func parentFailed(_ parent: ParentProxy) {}
    func parentAnswered(_ parent: ParentProxy) {}
}

/// Copies the bytes written, as a socket does: output with a secret is overwritten once it has been written. If it is
/// narrow, it is full after each write, and reports that before the write returns.
final class Wire: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let isNarrow: Bool

    init(isNarrow: Bool) { self.isNarrow = isNarrow }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        context.write(wrapOutboundOut(ByteBuffer(bytes: unwrapOutboundIn(data).readableBytesView)), promise: promise)
        report(false, context)
    }

    func flush(context: ChannelHandlerContext) {
        context.flush()
        report(true, context)
    }

    private func report(_ isWritable: Bool, _ context: ChannelHandlerContext) {
        guard isNarrow, let channel = context.channel as? EmbeddedChannel, channel.isWritable != isWritable else {
            return
        }
        channel.isWritable = isWritable
        context.fireChannelWritabilityChanged()
    }
}

extension EmbeddedChannel {
    /// Everything flushed since the last call.
    func sent() throws -> String {
        var text = ""
        while let piece = try readOutbound(as: ByteBuffer.self) { text += String(buffer: piece) }
        return text
    }

    func receive(_ text: String) throws {
        try writeInbound(ByteBuffer(string: text))
    }
}

/// Parses a request head.
func requestHead(_ text: String) throws -> RequestHead {
    let buffer = ByteBuffer(string: text)
    guard let parsed = try RequestHead.parse(buffer.readableBytesSpan) else { throw Incomplete() }
    return parsed.head
}

struct Incomplete: Error {}
