// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import NIOCore
import CountersignTLS

/// TLS in a channel's pipeline, for clients and servers: ciphertext on the network's side, plaintext and ``TLSEvent``
/// on the other.
///
/// A client's handshake starts when the channel is active. After an error other than ``TLSError/Code/truncated`` the
/// channel is closed. `close(mode: .all)` sends close_notify first, `.output` sends it after everything that was
/// flushed. When the peer sends close_notify, a channel with remote half-closure gets `ChannelEvent.inputClosed`, and
/// any other is closed. Time limits are up to the caller. Nothing is read from the network while a certificate request
/// or a question about a server that is not trusted waits for its answer, and while revocation statuses are learned.
package final class TLSHandler: ChannelDuplexHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// The water marks of the channel. The high-water mark exceeds a burst of ciphertext, which is flushed at once and
    /// would otherwise pause and resume the other side each time.
    private static let waterMark = ChannelOptions.Types.WriteBufferWaterMark(
        low: 64 * 1024, high: 2 * PendingWrites.burstBytes)

    let engine: TLSEngine
    let isClient: Bool
    let spare: SpareBuffer
    /// No handler is between this one and the network.
    private let writesToSocket: Bool
    // Without dynamic exclusivity checks on these and on the engine's and the buffers' properties, an intercepted
    // request costs 11,100 instructions less (157,500 instead of 168,600 in path-intercepted, with its peers). They are
    // safe: no access spans a call that may lead back into the handler.
    @exclusivity(unchecked) var output: SocketOutput?
    var context: ChannelHandlerContext?
    /// Received and not yet decrypted; nil instead of an empty buffer.
    @exclusivity(unchecked) var ciphertext: ByteBuffer?
    /// Encrypted and not yet passed on; nil instead of an empty buffer.
    @exclusivity(unchecked) var outbound: ByteBuffer?
    @exclusivity(unchecked) var pending = PendingWrites()
    var outputClose: EventLoopPromise<Void>??

    private var isStarted = false
    private var isProcessing = false
    var isClosed = false
    var reportedTrust: ServerTrust?
    var trustQuestionReported = false
    var statusesRequested = false
    /// For the report that the statuses are known, while the handshake waits for them.
    private var learning: EventLoopGate?
    var requestReported = false
    var endReported = false
    var closesAfterRead = false
    var hasDelivered = false
    /// The size of ``outbound`` at the end of a server's handshake: a session ticket, for which no client waits (RFC
    /// 8446 §4.6.1).
    var ticketBytes = 0
    var readIsWanted = false
    var readIsHeld = false
    /// An error that was found while plaintext before it remained to be delivered. If the connection ends meanwhile,
    /// this is the reason that is reported.
    var failure: TLSError?

    /// The client's side of a connection to `host`, which is sent as SNI unless it is an IP address, and which the
    /// chain must name. `alpn` lists the protocols to offer, the preferred one first; `session` comes from an earlier
    /// connection to the same host. With `asksAboutTrust` the handler fires ``TLSEvent/serverTrustAsked(_:)`` for a
    /// server that is not trusted; otherwise the handshake completes. `revocation` says how the verdict depends on
    /// revocation statuses; the handshake waits for those that must be learned. With `writesToSocket` the handler
    /// writes to the socket and requests reads directly, and handlers before it do not see that.
    package init(
        client context: TLSClientContext, host: String, alpn: [String], session: TLSSession?,
        asksAboutTrust: Bool = false, revocation: RevocationCheck = .soft, spare: SpareBuffer = SpareBuffer(),
        writesToSocket: Bool = false
    ) throws(TLSError) {
        engine = try TLSEngine(
            client: context, host: host, alpn: alpn, session: session, asksAboutTrust: asksAboutTrust,
            revocation: revocation)
        isClient = true
        self.spare = spare
        self.writesToSocket = writesToSocket
        takeOutput()
    }

    /// The server's side. `speaksHTTP2`: selects `h2` by ALPN if the client offers it.
    package init(
        server context: TLSServerContext, speaksHTTP2: Bool = false, spare: SpareBuffer = SpareBuffer(),
        writesToSocket: Bool = false
    ) throws(TLSError) {
        engine = try TLSEngine(server: context, speaksHTTP2: speaksHTTP2)
        isClient = false
        self.spare = spare
        self.writesToSocket = writesToSocket
        takeOutput()
    }

    private func takeOutput() {
        // The engine belongs to this handler alone, and calls this only while a method of the handler runs it.
        engine.output = { [unowned self] bytes in
            makeRoom(bytes.count)
            outbound?.writeBytes(bytes)
        }
    }

    // MARK: Verbs and answers

    /// The result of the handshake, with changes since then; nil before its end.
    package var summary: TLSSummary? { engine.summary }

    /// The name of the identity that was sent to the peer, if any.
    package var shownIdentity: String? { engine.shownIdentity }

    /// `TLSv1.3` or `TLSv1.2`, as soon as the server has chosen, which is before its chain arrives.
    package var version: String { engine.version }

    /// The verdict on the server; nil before its chain has arrived, and on the server's side.
    package var serverTrust: ServerTrust? { engine.serverTrust }

    /// The session for a later connection; see ``TLSEngine/session``.
    package var session: TLSSession? { engine.session }

    /// Answers ``TLSEvent/certificateRequested(_:)``; nil declines. On the event loop, at once or later.
    package func answerCertificateRequest(with identity: Identity?) {
        guard let context, !isClosed, engine.certificateRequest != nil else { return }
        context.eventLoop.preconditionInEventLoop()
        engine.answerCertificateRequest(with: identity)
        requestReported = false
        resume(context)
    }

    /// Answers ``TLSEvent/serverTrustAsked(_:)``. On the event loop, at once or later; a further answer is ignored.
    package func answerTrustQuestion(with answer: TrustAnswer) {
        guard let context, !isClosed, engine.unansweredTrust != nil else { return }
        context.eventLoop.preconditionInEventLoop()
        engine.answerTrustQuestion(with: answer)
        trustQuestionReported = false
        resume(context)
    }

    /// Has the statuses learned that the handshake waits for, and continues after that.
    func learn(_ wait: TLSEngine.StatusWait, _ context: ChannelHandlerContext) {
        let gate = EventLoopGate(context.eventLoop)
        learning = gate
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        wait.lookup.learn(wait.questions, engine.revocation.patience) {
            gate.execute { bound.value.statusesLearned() }
        }
    }

    private func statusesLearned() {
        guard let context, !isClosed, engine.awaitsStatuses else { return }
        engine.statusesLearned()
        resume(context)
    }

    private func resume(_ context: ChannelHandlerContext) {
        guard !isProcessing else { return }
        process(context)
        finishRead(context)
        if readIsHeld, !engine.isSuspended, !isClosed {
            readIsHeld = false
            context.read()
        }
    }

    /// Closes the connection without close_notify, so that the peer sees that it was cut off.
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
        learning?.close()
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
        if ciphertext != nil {
            ciphertext?.writeImmutableBuffer(bytes)
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

    /// The stream from the network has ended.
    private func reportEnd(_ context: ChannelHandlerContext) {
        takeRest(context)
        guard !isClosed, !endReported else { return }
        if let failure { return fail(context, failure) }
        endReported = true
        guard let error = engine.inputEnded() else { return }
        if engine.isEstablished { context.fireErrorCaught(error) } else { fail(context, error) }
    }

    /// Decrypts the remaining input, which NIO reads when a write fails: it contains the reason, such as an alert or a
    /// whole response. If the write happened inside ``process(_:)``, nothing else would decrypt it.
    private func takeRest(_ context: ChannelHandlerContext) {
        guard !isClosed, !endReported, !engine.isSuspended,
            ciphertext != nil || engine.pendingPlaintextBytes > 0
        else { return }
        do throws(TLSError) { try takeInput(context) } catch { fail(context, error) }
    }

    // MARK: The engine

    /// Runs the engine until it needs input or an answer. Other handlers may call back when it fires an event; the loop
    /// handles the effects.
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
        let isTicket = ticketBytes > 0 && outbound?.readableBytes == ticketBytes && pending.isEmpty
        ticketBytes = 0
        // If the client has already sent a request after the handshake, the ticket is sent together with the response.
        if !(isTicket && delivered) { emit(context) }
        if delivered { readIsWanted = false }
        context.fireChannelReadComplete()
        if closesAfterRead, !isClosed { return close(context: context, mode: .all, promise: nil) }
        // Records without plaintext do not satisfy a read, and the handshake needs its own reads. Handlers may have
        // requested another read when they got the plaintext.
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
