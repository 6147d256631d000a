// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignHTTP1
import NIOCore
import CountersignTLS
import CountersignUpstream

/// One client's connection: heads and bodies in, one exchange at a time, responses out in order.
///
/// It begins on the proxy's own port. A CONNECT to a listed site turns the same object into the origin's stand-in: TLS slides in
/// beneath it and ``role`` says for whom it speaks. A CONNECT to any other site replaces it by a ``TunnelHandler``.
/// Pipelined requests wait in the input until the response before them is out.
final class ClientConnection: ChannelInboundHandler, RemovableChannelHandler, TimeWatched {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Role {
        case proxy
        case intercepted(InterceptedSite)
    }

    enum Phase {
        case head
        /// ``input`` is in it.
        case body
        /// The request is in; the response is not out yet.
        case responding
        /// A CONNECT is being set up.
        case connecting
        /// The 200 is out; the client's TLS ClientHello is next, for ``standIn``.
        case clientHello
        case clientHandshake
        /// What still comes is dropped until the client closes.
        case discarding
        case closed
    }

    let services: LoopServices
    let presence = ClientPresence()
    private(set) var process: ClientProcess
    var role = Role.proxy
    /// Connections that were authenticated for this client, and end with it.
    var bound = BoundConnections()
    /// There was one some time; mostly there never is, which is quicker told by itself.
    var hasBound = false
    var context: ChannelHandlerContext?
    private let addresses: (client: SocketAddress, server: SocketAddress)?
    private var isConfirmedUser = false
    /// What the delegate said yes to for this client.
    var consents: [Origin: DelegateConsent] = [:]
    /// The origins to which the client has spoken NTLM or Negotiate itself; nearly always none, which is quicker told by itself.
    private var authenticatedItself: Set<Origin> = []
    private var hasAuthenticatedItself = false
    /// The client need not send the token. Set before its first byte.
    var isAdmitted = false

    // What comes in.
    var phase = Phase.head
    var standIn: (site: InterceptedSite, tls: TLSServerContext)?
    let input = MessageInput(sentBy: .client)
    var inputEnded = false
    var exchange: ExchangeDriver?
    var setup: ConnectSetup?
    /// Of the last request: the next one mostly is for the same origin.
    var lastRoute: Route?
    var bodyPaused = false
    private var readingPaused = false
    var parsing = false
    var headStartedAt: UInt64?
    var idleSince: UInt64

    // What goes out.
    let output: MessageOutput
    var closesAfterResponse = false
    /// While discarding: the last response has gone out whole.
    var outputIsOut = false

    /// `addresses`: of a TCP connection, to ask again whose it is.
    init(services: LoopServices, process: ClientProcess, addresses: (client: SocketAddress, server: SocketAddress)?) {
        self.services = services
        self.process = process
        self.addresses = addresses
        output = MessageOutput(spare: services.spare)
        idleSince = services.now
    }

    // MARK: For the exchange

    /// The network takes more. Asking the channel each time is dear.
    private(set) var isWritable = true

    /// The client speaks NTLM or Negotiate to `origin` itself.
    func authenticates(itselfTo origin: Origin) {
        authenticatedItself.insert(origin)
        hasAuthenticatedItself = true
    }

    /// Whether it has done so before.
    func hasAuthenticated(itselfTo origin: Origin) -> Bool {
        hasAuthenticatedItself && authenticatedItself.contains(origin)
    }

    /// The owner of the other end is still this user: asked again before a credential is used for the first time.
    func isStillSameUser() -> Bool {
        guard services.configuration.requiresSameUser, !isConfirmedUser, let addresses else { return true }
        isConfirmedUser = SocketOwner.find(client: addresses.client, server: addresses.server)?.uid == process.uid
        return isConfirmedUser
    }

    func setProcess(_ pid: Int32?) {
        process.pid = pid
    }

    /// As the one below: a head that is taken out of what holds it is copied first.
    func write(_ held: BufferedResponse, as forwarding: ResponseForwarding) {
        output.write(about: held.head.forwardedSize) { held.head.write(forwarding, into: $0) }
    }

    func write(_ head: ResponseHead, as forwarding: ResponseForwarding) {
        output.write(about: head.forwardedSize) { head.write(forwarding, into: $0) }
    }

    /// Holds the request body, because the origin, or the replay bound, asks for a pause.
    func pauseBody() {
        guard !bodyPaused else { return }
        bodyPaused = true
        updateReading()
    }

    func resumeBody() {
        guard bodyPaused else { return }
        bodyPaused = false
        updateReading()
        parse()
    }

    /// The response is out. `keepAlive`: another request may follow on this connection.
    func responseFinished(keepAlive: Bool) {
        exchange = nil
        bodyPaused = false
        idleSince = services.now
        if !keepAlive || closesAfterResponse || services.isDraining {
            return lingerAndClose()
        }
        guard case .responding = phase else { return lingerAndClose() }
        phase = .head
        headStartedAt = input.byteCount > 0 ? services.now : nil
        updateReading()
        parse()
        if inputEnded, case .head = phase { lingerAndClose() }
    }

    func updateReading() {
        let pause: Bool
        switch phase {
        case .body: pause = bodyPaused
        case .responding, .connecting: pause = input.byteCount > 64 * 1024
        case .head, .clientHello, .clientHandshake, .discarding, .closed: pause = false
        }
        guard pause != readingPaused else { return }
        readingPaused = pause
        try? context?.channel.syncOptions?.setOption(.autoRead, value: !pause)
    }

    // MARK: Channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        presence.connection = self
        output.open(context, tls: nil, isNextToSocket: true)
        services.watch(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        presence.connection = nil
        output.close()
        services.unwatch(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .discarding = phase { return }
        if case .closed = phase { return }
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
        case TLSEvent.handshakeCompleted:
            if case .clientHandshake = phase {
                phase = .head
                idleSince = services.now
            }
        case ChannelEvent.inputClosed, TLSEvent.inputClosed:
            clientEndedInput()
        default:
            break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Whatever it is, this connection cannot be trusted to say anything more.
        clientGone()
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        clientGone()
        context.fireChannelInactive()
    }
}
