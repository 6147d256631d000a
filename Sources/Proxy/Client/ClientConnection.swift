// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignHTTP1
import NIOCore
import CountersignTLS
import CountersignUpstream

/// A client's HTTP/1 connection. It parses requests, runs one exchange at a time and sends the responses in order.
///
/// The connection begins on the proxy's own port. After a CONNECT to a listed site the same object stands in for the
/// origin, and ``ClientSession/role`` names the site: if it is an https site, a ``TLSHandler`` is inserted before this
/// object. After any other CONNECT a ``TunnelHandler`` replaces it. Pipelined requests stay in the input until the
/// previous response has been sent.
///
/// This file has the channel's events. The others have the requests (`+Requests`), the responses (`+Responses`),
/// CONNECT (`+Connect`, `+FirstBytes`), and time limits and closing (`+Ends`).
final class ClientConnection: ChannelInboundHandler, RemovableChannelHandler, TimeWatched {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Phase {
        case head
        /// The request's content is being read from ``input``.
        case body
        /// The request has been read. The response has not been sent completely.
        case responding
        /// A CONNECT is being set up.
        case connecting
        /// The 200 to a CONNECT has been sent. The client's first bytes are next, for ``accepted``.
        case firstBytes
        /// The 200 to a CONNECT has been sent. The client's TLS ClientHello is next, for ``standIn``.
        case clientHello
        case clientHandshake
        /// The last response has been sent. Input is discarded until the client closes.
        case discarding
        case closed
    }

    let services: LoopServices
    let session: ClientSession
    var clientSession: ClientSession? { session }
    var context: ChannelHandlerContext?
    /// Whether the client is served without the token. Set before its first byte is read.
    var isAdmitted = false

    // Input.
    var phase = Phase.head
    var accepted: AcceptedConnect?
    var standIn: (site: ClientSession.ConnectSite, tls: TLSServerContext)?
    let input = MessageInput(sentBy: .client)
    var inputEnded = false
    var exchange: ExchangeDriver?
    var setup: ConnectSetup?
    /// No call of it re-enters this object.
    @exclusivity(unchecked) var admission: RequestAdmission
    var bodyPaused = false
    private var readingPaused = false
    var parsing = false
    var headStartedAt: UInt64?
    var idleSince: UInt64
    var distrust = DistrustWatch()

    // Output.
    let output: MessageOutput
    /// Whether the network takes more. Stored, because asking the channel for each piece of content is expensive.
    private(set) var isWritable = true
    /// The framing of the response in progress.
    var responseFraming = BodyFraming.none
    /// The head's fields of a chunked response, which decide which trailers may be forwarded.
    var responseFields: FieldLines?
    /// Whether the response in progress leaves the connection open.
    var keepsAlive = false
    /// An ``HTTP2ClientConnection`` goes on with the session.
    var hasHandedOver = false
    /// No request is read after the response in progress.
    var closesAfterResponse = false
    /// While discarding input: whether the last response has been written out completely.
    var outputIsOut = false

    /// `addresses` are those of a TCP connection, from which the kernel can find the client's process.
    init(services: LoopServices, process: ClientProcess, addresses: (client: SocketAddress, server: SocketAddress)?) {
        self.services = services
        session = ClientSession(
            process: process, addresses: services.configuration.requiresSameUser ? addresses : nil)
        admission = RequestAdmission(session: session, services: services)
        output = MessageOutput(spare: services.spare)
        idleSince = services.now
    }

    func updateReading() {
        let pause: Bool
        switch phase {
        case .body: pause = bodyPaused
        case .responding, .connecting: pause = input.byteCount > 64 * 1024
        case .head, .firstBytes, .clientHello, .clientHandshake, .discarding, .closed: pause = false
        }
        guard pause != readingPaused else { return }
        readingPaused = pause
        try? context?.channel.syncOptions?.setOption(.autoRead, value: !pause)
    }

    // MARK: Channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        session.connected()
        output.open(context, tls: nil, isNextToSocket: true)
        services.watch(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        if !hasHandedOver { session.disconnected() }
        output.close()
        services.unwatch(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .discarding = phase { return }
        if case .closed = phase { return }
        distrust.received()
        input.append(unwrapInboundIn(data))
        if case .head = phase, headStartedAt == nil { headStartedAt = services.now }
        parse()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        exchange?.clientReadCompleted()
        output.flush()
        if !readingPaused { output.readOn() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        isWritable = context.channel.isWritable
        exchange?.clientWritabilityChanged(isWritable)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSEvent.handshakeCompleted(let summary):
            guard case .clientHandshake = phase else { break }
            distrust.handshakeCompleted()
            if summary.alpn == "h2" { return becomeHTTP2() }
            phase = .head
            idleSince = services.now
        case ChannelEvent.inputClosed, TLSEvent.inputClosed:
            clientEndedInput()
        default:
            break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let sign = ClientDistrust.Sign(error) { noteDistrust(sign) }
        // Nothing that arrives after an error can be relied on.
        clientGone()
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        clientGone()
        context.fireChannelInactive()
    }
}
