// SPDX-License-Identifier: Apache-2.0

import Challenges
import Glibc
import HTTP1
import NIOCore
import SitePolicy
import TLS
import Upstream

/// One client's connection: heads and bodies in, one exchange at a time, responses out in order.
///
/// It begins on the proxy's own port. A CONNECT to a listed site turns the same object into the origin's stand-in: TLS slides in
/// beneath it and ``door`` says for whom it speaks. A CONNECT to any other site replaces it by a ``TunnelHandler``.
/// Pipelined requests wait in the input until the response before them is out.
final class ClientConnection: ChannelInboundHandler, RemovableChannelHandler, TimeWatched {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Door {
        case proxy
        case intercepted(InterceptedSite)
    }

    enum Phase {
        case head
        case body(BodyDecoder)
        /// The request is in; the response is not out yet.
        case responding
        /// A CONNECT is being set up.
        case connecting
        /// The 200 is out; the client's TLS ClientHello is next.
        case clientHello(InterceptedSite, TLSServerContext)
        case clientHandshake
        /// What still comes is dropped until the client closes.
        case discarding
        case closed
    }

    let services: LoopServices
    private(set) var identity: ClientIdentity
    var door = Door.proxy
    /// Connections that were authenticated for this client, and end with it.
    var bound: [UpstreamKey: OriginConnection] = [:]
    var context: ChannelHandlerContext?
    private let addresses: (client: SocketAddress, server: SocketAddress)?
    private var isConfirmedUser = false
    /// What the delegate said yes to for this client.
    var consents: [Origin: DelegateConsent] = [:]
    /// The origins to which the client has spoken NTLM or Negotiate itself.
    var authenticatedItself: Set<Origin> = []

    var phase = Phase.head
    var input = ByteBuffer()
    var exchange: ExchangeDriver?
    var setup: ConnectSetup?
    private var bodyPaused = false
    private var readingPaused = false
    private var parsing = false
    var inputEnded = false
    private var headStartedAt: UInt64?
    var idleSince: UInt64
    private var closesAfterResponse = false
    /// While discarding: the last response has gone out whole.
    private var outputIsOut = false
    private var wrote = false
    /// The client need not send the token. Set before its first byte.
    var isAdmitted = false

    /// `addresses`: of a TCP connection, to ask again whose it is.
    init(services: LoopServices, identity: ClientIdentity, addresses: (client: SocketAddress, server: SocketAddress)?) {
        self.services = services
        self.identity = identity
        self.addresses = addresses
        idleSince = services.now
    }

    // MARK: For the exchange

    var allocator: ByteBufferAllocator { context?.channel.allocator ?? ByteBufferAllocator() }
    var isWritable: Bool { context?.channel.isWritable ?? false }

    /// The owner of the other end is still this user: asked again before a credential is used for the first time.
    func isStillSameUser() -> Bool {
        guard services.configuration.requiresSameUser, !isConfirmedUser, let addresses else { return true }
        isConfirmedUser = SocketOwner.find(client: addresses.client, server: addresses.server)?.uid == identity.uid
        return isConfirmedUser
    }

    func setProcess(_ pid: Int32?) {
        identity.pid = pid
    }

    func write(_ bytes: [UInt8]) {
        guard let context else { return }
        var buffer = context.channel.allocator.buffer(capacity: bytes.count)
        buffer.writeBytes(bytes)
        write(buffer)
    }

    func write(_ buffer: ByteBuffer) {
        guard let context else { return }
        wrote = true
        context.write(wrapOutboundOut(buffer), promise: nil)
    }

    func flush() {
        guard wrote else { return }
        wrote = false
        context?.flush()
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
        headStartedAt = input.readableBytes > 0 ? services.now : nil
        updateReading()
        parse()
        if inputEnded, case .head = phase { lingerAndClose() }
    }

    /// The response cannot be finished: the client must see that it is cut.
    ///
    /// `needsReset`: the end of the connection is the end of the body, so that a FIN would make the part look whole. A reset may
    /// overtake what was written before it; without one the client keeps the part it got.
    func abortResponse(needsReset: Bool) {
        exchange = nil
        flush()
        phase = .closed
        guard let channel = context?.channel else { return }
        // A FIN or a close_notify would look like a whole response where the end of the connection is the end of the body.
        if let tls = try? channel.pipeline.syncOperations.handler(type: TLSHandler.self) { return tls.abort() }
        guard needsReset else { return channel.close(promise: nil) }
        (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
            channel.close(promise: nil)
        }
    }

    // MARK: Connections of this client alone

    func boundConnection(for key: UpstreamKey) -> OriginConnection? {
        guard let connection = bound.removeValue(forKey: key) else { return nil }
        if connection.isReusable { return connection }
        connection.close()
        return nil
    }

    /// Whether a connection for `key` has already been authenticated for this client.
    func hasAuthenticatedConnection(for key: UpstreamKey) -> Bool {
        bound[key].map { $0.isReusable && $0.isAuthenticated } ?? false
    }

    func bind(_ connection: OriginConnection, for key: UpstreamKey) {
        connection.delegate = nil
        connection.certificateSource = nil
        guard connection.isReusable, context != nil else { return connection.close() }
        bound.updateValue(connection, forKey: key)?.close()
        if bound.count > 16, let surplus = bound.keys.first(where: { $0 != key }) {
            bound.removeValue(forKey: surplus)?.close()
        }
    }

    // MARK: Channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        services.watch(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        services.unwatch(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        if case .discarding = phase { return }
        if case .closed = phase { return }
        if input.readableBytes == 0 { input = buffer } else { input.writeBuffer(&buffer) }
        if case .head = phase, headStartedAt == nil { headStartedAt = services.now }
        parse()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        exchange?.clientReadCompleted()
        flush()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        exchange?.clientWritabilityChanged(context.channel.isWritable)
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

    private func clientEndedInput() {
        inputEnded = true
        switch phase {
        case .head, .clientHello, .clientHandshake:
            close()
        case .discarding:
            if outputIsOut { close() }
        case .body:
            // The rest of the body may have come already, and wait here until the origin takes it.
            if !bodyPaused { bodyCut() }
        case .connecting where setup?.isAsking == true:
            // The tunnel would need its ClientHello, which cannot come any more.
            clientGone()
            close()
        case .responding, .connecting, .closed:
            // A client may close its half once its requests are out (RFC 9112 §9.6); the pipelined ones are still answered.
            break
        }
    }

    private func bodyCut() {
        clientGone()
        close()
    }

    private func clientGone() {
        if case .closed = phase {} else { phase = .closed }
        exchange?.clientGone()
        exchange = nil
        setup?.cancel()
        setup = nil
        for connection in bound.values { connection.close() }
        bound = [:]
        input = ByteBuffer()
    }

    func close() {
        phase = .closed
        context?.close(promise: nil)
    }

    // MARK: Limits

    func secondPassed(now: UInt64) {
        let limits = services.configuration
        switch phase {
        case .head:
            if let headStartedAt {
                if now > headStartedAt + limits.headSeconds {
                    respondAndClose(.init(status: 408, detail: "the request head did not come in time"))
                }
            } else if now > idleSince + limits.keepAliveSeconds {
                close()
            }
        case .clientHello, .clientHandshake:
            if now > idleSince + limits.clientHandshakeSeconds { close() }
        case .discarding:
            if now > idleSince + (outputIsOut ? 2 : limits.bodyIdleSeconds) { close() }
        case .body, .responding:
            exchange?.secondPassed(now: now)
        case .connecting, .closed:
            break
        }
    }

    func drain() {
        closesAfterResponse = true
        switch phase {
        case .head where headStartedAt == nil: close()
        case .clientHello, .clientHandshake: close()
        default: break
        }
    }

    func abort() {
        clientGone()
        close()
    }

    // MARK: Requests

    func updateReading() {
        let pause: Bool
        switch phase {
        case .body: pause = bodyPaused
        case .responding, .connecting: pause = input.readableBytes > 64 * 1024
        case .head, .clientHello, .clientHandshake, .discarding, .closed: pause = false
        }
        guard pause != readingPaused else { return }
        readingPaused = pause
        try? context?.channel.syncOptions?.setOption(.autoRead, value: !pause)
    }

    func parse() {
        guard !parsing else { return }
        parsing = true
        defer {
            parsing = false
            updateReading()
            if inputEnded, !bodyPaused, case .body = phase { bodyCut() }
        }
        do throws(HTTP1Error) {
            while true {
                switch phase {
                case .head:
                    let bytes = input
                    guard bytes.readableBytes > 0, let parsed = try RequestHead.parse(bytes.readableBytesSpan) else {
                        return
                    }
                    input.moveReaderIndex(forwardBy: parsed.consumedBytes)
                    headStartedAt = nil
                    begin(parsed.head)
                case .body(var decoder):
                    guard !bodyPaused, try readBody(&decoder) else { return }
                case .clientHello(let site, let tls):
                    return startClientTLS(site, tls)
                case .responding, .connecting, .clientHandshake, .discarding, .closed:
                    return
                }
            }
        } catch {
            malformed(error)
        }
    }

    private func readBody(_ decoder: inout BodyDecoder) throws(HTTP1Error) -> Bool {
        var offset = 0
        let start = input.readerIndex
        let bytes = input
        let piece = try decoder.next(bytes.readableBytesSpan, from: &offset)
        switch piece {
        case .content(let range):
            let content = input.getSlice(at: start + range.lowerBound, length: range.count)
            input.moveReaderIndex(forwardBy: offset)
            phase = .body(decoder)
            if let content { exchange?.bodyReceived(content) }
            return true
        case .needsMore:
            input.moveReaderIndex(forwardBy: offset)
            phase = .body(decoder)
            return false
        case .end(let trailers):
            input.moveReaderIndex(forwardBy: offset)
            phase = .responding
            exchange?.bodyEnded(trailers: trailers)
            return true
        }
    }

    private func begin(_ head: RequestHead) {
        let isConnect = head.method == .connect
        if case .proxy = door, !isAdmitted, let token = services.configuration.clientToken {
            guard ClientToken.matches(head.fields.values(of: .proxyAuthorization), token) else {
                return respondAndClose(OwnResponse.proxyAuthenticationRequired)
            }
        }
        if head.fields.values(of: .via).contains(where: { $0.contains(services.shared.pseudonym) }) {
            return respondAndClose(.init(status: 508, detail: "this request has been through this proxy already"))
        }
        do throws(RequestTarget.Failure) {
            switch door {
            case .proxy where isConnect:
                let origin = try RequestTarget.authority(of: head)
                guard head.framing == .none else {
                    throw RequestTarget.Failure(status: 400, detail: "CONNECT has no body")
                }
                try refuseLoop(to: origin)
                phase = .connecting
                let setup = ConnectSetup(client: self, origin: origin, head: head)
                self.setup = setup
                setup.start()
            case .proxy:
                let target = try RequestTarget(absoluteFormOf: head)
                try refuseLoop(to: target.origin)
                if case .refuse(let reason) = services.shared.policy.current.sites.verdict(for: target.origin) {
                    throw RequestTarget.Failure(status: 403, detail: reason)
                }
                try checkTrace(head, target.origin)
                run(ExchangeDriver(client: self, head: head, target: target, pin: try acceptedLeaf(head)))
            case .intercepted(let site):
                guard !isConnect else {
                    throw RequestTarget.Failure(status: 400, detail: "CONNECT inside CONNECT")
                }
                let target = try RequestTarget(insideConnectTo: site.origin, head: head)
                try checkTrace(head, target.origin)
                run(ExchangeDriver(client: self, head: head, target: target, pin: site.pin))
            }
        } catch {
            respondAndClose(.init(status: error.status, detail: error.detail))
        }
    }

    private func run(_ driver: ExchangeDriver) {
        exchange = driver
        phase = driver.head.framing == .none ? .responding : .body(BodyDecoder(driver.head.framing))
        driver.start()
    }

    /// A TRACE would echo what is added to it (RFC 9110 §9.3.8), and one that may go no further is answered here, as is such an
    /// OPTIONS (RFC 9110 §7.6.2).
    private func checkTrace(_ head: RequestHead, _ origin: Origin) throws(RequestTarget.Failure) {
        guard head.method == .trace || head.method == .options else { return }
        if head.method == .trace, services.shared.policy.current.sites.rule(for: origin) != nil {
            throw RequestTarget.Failure(
                status: 405, detail: "TRACE is not sent to a site whose challenges are answered")
        }
        if head.fields.value(of: .maxForwards).flatMap({ UInt($0) }) == 0 {
            throw RequestTarget.Failure(
                status: 405, detail: "Max-Forwards ends at this proxy, which answers no \(head.methodText)")
        }
    }

    /// `Countersign-Trust: sha256:…` on an absolute-form request: the caller's decision about the origin's leaf.
    private func acceptedLeaf(_ head: RequestHead) throws(RequestTarget.Failure) -> [UInt8]? {
        let values = head.fields.values(of: .countersignTrust)
        guard let value = values.first else { return nil }
        do throws(TrustFingerprint.Fault) {
            guard values.count == 1 else {
                throw TrustFingerprint.Fault(description: "it is there \(values.count) times")
            }
            return try TrustFingerprint.parse(value)
        } catch {
            throw RequestTarget.Failure(
                status: 400,
                detail:
                    "Countersign-Trust takes sha256: and the 64 hexadecimal digits of the leaf's fingerprint, but \(error)"
            )
        }
    }

    private func refuseLoop(to origin: Origin) throws(RequestTarget.Failure) {
        guard services.ownPorts.contains(origin.port) else { return }
        let host = origin.host
        if host == "localhost" || host.hasSuffix(".localhost") || host.hasPrefix("127.") || host == "::1"
            || host == "0.0.0.0" || host == "::"
        {
            throw RequestTarget.Failure(status: 508, detail: "the target is this proxy itself")
        }
    }

    // MARK: Responses of our own

    private func malformed(_ error: HTTP1Error) {
        if let exchange {
            // The head was good and has been acted upon; its body was not.
            exchange.clientGone()
            self.exchange = nil
            return close()
        }
        respondAndClose(.init(status: error.statusHint, detail: error.detail))
    }

    func respondAndClose(_ response: OwnResponse) {
        write(response.bytes(keepAlive: false, to: .get))
        lingerAndClose()
    }

    /// Sends what is written, half-closes, and reads on for a moment: a close with unread input would be a reset, and the client
    /// might never see the response (RFC 9112 §9.6).
    private func lingerAndClose() {
        flush()
        for connection in bound.values { connection.close() }
        bound = [:]
        guard let context else { return close() }
        phase = .discarding
        idleSince = services.now
        input = ByteBuffer()
        updateReading()
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { _ in
            self.outputIsOut = true
            self.idleSince = self.services.now
            if self.inputEnded { self.close() }
        }
        if inputEnded {
            // Closing the second half closes the channel at once, and what has not gone out is lost.
            context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
        } else {
            context.close(mode: .output, promise: written)
        }
    }
}
