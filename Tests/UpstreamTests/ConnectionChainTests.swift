// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignHTTP1
import CountersignChannelTLS
import CountersignParents
import CountersignTLS
import CountersignTestOrigin
import Foundation
import NIOCore
import NIOPosix
import Testing

@testable import CountersignUpstream

/// Leads every connection through the parent at one place.
private final class OneParent: PathSource {
    private let parent: Origin
    private let makeTunnel: () -> any ParentTunnel

    init(host: String, port: UInt16, makeTunnel: @escaping () -> any ParentTunnel) {
        parent = Origin(scheme: .proxy, host: host, port: port)
        self.makeTunnel = makeTunnel
    }

    /// A tunnel by CONNECT to `localhost:8443`.
    convenience init(host: String, port: UInt16, limit: TimeAmount) throws {
        let name = try HostName(canonicalizing: "localhost", for: .forwarded)
        // The name of the parent is not resolved by the tunnel, and may be none.
        let parent = ParentProxy(.http, try HostName(canonicalizing: "127.0.0.1"), port)
        self.init(host: host, port: port) {
            ConnectTunnel(
                parent: parent, to: name, port: 8443, via: "1.1 test", limit: limit, spare: SpareBuffer(),
                answerer: Unanswering())
        }
    }

    func findPaths(
        to origin: Origin, _ terms: ConnectionTerms,
        completion: @escaping (Result<[ConnectionPath], UpstreamError>) -> Void
    ) {
        completion(.success([ConnectionPath(parent: parent, tls: nil, tunnel: makeTunnel) { _ in }]))
    }
}

/// Sends a CONNECT without an answer.
private final class Unanswering: ParentAnswering {
    func secured(by tls: TLSSummary) {}

    func begin(completion: @escaping (ParentAnswer) -> Void) { completion(.send(nil, onSameConnection: false)) }

    func openDialogue(completion: @escaping (ParentAnswer) -> Void) { completion(.giveUp(reason: nil)) }

    func received(_ response: ConnectResponse, completion: @escaping (ParentAnswer) -> Void) {
        completion(.giveUp(reason: nil))
    }

    func opened(_ head: FieldLines, completion: @escaping (String?) -> Void) { completion(nil) }

    func connectionLost() -> Bool { true }

    func ended() {}
}

/// A parent proxy on loopback that is also the origin behind itself. It listens until the test process ends.
private struct Parent {
    enum Behaviour {
        /// Opens the tunnel, and behind it answers every request.
        case answers
        case refuses
        case closes
        /// Accepts the connection and sends nothing.
        case silent
        /// Opens the tunnel and sends nothing more.
        case silentInTunnel
        /// Opens the tunnel to something that does not speak TLS.
        case speaksPlainText
    }

    let port: UInt16
    var place: String { "127.0.0.1:\(port)" }

    init(_ behaviour: Behaviour, tls: TLSServerContext? = nil) async throws {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ParentConnection(behaviour, tls))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = UInt16(try #require(channel.localAddress?.port))
    }
}

private final class ParentConnection: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let behaviour: Parent.Behaviour
    private let tls: TLSServerContext?
    private var request = ""
    private var isOpen = false

    init(_ behaviour: Parent.Behaviour, _ tls: TLSServerContext?) {
        self.behaviour = behaviour
        self.tls = tls
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        request += String(buffer: unwrapInboundIn(data))
        if isOpen, case .speaksPlainText = behaviour { return write("SSH-2.0-x\r\n", context) }
        guard request.hasSuffix("\r\n\r\n") else { return }
        let line = request.prefix { $0 != "\r\n" }
        switch behaviour {
        case .answers:
            write("HTTP/1.1 200 OK\r\n\r\n", context)
            do {
                let pipeline = context.pipeline.syncOperations
                if let tls { try pipeline.addHandler(TLSHandler(server: tls)) }
                try pipeline.addHandler(OriginResponder(afterReading: String(line)))
                pipeline.removeHandler(context: context, promise: nil)
            } catch {
                Issue.record(error)
            }
        case .refuses: write("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", context)
        case .closes: context.close(promise: nil)
        case .silent: break
        case .silentInTunnel: write("HTTP/1.1 200 OK\r\n\r\n", context)
        case .speaksPlainText: write("HTTP/1.1 200 OK\r\n\r\n", context)
        }
        isOpen = true
        request = ""
    }

    private func write(_ text: String, _ context: ChannelHandlerContext) {
        context.channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
    }
}

/// Answers every request with its request line, and with the one that the parent has read before.
private final class OriginResponder: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let before: String

    init(afterReading before: String) { self.before = before }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let content = "\(before), then \(String(buffer: unwrapInboundIn(data)).prefix { $0 != "\r\n" })"
        let response = "HTTP/1.1 200 OK\r\nContent-Length: \(content.utf8.count)\r\n\r\n\(content)"
        context.channel.writeAndFlush(ByteBuffer(string: response), promise: nil)
    }
}

/// Collects one response.
private final class Response: OriginStreamDelegate {
    private let promise: EventLoopPromise<String>
    private var content = ""

    init(_ promise: EventLoopPromise<String>) { self.promise = promise }

    func originResponded(_ head: consuming ResponseHead, content: ContentEnd) {}
    func originSent(_ content: ByteBuffer) { self.content += String(buffer: content) }
    func originResponseEnded(trailers: FieldLines?) { promise.succeed(content) }
    func originReadCompleted() {}
    func originFailed(_ error: UpstreamError) { promise.fail(error) }
    func originWritabilityChanged(_ isWritable: Bool) {}
}

/// The certificates of `Certs/dev/make`, for `localhost`.
private enum PKI {
    static func read(_ name: String) throws -> [UInt8] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return Array(try Data(contentsOf: root.appendingPathComponent("Certs/dev/pki/\(name).pem")))
    }

    static func client() throws -> TLSClientContext {
        let anchors = try TrustAnchors(system: false, additional: Certificate.readPEM(read("origin-root")))
        // 2026-01-01, when all of them are valid.
        return try TLSClientContext(verifier: ChainVerifier(anchors: anchors), now: { 1_767_225_600 })
    }

    static func server() throws -> TLSServerContext {
        let file = try IdentityFile.read(read("origin-ec.key") + read("origin-ec"), password: nil)
        return try TLSServerContext(
            chain: Certificate.readPEM(read("origin-ec")), key: file.key, host: "localhost")
    }
}

@Suite struct ConnectionChainTests {
    private static let target = "localhost:8443"

    private static func limits(_ limit: TimeAmount) -> UpstreamTimeLimits {
        var limits = UpstreamTimeLimits()
        limits.connect = limit
        limits.handshake = limit
        return limits
    }

    /// The response to `GET /` through a tunnel that `place` opens, or the reason for its absence.
    private static func response(
        _ scheme: Origin.Scheme, host: String = "127.0.0.1", port: UInt16, limit: TimeAmount = .seconds(10)
    ) async throws -> Result<String, UpstreamError> {
        let context = try PKI.client()
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let promise = loop.makePromise(of: String.self)
        loop.execute {
            guard let paths = try? OneParent(host: host, port: port, limit: limit) else {
                return promise.fail(UpstreamError(.noRoute, "no way"))
            }
            let connector = UpstreamConnector(loop: loop, limits: limits(limit), paths: paths)
            let origin = Origin(scheme: scheme, host: "localhost", port: 8443)
            connector.connect(to: origin, tls: context, certificateSource: nil) { result in
                switch result {
                case .success(let lease):
                    guard let connection = lease as? OriginConnection else {
                        return promise.succeed("a connection of another version")
                    }
                    let response = Response(promise)
                    promise.futureResult.assumeIsolated().whenComplete { _ in withExtendedLifetime(response) {} }
                    connection.delegate = response
                    #expect(scheme == .http || connection.tls?.serverTrust?.isTrusted == true)
                    connection.send(head: Array("GET / HTTP/1.1\r\nHost: \(target)\r\n\r\n".utf8), method: .get)
                    connection.finish(trailers: nil)
                    connection.flush()
                case .failure(let error):
                    promise.fail(error)
                }
            }
        }
        do {
            return .success(try await promise.futureResult.get())
        } catch let error as UpstreamError {
            return .failure(error)
        }
    }

    @Test(arguments: [Origin.Scheme.http, .https])
    func stepBetweenTCPAndTLSCarriesARequest(_ scheme: Origin.Scheme) async throws {
        let parent = try await Parent(.answers, tls: scheme == .https ? PKI.server() : nil)
        let response = try await Self.response(scheme, port: parent.port)
        #expect(try response.get() == "CONNECT \(Self.target) HTTP/1.1, then GET / HTTP/1.1")
    }

    @Test func failureNamesItsStepAndPlace() async throws {
        func failure(
            _ behaviour: Parent.Behaviour
        ) async throws -> (error: UpstreamError?, place: String) {
            let parent = try await Parent(behaviour)
            guard case .failure(let error) = try await Self.response(.https, port: parent.port) else {
                return (nil, parent.place)
            }
            return (error, parent.place)
        }
        let codes = [(Parent.Behaviour.refuses, UpstreamError.Code.tunnelRefused), (.closes, .tunnelFailed)]
        for (behaviour, code) in codes {
            let (error, place) = try await failure(behaviour)
            #expect(error?.code == code && error?.step == .tunnel && error?.place == place)
        }
        let (error, _) = try await failure(.speaksPlainText)
        #expect(error?.step == .tls && error?.place == Self.target)
    }

    @Test func refusedConnectionNamesTheStepTCP() async throws {
        let refusing = try RefusingPort()
        defer { withExtendedLifetime(refusing) {} }
        let port = UInt16(refusing.number)
        guard case .failure(let error) = try await Self.response(.https, port: port) else {
            Issue.record("connected to a port on which nobody listens")
            return
        }
        #expect(error.code == .connectFailed && error.step == .tcp && error.place == "127.0.0.1:\(port)")
    }

    @Test func unknownNameNamesTheStepResolve() async throws {
        guard case .failure(let error) = try await Self.response(.http, host: "a..example", port: 80) else {
            Issue.record("connected to a host whose name is not valid")
            return
        }
        #expect(error.code == .nameNotFound && error.step == .resolve && error.place == "a..example:80")
    }

    @Test func theLimitCoversEachStepOfTheChain() async throws {
        let silent = try await Parent(.silent)
        let first = try await Self.failure(of: .tunnel, at: silent)
        #expect(first?.code == .tunnelTimedOut && first?.place == silent.place)
        let muted = try await Parent(.silentInTunnel)
        let second = try await Self.failure(of: .tls, at: muted)
        #expect(second?.code == .tlsTimedOut && second?.place == Self.target)
    }

    /// The failure of the step that never ends, with a limit that the steps before it do not exceed, however busy the
    /// machine is; nil if it did not fail.
    private static func failure(of step: UpstreamError.Step, at parent: Parent) async throws -> UpstreamError? {
        for limit in [TimeAmount.milliseconds(100), .seconds(2), .seconds(30)] {
            guard case .failure(let error) = try await response(.https, port: parent.port, limit: limit) else {
                return nil
            }
            if error.step == step { return error }
        }
        return nil
    }

    @Test func connectionThatNobodyAcceptsIsLimited() async throws {
        // A full backlog makes Linux drop further attempts to connect.
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 0) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        #expect(bound)
        let port = UInt16(bigEndian: address.sin_port)
        var fillers: [Int32] = []
        defer { for filler in fillers { close(filler) } }
        for _ in 0..<4 {
            let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            fillers.append(filler)
            _ = withUnsafePointer(to: address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(filler, $0, length) }
            }
        }
        guard case .failure(let error) = try await Self.response(.https, port: port, limit: .milliseconds(200)) else {
            Issue.record("connected although nobody accepts")
            return
        }
        #expect(error.code == .connectTimedOut && error.step == .tcp && error.place == "127.0.0.1:\(port)")
    }

    @Test func cancelledChainClosesItsChannelAndReportsNothing() async throws {
        let parent = try await Parent(.silent)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let closed = loop.makePromise(of: Void.self)
        loop.execute {
            let paths = OneParent(host: "127.0.0.1", port: parent.port) { CancellingTunnel(closed) }
            let connector = UpstreamConnector(loop: loop, paths: paths)
            let attempt = connector.tunnel(to: Origin(scheme: .https, host: "localhost", port: 8443)) { _ in
                Issue.record("a cancelled chain has reported a result")
            }
            withExtendedLifetime(attempt) {}
        }
        try await closed.futureResult.get()
    }

    private final class CancellingTunnel: ParentTunnel {
        let early = ByteBuffer()
        private let closed: EventLoopPromise<Void>

        init(_ closed: EventLoopPromise<Void>) { self.closed = closed }

        func makeStep() -> any ConnectionStep { CancellingStep(closed) }

        func secured(by tls: TLSSummary) {}

        func ended() {}
    }

    /// Cancels the chain that runs it, and then claims to have succeeded.
    private final class CancellingStep: ConnectionStep {
        let kind = UpstreamError.Step.tunnel
        let place = "nowhere:1"
        let limit = TimeAmount.seconds(10)
        private let closed: EventLoopPromise<Void>

        init(_ closed: EventLoopPromise<Void>) { self.closed = closed }

        func run(on channel: any Channel, in chain: ConnectionChain) {
            channel.closeFuture.cascade(to: closed)
            chain.cancel()
            chain.stepSucceeded(channel)
        }

        func chainEnded() {}
    }
}
