// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import NIOCore

/// TLS in a channel's pipeline, for either side: ciphertext towards the network, plaintext behind it, ``TLSEvent`` in
/// between.
///
/// A client's handshake starts when the channel is active. After an error other than ``TLSError/Code/truncated`` the
/// channel is closed. `close(mode: .all)` sends close_notify first, `.output` does so behind all that was flushed. When
/// the peer's close_notify comes, a channel with remote half-closure gets `ChannelEvent.inputClosed`, any other is
/// closed. Time-outs are the caller's. While a certificate request, or a question about a server that is not trusted,
/// waits for its answer nothing is read from the network.
package final class TLSHandler: ChannelDuplexHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// Of the channel that it is in. What it writes at once and flushes is no reason to hold whoever writes: each time,
    /// the other side would stop reading and go on at once.
    private static let waterMark = ChannelOptions.Types.WriteBufferWaterMark(
        low: 64 * 1024, high: 2 * PendingWrites.burstBytes)

    let engine: TLSEngine
    let isClient: Bool
    let spare: SpareBuffer
    /// Nothing stands between it and the network.
    private let writesToSocket: Bool
    var output: SocketOutput?
    var context: ChannelHandlerContext?
    // Buffers are taken out while something is done with them: an access that ends at once needs no check at run time
    // that there is no other. Nil in the place of an empty one.
    var ciphertext: ByteBuffer?
    var outbound: ByteBuffer?
    var pending = PendingWrites()
    /// There may be something in ``pending``: most of the time nothing is, and then it need not be asked.
    var hasPending = false
    var outputClose: EventLoopPromise<Void>??

    private var isStarted = false
    private var isProcessing = false
    var isClosed = false
    var reportedTrust: ServerTrust?
    var trustQuestionReported = false
    var requestReported = false
    var endReported = false
    var closesAfterRead = false
    var hasDelivered = false
    /// How much there was to send when the handshake, a server's, had just ended: a ticket, which nobody waits for (RFC
    /// 8446 §4.6.1).
    var ticketBytes = 0
    var readIsWanted = false
    var readIsHeld = false
    /// Found while there was plaintext to deliver before it: whatever ends the connection in between, this is why.
    var failure: TLSError?

    /// The client's side of a connection to `host`: SNI, unless it is an IP address, and what the chain is judged for.
    /// `alpn` names the protocols to offer, the best first; `session` is one of an earlier connection to the same host.
    /// With `asksAboutTrust` a server that is not trusted is asked about by ``TLSEvent/serverTrustAsked(_:)``; without,
    /// the handshake completes. With `writesToSocket` what it writes goes there at once, and no handler before it sees
    /// that, or that it reads on.
    package init(
        client context: TLSClientContext, host: String, alpn: [String], session: TLSSession?,
        asksAboutTrust: Bool = false, spare: SpareBuffer = SpareBuffer(), writesToSocket: Bool = false
    ) throws(TLSError) {
        engine = try TLSEngine(
            client: context, host: host, alpn: alpn, session: session, asksAboutTrust: asksAboutTrust)
        isClient = true
        self.spare = spare
        self.writesToSocket = writesToSocket
        takeOutput()
    }

    /// The server's side.
    package init(
        server context: TLSServerContext, spare: SpareBuffer = SpareBuffer(), writesToSocket: Bool = false
    ) throws(TLSError) {
        engine = try TLSEngine(server: context)
        isClient = false
        self.spare = spare
        self.writesToSocket = writesToSocket
        takeOutput()
    }

    private func takeOutput() {
        engine.output = { [unowned self] bytes in
            var all = takeOutbound(withRoom: bytes.count)
            all.writeBytes(bytes)
            outbound = all
        }
    }

    // MARK: Verbs and answers

    /// What the handshake came to, and since then; nil before its end.
    package var summary: TLSSummary? { engine.summary }

    /// The name of the identity that the peer is shown; nil: none.
    package var shownIdentity: String? { engine.shownIdentity }

    /// `TLSv1.3` or `TLSv1.2`, once the server has chosen; its chain comes after that.
    package var version: String { engine.version }

    /// The verdict on the server; nil before its chain came, and on the server's side.
    package var serverTrust: ServerTrust? { engine.serverTrust }

    /// The session for a later connection; see ``TLSEngine/session``.
    package var session: TLSSession? { engine.session }

    /// Answers ``TLSEvent/certificateRequested(_:)``; nil: without a certificate. On the event loop, at once or later.
    package func answerCertificateRequest(with identity: Identity?) {
        guard let context, !isClosed, engine.certificateRequest != nil else { return }
        context.eventLoop.preconditionInEventLoop()
        engine.answerCertificateRequest(with: identity)
        requestReported = false
        goOn(context)
    }

    /// Answers ``TLSEvent/serverTrustAsked(_:)``. On the event loop, at once or later; a further answer is ignored.
    package func answerTrustQuestion(with answer: TrustAnswer) {
        guard let context, !isClosed, engine.unansweredTrust != nil else { return }
        context.eventLoop.preconditionInEventLoop()
        engine.answerTrustQuestion(with: answer)
        trustQuestionReported = false
        goOn(context)
    }

    private func goOn(_ context: ChannelHandlerContext) {
        guard !isProcessing else { return }
        process(context)
        finishRead(context)
        if readIsHeld, !engine.isSuspended, !isClosed {
            readIsHeld = false
            context.read()
        }
    }

    /// Closes the connection without close_notify, so that the peer sees that it was cut.
    package func abort() {
        guard let context, !isClosed else { return }
        isClosed = true
        failPending(ChannelError.ioOnClosedChannel)
        context.close(promise: nil)
    }

    // MARK: Inbound

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if writesToSocket { output = SocketOutput(context.channel) }
        try? context.channel.syncOptions?.setOption(.writeBufferWaterMark, value: Self.waterMark)
        if context.channel.isActive { start(context) }
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        output = nil
        failPending(ChannelError.ioOnClosedChannel)
    }

    package func channelActive(context: ChannelHandlerContext) {
        start(context)
        context.fireChannelActive()
    }

    private func start(_ context: ChannelHandlerContext) {
        guard !isStarted else { return }
        isStarted = true
        if isClient {
            process(context)
            emit(context)
        }
        context.read()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        if var all = takeCiphertext() {
            all.writeImmutableBuffer(bytes)
            ciphertext = all
        } else if bytes.readableBytes > 0 {
            ciphertext = bytes
        }
        process(context)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        finishRead(context)
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else { return context.fireUserInboundEventTriggered(event) }
        takeRest(context)
        guard !endReported else { return }
        reportEnd(context)
        if !isClosed { context.fireUserInboundEventTriggered(event) }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        reportEnd(context)
        isClosed = true
        failPending(ChannelError.ioOnClosedChannel)
        failOutputClose(ChannelError.ioOnClosedChannel)
        context.fireChannelInactive()
    }

    /// The stream of the network is over.
    private func reportEnd(_ context: ChannelHandlerContext) {
        takeRest(context)
        guard !isClosed, !endReported else { return }
        if let failure { return fail(context, failure) }
        endReported = true
        guard let error = engine.inputEnded() else { return }
        if engine.isEstablished { context.fireErrorCaught(error) } else { fail(context, error) }
    }

    /// A write that fails reads what is there still, which says why: an alert, or a whole response. Where that happens
    /// inside ``process(_:)``, which has encrypted what was to be written, nobody else comes back to it.
    private func takeRest(_ context: ChannelHandlerContext) {
        guard !isClosed, !endReported, !engine.isSuspended,
            ciphertext != nil || engine.pendingPlaintextBytes > 0
        else { return }
        do throws(TLSError) { try takeInput(context) } catch { fail(context, error) }
    }

    // MARK: The engine

    /// Runs the engine until it wants more from the network or from the caller. What handlers do in answer to an
    /// event inside it is picked up by the loop.
    func process(_ context: ChannelHandlerContext) {
        guard !isProcessing, !isClosed else { return }
        isProcessing = true
        defer { isProcessing = false }
        do throws(TLSError) {
            try takeInput(context)
            if !isClosed { try encrypt(context) }
            closeOutputWhenWritten(context)
        } catch {
            fail(context, error)
        }
    }

    func takeInput(_ context: ChannelHandlerContext) throws(TLSError) {
        while !isClosed {
            let goesOn = try engine.isEstablished ? decrypt(context) : handshake(context)
            if !goesOn { break }
        }
    }

    func finishRead(_ context: ChannelHandlerContext) {
        let delivered = hasDelivered
        hasDelivered = false
        let isTicket = ticketBytes > 0 && outbound?.readableBytes == ticketBytes && !hasPending
        ticketBytes = 0
        // Behind the handshake came a request already: a ticket goes out with the answer.
        if !(isTicket && delivered) { emit(context) }
        if delivered { readIsWanted = false }
        context.fireChannelReadComplete()
        if closesAfterRead, !isClosed { return close(context: context, mode: .all, promise: nil) }
        // Records that held no plaintext do not answer a read, and the handshake reads on its own account. What was
        // delivered may be asked for more in between.
        if !isClosed, !endReported, !engine.isSuspended, readIsWanted || !engine.isEstablished {
            if let output { output.readOn() } else { context.read() }
        }
    }

    func fail(_ context: ChannelHandlerContext, _ error: TLSError) {
        guard !isClosed else { return }
        isClosed = true
        failPending(error)
        failOutputClose(error)
        emit(context)
        context.fireErrorCaught(error)
        context.close(promise: nil)
    }
}
