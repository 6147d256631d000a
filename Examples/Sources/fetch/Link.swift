// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOHTTP1
import NIOPosix

struct Response: Sendable {
    var status = 0
    /// The values of `WWW-Authenticate`, in their order.
    var challenges: [String] = []
    var body = ""
}

/// GET requests to one plain http URL, over one connection for as long as that lasts.
final class Link {
    let url: String
    private let host: String
    private let port: Int
    private let path: String
    private var channel: (any Channel)?

    init(url: String) throws {
        let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "http:", parts[1].isEmpty else { throw Failure("not an http URL: \(url)") }
        let authority = parts[2].prefix { $0 != "/" }.split(separator: ":")
        host = authority.first.map(String.init) ?? ""
        port = authority.count > 1 ? Int(authority[1]) ?? 80 : 80
        path = "/" + parts[2].drop { $0 != "/" }.dropFirst()
        self.url = url
    }

    /// The connection of the last request carries this one too, if that is what is wanted or it is still there.
    func get(authorization: String?, onSameConnection: Bool) async throws -> Response {
        if channel?.isActive != true {
            guard !onSameConnection else { throw Failure("the connection was closed") }
            channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHTTPClientHandlers()
                        try channel.pipeline.syncOperations.addHandler(Rounds())
                    }
                }
                .connect(host: host, port: port).get()
        }
        guard let channel else { throw Failure("there is no connection") }
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: path, headers: ["Host": "\(host):\(port)"])
        if let authorization { head.headers.add(name: "Authorization", value: authorization) }
        let round = Rounds.Round(head: head, response: channel.eventLoop.makePromise(of: Response.self))
        channel.writeAndFlush(round, promise: nil)
        return try await round.response.futureResult.get()
    }
}

/// One request and its response after the other.
private final class Rounds: ChannelDuplexHandler {
    struct Round: Sendable {
        let head: HTTPRequestHead
        let response: EventLoopPromise<Response>
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

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelInactive(context: ChannelHandlerContext) {
        round?.response.fail(Failure("the connection was closed"))
        round = nil
    }
}
