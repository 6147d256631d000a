// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignParents
import NIOCore
import NIOEmbedded

@testable import CountersignAnswering
@testable import CountersignProxy
@testable import CountersignUpstream

/// An error of a connection.
struct Broken: Error {}

/// The way of one connection through a listed parent, on embedded channels. The test is the parent.
final class ParentStage {
    static let target = Origin(scheme: .https, host: "www.example", port: 443)

    let loop = EmbeddedEventLoop()
    let services: LoopServices
    /// The connections to the parent so far; the last one is in use.
    private(set) var channels: [EmbeddedChannel] = []
    private(set) var result: Result<any Channel, UpstreamError>?

    private let paths: ParentPaths
    private let makeTunnel: () -> any ParentTunnel
    private var tunnel: (any ParentTunnel)?
    private var chain: ConnectionChain?

    /// As in ``ConnectionAttempt``.
    private static let maximumConnections = 6

    struct NoTunnel: Error {}

    final class OneRoute: RouteFinding {
        let parent: ParentProxy
        let version: UInt64 = 1

        init(_ parent: ParentProxy) { self.parent = parent }

        func knownRoute(to origin: Origin, path: String) -> [CountersignParents.Route.Candidate]? {
            [CountersignParents.Route.Candidate(.parent(parent), .setting)]
        }

        func findRoute(
            to origin: Origin, path: String
        ) async throws(ParentsError) -> [CountersignParents.Route.Candidate] {
            [CountersignParents.Route.Candidate(.parent(parent), .setting)]
        }

        func parentFailed(_ parent: ParentProxy) {}
        func parentAnswered(_ parent: ParentProxy) {}
    }

    static func policy(_ options: String) throws -> Policy {
        try Bench.policy(sites: "proxy://p.example:3128 \(options)", password: "pw")
    }

    init(_ kind: ParentProxy.Kind, _ policy: Policy) throws {
        let shared = ProxyServices(
            configuration: ProxyConfiguration(), policy: CurrentPolicy(policy), accessLog: nil, pseudonym: "csn-test",
            wallClock: { 1_800_000_000 })
        services = LoopServices(shared: shared, loop: loop)
        let host = try HostName(canonicalizing: "p.example", for: .forwarded)
        paths = ParentPaths(OneRoute(ParentProxy(kind, host, 3128)), services)
        var found: Result<[ConnectionPath], UpstreamError>?
        var terms = ConnectionTerms()
        terms.isBlind = true
        paths.findPaths(to: Self.target, terms) { found = $0 }
        guard let make = try found?.get().first?.makeTunnel else { throw NoTunnel() }
        makeTunnel = make
    }

    var channel: EmbeddedChannel { channels[channels.count - 1] }
    var breaker: BreakerBoard { services.shared.breaker }
    var error: UpstreamError? { if case .failure(let error) = result { error } else { nil } }
    var isOpen: Bool { if case .success = result { true } else { false } }

    /// Begins a new tunnel.
    func open() {
        result = nil
        channels = []
        tunnel = makeTunnel()
        connect()
    }

    private func connect() {
        guard let tunnel else { return }
        let channel = EmbeddedChannel(handler: Wire(isNarrow: false), loop: loop)
        channels.append(channel)
        channel.connect(to: .init(virtual: 1), promise: nil)
        let chain = ConnectionChain(loop: loop, steps: [tunnel.makeStep()]) { [unowned self] in ended($0) }
        self.chain = chain
        chain.runNextStep(on: channel)
    }

    private func ended(_ result: Result<any Channel, UpstreamError>) {
        chain = nil
        if case .failure(let error) = result, error.code == .tunnelInterrupted,
            channels.count < Self.maximumConnections
        {
            return connect()
        }
        tunnel?.ended()
        tunnel = nil
        self.result = result
    }

    /// The client leaves. If the parent is judging a password, that is awaited.
    func leave() {
        if let chain, tunnel?.awaitsVerdict() == true { return chain.leave(within: .seconds(20)) }
        cancel()
    }

    /// Everything is given up.
    func cancel() {
        chain?.cancel()
        chain = nil
        tunnel?.ended()
        tunnel = nil
    }

    /// The bytes that the parent has received on the present connection since the last call.
    func sent() throws -> String {
        loop.run()
        return try channel.sent()
    }

    /// The parent sends this on the present connection, or on an earlier one.
    func receive(_ text: String, on earlier: EmbeddedChannel? = nil) throws {
        try receive(Array(text.utf8), on: earlier)
    }

    func receive(_ bytes: [UInt8], on earlier: EmbeddedChannel? = nil) throws {
        let channel = earlier ?? channel
        guard channel.isActive else { return }
        try channel.writeInbound(ByteBuffer(bytes: bytes))
        loop.run()
    }

    func inputEnds() {
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        loop.run()
    }
}

extension SocketAddress {
    fileprivate init(virtual number: Int) {
        do {
            self = try SocketAddress(ipAddress: "127.0.0.1", port: number)
        } catch {
            fatalError("127.0.0.1 is an address")
        }
    }
}
