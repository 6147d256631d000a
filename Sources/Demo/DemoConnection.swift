// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignHTTP1
import CountersignNTLM
import CountersignTLS
import NIOCore

/// One connection to a ``DemoSite``: challenges requests without credentials and verifies the credentials of the
/// others. NTLM authenticates the whole connection.
final class DemoConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let site: DemoSite
    private var input = ByteBuffer()
    private var request: RequestHead?
    private var body = BodyDecoder(.none)
    private var bodyBytes = 0
    private var acceptor: NTLMAcceptor?
    private var authenticatedUser: String?
    private var clientChain: [Certificate] = []

    init(site: DemoSite) {
        self.site = site
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSEvent.handshakeCompleted(let summary): clientChain = summary.verifiedClientChain
        case ChannelEvent.inputClosed, TLSEvent.inputClosed: context.close(promise: nil)
        default: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        input.writeBuffer(&buffer)
        do throws(HTTP1Error) {
            while try step(context) {}
        } catch {
            respond(context, GeneratedResponse(status: error.statusHint, body: Array("\(error.detail)\n".utf8)))
            context.close(promise: nil)
        }
        input.discardReadBytes()
    }

    /// Parses a head or part of a body; returns false if it needs more bytes.
    private func step(_ context: ChannelHandlerContext) throws(HTTP1Error) -> Bool {
        guard let request else {
            let bytes = input
            guard bytes.readableBytes > 0, let parsed = try RequestHead.parse(bytes.readableBytesSpan) else {
                return false
            }
            input.moveReaderIndex(forwardBy: parsed.consumedBytes)
            self.request = parsed.head
            body = BodyDecoder(parsed.head.framing)
            bodyBytes = 0
            if parsed.head.expectsContinue { write(context, Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
            return true
        }
        var offset = 0
        let bytes = input
        let piece = try body.next(bytes.readableBytesSpan, from: &offset)
        input.moveReaderIndex(forwardBy: offset)
        switch piece {
        case .content(let range):
            bodyBytes += range.count
            return true
        case .needsMore:
            return false
        case .end:
            self.request = nil
            answer(request, context)
            return true
        }
    }

    // MARK: Challenges

    private func answer(_ request: RequestHead, _ context: ChannelHandlerContext) {
        let authorization = request.fields.value(of: .authorization)
        switch site.kind {
        case .open:
            welcome(context, request, "no authentication required")
        case .basic, .untrusted:
            if let authorization, isValidBasic(authorization) {
                welcome(context, request, "Basic, as \(site.account.user)")
            } else {
                challenge(context, request, "Basic realm=\"demo\", charset=\"UTF-8\"")
            }
        case .cert:
            if let leaf = clientChain.first {
                welcome(context, request, "a client certificate, as \(leaf.subject)")
            } else {
                let text = "this site requires a client certificate\n"
                respond(
                    context,
                    GeneratedResponse(
                        status: 403, body: Array(text.utf8), closes: false, answersHead: request.method == .head))
            }
        case .ntlm:
            answerNTLM(authorization, request, context)
        case .token:
            answerBearer(authorization, request, context)
        }
    }

    /// RFC 6750 §3.
    private func answerBearer(_ authorization: String?, _ request: RequestHead, _ context: ChannelHandlerContext) {
        guard let authorization, authorization.lowercased().hasPrefix("bearer ") else {
            return challenge(context, request, "Bearer realm=\"demo\"")
        }
        let token = Secret(utf8: authorization.dropFirst(7).drop { $0 == " " })
        guard let grant = site.grant(token), grant.scopes.contains("api") else {
            return challenge(context, request, "Bearer realm=\"demo\", error=\"invalid_token\"")
        }
        welcome(context, request, "a token of the provider, as \(grant.user)")
    }

    private func isValidBasic(_ authorization: String) -> Bool {
        guard authorization.lowercased().hasPrefix("basic "), let decoded = Base64.decode(authorization.dropFirst(6)),
            let colon = decoded.firstIndex(of: UInt8(ascii: ":"))
        else { return false }
        return decoded[..<colon].elementsEqual(site.account.user.utf8)
            && Secret(decoded[(colon + 1)...]) == site.account.password
    }

    private func answerNTLM(_ authorization: String?, _ request: RequestHead, _ context: ChannelHandlerContext) {
        if let authenticatedUser, authorization == nil {
            return welcome(context, request, "NTLM, as \(authenticatedUser)")
        }
        guard let authorization, authorization.lowercased().hasPrefix("ntlm "),
            let token = Base64.decode(authorization.dropFirst(5))
        else { return challenge(context, request, "NTLM") }
        do throws(NTLMError) {
            if var pending = acceptor {
                acceptor = nil
                let client = try pending.verify(
                    token, password: site.account.password,
                    requiring: .init(
                        channelBinding: .tlsServerEndPoint(certificateHash: site.leaf.tlsServerEndPointHash),
                        servicePrincipalName: "HTTP/\(site.host)", mic: true))
                authenticatedUser = "\(client.domain)\\\(client.user)"
                welcome(context, request, "NTLM, as \(client.domain)\\\(client.user)")
            } else {
                var pending = NTLMAcceptor(
                    targetName: "DEMO",
                    targetInfo: TargetInfo([
                        AVPair(.nbDomainName, text: "DEMO"), AVPair(.nbComputerName, text: "NTLM"),
                        AVPair(.dnsDomainName, text: "demo.localhost"), AVPair(.dnsComputerName, text: site.host),
                    ]))
                let challengeToken = try pending.challenge(token, serverChallenge: Randomness.bytes(8))
                acceptor = pending
                challenge(context, request, "NTLM \(Base64.encode(challengeToken))")
            }
        } catch {
            challenge(context, request, "NTLM")
        }
    }

    // MARK: Responses

    private func welcome(_ context: ChannelHandlerContext, _ request: RequestHead, _ how: String) {
        var text = "\(site.host): welcome: \(how)\n"
        if bodyBytes > 0 { text += "\(site.host): received a body of \(bodyBytes) bytes\n" }
        respond(
            context,
            GeneratedResponse(
                status: 200, fields: [("Content-Type", "text/plain; charset=utf-8")], body: Array(text.utf8),
                closes: false,
                answersHead: request.method == .head))
    }

    private func challenge(_ context: ChannelHandlerContext, _ request: RequestHead, _ value: String) {
        respond(
            context,
            GeneratedResponse(
                status: 401, fields: [("WWW-Authenticate", value), ("Content-Type", "text/plain; charset=utf-8")],
                body: Array("\(site.host): authentication required\n".utf8), closes: false,
                answersHead: request.method == .head))
    }

    private func respond(_ context: ChannelHandlerContext, _ response: GeneratedResponse) {
        write(context, response.serialized())
    }

    private func write(_ context: ChannelHandlerContext, _ bytes: [UInt8]) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }
}
