// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHTTP1
import CountersignChannelTLS
import CountersignTLS
import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// An https site on the loopback interface that wants an access token of a ``FakeIssuer`` (RFC 6750): 401 without one,
/// `invalid_token` for one that is not valid, `insufficient_scope` if it lacks a scope, and else 200.
public final class FakeSite: Sendable {
    /// `https://localhost:40123`, as a profile's `sites` and the list of sites write it.
    public var url: String { "https://localhost:\(port)" }
    /// The port on 127.0.0.1.
    public let port: Int
    /// The certification authority of the site's certificate, in PEM.
    public let anchor: String
    private let channel: any Channel
    private let log: RequestLog

    /// Starts a site that accepts the access tokens of `issuer` with all of `scopes`. Throws if the system refuses a
    /// socket.
    public static func start(_ issuer: FakeIssuer, scopes: [String] = []) async throws -> FakeSite {
        let now = Int64(time(nil))
        let authority = try InterceptionAuthority.create(permitting: ["localhost"], at: now)
        let key = try PrivateKey.generateP256()
        let chain = try authority.mintLeaf(host: "localhost", key: key, at: now)
        let tls = try TLSServerContext(chain: chain, key: key, host: "localhost", clientCertificates: nil)
        let log = RequestLog()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 128)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(TLSHandler(server: tls))
                    try channel.pipeline.syncOperations.addHandler(
                        FakeSiteConnection(issuer: issuer, scopes: scopes, log: log))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return FakeSite(
            port: channel.localAddress?.port ?? 0, anchor: authority.root.pem, channel: channel, requests: log)
    }

    private init(port: Int, anchor: String, channel: any Channel, requests: RequestLog) {
        self.port = port
        self.anchor = anchor
        self.channel = channel
        log = requests
    }

    /// The requests so far, with the status of the response, such as `GET /file 401`.
    public var requests: [String] { log.lines.withLock { $0 } }

    /// Closes the listening socket.
    public func stop() async { try? await channel.close().get() }
}

/// The requests of a site.
private final class RequestLog: Sendable {
    let lines = Mutex<[String]>([])
}

/// One connection: one request without a body, one response.
private final class FakeSiteConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let issuer: FakeIssuer
    private let scopes: [String]
    private let log: RequestLog
    private var input = ByteBuffer()
    private var isAnswered = false

    init(issuer: FakeIssuer, scopes: [String], log: RequestLog) {
        self.issuer = issuer
        self.scopes = scopes
        self.log = log
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed, TLSEvent.inputClosed: context.close(promise: nil)
        default: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        guard !isAnswered else { return }
        input.writeBuffer(&buffer)
        do throws(HTTP1Error) {
            let bytes = input
            guard bytes.readableBytes > 0, let parsed = try RequestHead.parse(bytes.readableBytesSpan) else { return }
            isAnswered = true
            answer(parsed.head, context)
        } catch {
            isAnswered = true
            write(GeneratedResponse(status: error.statusHint), context)
        }
    }

    private func answer(_ head: RequestHead, _ context: ChannelHandlerContext) {
        let token = head.fields.value(of: .authorization).flatMap { field in
            field.lowercased().hasPrefix("bearer ") ? String(field.dropFirst(7)) : nil
        }
        let challenge: String?
        let status: Int
        if let token {
            let lacksScope = issuer.accepts(token) && !issuer.accepts(token, scopes: scopes)
            switch (issuer.accepts(token, scopes: scopes), lacksScope) {
            case (true, _): (status, challenge) = (200, nil)
            case (false, true):
                let scope = scopes.joined(separator: " ")
                (status, challenge) = (403, #"Bearer realm="fake", error="insufficient_scope", scope="\#(scope)""#)
            case (false, false): (status, challenge) = (401, #"Bearer realm="fake", error="invalid_token""#)
            }
        } else {
            (status, challenge) = (401, #"Bearer realm="fake""#)
        }
        log.lines.withLock { $0.append("\(head.methodText) \(head.target) \(status)") }
        let text = status == 200 ? "welcome\n" : "an access token is required\n"
        write(
            GeneratedResponse(
                status: status, fields: challenge.map { [("WWW-Authenticate", $0)] } ?? [], body: Array(text.utf8),
                answersHead: head.method == .head), context)
    }

    private func write(_ response: GeneratedResponse, _ context: ChannelHandlerContext) {
        let channel = context.channel
        channel.writeAndFlush(ByteBuffer(bytes: response.serialized())).whenComplete { _ in
            channel.close(promise: nil)
        }
    }
}
