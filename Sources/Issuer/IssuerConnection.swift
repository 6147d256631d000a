// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import NIOCore

/// One connection to an ``IssuerServer``: one request, one response.
final class IssuerConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let issuer: LocalIssuer
    private let now: @Sendable () -> Int64
    private let intercept: IssuerServer.Interceptor?
    private var input = ByteBuffer()
    private var head: RequestHead?
    private var body = BodyDecoder(.none)
    private var content: [UInt8] = []
    private var isAnswered = false
    private var answering: Task<Void, Never>?

    /// The longest form, in bytes.
    private static let maximumContentBytes = 64 << 10

    init(issuer: LocalIssuer, now: @escaping @Sendable () -> Int64, intercept: IssuerServer.Interceptor?) {
        self.issuer = issuer
        self.now = now
        self.intercept = intercept
    }

    func channelInactive(context: ChannelHandlerContext) {
        answering?.cancel()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        guard !isAnswered else { return }
        input.writeBuffer(&buffer)
        do throws(HTTP1Error) {
            guard try isComplete(context), let head else { return }
            isAnswered = true
            answer(head, context)
        } catch {
            isAnswered = true
            write(IssuerResponse(status: error.statusHint, body: Array("\(error.detail)\n".utf8)), context.channel)
        }
    }

    /// Parses the bytes received. Returns whether they are the whole request.
    private func isComplete(_ context: ChannelHandlerContext) throws(HTTP1Error) -> Bool {
        if head == nil {
            let bytes = input
            guard bytes.readableBytes > 0, let parsed = try RequestHead.parse(bytes.readableBytesSpan) else {
                return false
            }
            input.moveReaderIndex(forwardBy: parsed.consumedBytes)
            head = parsed.head
            body = BodyDecoder(parsed.head.framing)
            if parsed.head.expectsContinue {
                context.writeAndFlush(
                    wrapOutboundOut(ByteBuffer(bytes: GeneratedResponse.interimContinue)), promise: nil)
            }
        }
        while true {
            var offset = 0
            let bytes = input
            let piece = try body.next(bytes.readableBytesSpan, from: &offset)
            if case .content(let range) = piece {
                content += bytes.readableBytesView.dropFirst(range.lowerBound).prefix(range.count)
            }
            input.moveReaderIndex(forwardBy: offset)
            if content.count > Self.maximumContentBytes {
                isAnswered = true
                write(IssuerResponse(status: 413), context.channel)
                return false
            }
            switch piece {
            case .content: continue
            case .needsMore: return false
            case .end: return true
            }
        }
    }

    /// `Host` must be the issuer's, so that no page of another name that resolves to this machine reaches it.
    private func answer(_ head: RequestHead, _ context: ChannelHandlerContext) {
        guard head.host.map({ "http://\($0)" }) == issuer.url else {
            write(IssuerResponse(status: 421), context.channel)
            return
        }
        let target = head.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let request = IssuerRequest(
            method: head.methodText, path: String(target[0]), query: target.count == 2 ? String(target[1]) : "",
            body: content)
        guard let intercept else {
            write(issuer.respond(to: request, now: now()), context.channel)
            return
        }
        let channel = context.channel
        answering = Task { @Sendable [issuer, now] in
            let response = await intercept(request) { issuer.respond(to: request, now: now()) }
            Self.write(response, channel)
        }
    }

    private func write(_ response: IssuerResponse, _ channel: any Channel) { Self.write(response, channel) }

    /// Closes the connection after the response, or without one. May be called on any thread.
    private static func write(_ response: IssuerResponse?, _ channel: any Channel) {
        guard let response else {
            channel.close(promise: nil)
            return
        }
        var fields = [
            ("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff"),
            (
                "Content-Security-Policy",
                "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
            ),
        ]
        if let type = response.contentType { fields.append(("Content-Type", type)) }
        if let location = response.location { fields.append(("Location", location)) }
        let generated = GeneratedResponse(status: response.status, fields: fields, body: response.body)
        channel.writeAndFlush(ByteBuffer(bytes: generated.serialized())).whenComplete { _ in
            channel.close(promise: nil)
        }
    }
}
