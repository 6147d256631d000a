// SPDX-License-Identifier: Apache-2.0

import Countersign
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix

struct Response: Sendable {
    var status = 0
    /// The values of `WWW-Authenticate`, in their order.
    var challenges: [String] = []
    var body = ""
}

/// GET requests to one http or https URL, over one connection for as long as that lasts.
final class Link {
    private let controller: ChallengeController
    private let isTLS: Bool
    private let host: String
    private let port: Int
    private let authority: String
    private let path: String
    private var channel: (any Channel)?

    init(url: String, controller: ChallengeController) throws {
        guard let parts = URLComponents(string: url), ["http", "https"].contains(parts.scheme),
            let host = parts.encodedHost, !host.isEmpty, (1...65535).contains(parts.port ?? 80)
        else { throw Failure("not an http or https URL: \(url)") }
        self.controller = controller
        isTLS = parts.scheme == "https"
        port = parts.port ?? (isTLS ? 443 : 80)
        // An IPv6 address stands in brackets there, and nowhere else.
        self.host = host.filter { !"[]".contains($0) }
        authority = parts.port.map { "\(host):\($0)" } ?? host
        path =
            (parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath)
            + (parts.percentEncodedQuery.map { "?\($0)" } ?? "")
    }

    var isOpen: Bool { channel?.isActive == true }

    /// A new connection; over TLS, to a server that verifies, whose own certificate is returned.
    func open() async throws -> X509Certificate? {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    try channel.pipeline.syncOperations.addHandler(Rounds())
                }
            }
            // Names below localhost are this machine (RFC 6761 §6.3), which not every resolver knows.
            .connect(host: host.hasSuffix(".localhost") ? "localhost" : host, port: port).get()
        self.channel = channel
        return isTLS ? try await controller.startTLS(on: channel, host: host, port: port).leaf : nil
    }

    /// Nil: the connection was lost before the response.
    func get(authorization: String?) async throws -> Response? {
        guard let channel else { return nil }
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: path, headers: ["Host": authority])
        if let authorization { head.headers.add(name: "Authorization", value: authorization) }
        let round = Rounds.Round(head: head, response: channel.eventLoop.makePromise(of: Response?.self))
        channel.writeAndFlush(round).whenFailure { _ in round.response.succeed(nil) }
        return try await round.response.futureResult.get()
    }
}

/// One request and its response after the other.
private final class Rounds: ChannelDuplexHandler {
    struct Round: Sendable {
        let head: HTTPRequestHead
        let response: EventLoopPromise<Response?>
    }

    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundIn = Round
    typealias OutboundOut = HTTPClientRequestPart

    private var round: Round?
    private var response = Response()

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let round = unwrapOutboundIn(data)
        self.round = round
        response = Response()
        context.write(wrapOutboundOut(.head(round.head)), promise: nil)
        context.write(wrapOutboundOut(.end(nil)), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            response.status = Int(head.status.code)
            response.challenges = head.headers["WWW-Authenticate"]
        case .body(let piece):
            response.body += String(buffer: piece)
        case .end:
            round?.response.succeed(response)
            round = nil
        }
    }

    /// TLS that is broken off, as the server does not take a client certificate, says so here.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        round?.response.fail(error)
        round = nil
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        round?.response.succeed(nil)
        round = nil
    }
}
