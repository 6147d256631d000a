// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignNIO
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix

struct Response: Sendable {
    var status = 0
    /// The values of `WWW-Authenticate`, in their order.
    var challenges: [String] = []
    /// The values of `DPoP-Nonce`.
    var nonces: [String] = []
    var body = ""
}

/// Sends GET requests for one http or https URL, on one connection while it stays open.
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
        // Only in a URL does an IPv6 address have brackets.
        self.host = host.filter { !"[]".contains($0) }
        authority = parts.port.map { "\(host):\($0)" } ?? host
        path =
            (parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath)
            + (parts.percentEncodedQuery.map { "?\($0)" } ?? "")
    }

    var isOpen: Bool { channel?.isActive == true }

    /// Opens a connection. With TLS, verifies the server and returns its certificate.
    func open() async throws -> X509Certificate? {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    try channel.pipeline.syncOperations.addHandler(Rounds())
                }
            }
            // Names under localhost mean this machine (RFC 6761 §6.3), but not every resolver implements that.
            .connect(host: host.hasSuffix(".localhost") ? "localhost" : host, port: port).get()
        self.channel = channel
        return isTLS ? try await controller.startTLS(on: channel, host: host, port: port).leaf : nil
    }

    /// Returns nil if the connection is lost before the response.
    func get(_ authorization: Authorization?) async throws -> Response? {
        guard let channel else { return nil }
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: path, headers: ["Host": authority])
        if let authorization { head.headers.add(name: "Authorization", value: authorization.fieldValue) }
        if let proof = authorization?.proof { head.headers.add(name: "DPoP", value: proof) }
        let round = Rounds.Round(head: head, response: channel.eventLoop.makePromise(of: Response?.self))
        channel.writeAndFlush(round).whenFailure { _ in round.response.succeed(nil) }
        return try await round.response.futureResult.get()
    }
}

/// Sends one request at a time and collects its response.
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
            response.nonces = head.headers["DPoP-Nonce"]
        case .body(let piece):
            response.body += String(buffer: piece)
        case .end:
            round?.response.succeed(response)
            round = nil
        }
    }

    /// In TLS 1.3, a server that rejects the client certificate sends its alert after the handshake.
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
