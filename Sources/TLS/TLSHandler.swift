// SPDX-License-Identifier: Apache-2.0

import Certificates
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

    /// Of the channel that it is in. What it writes at once and flushes is no reason to hold whoever writes: each time, the other
    /// side would stop reading and go on at once.
    private static let waterMark = ChannelOptions.Types.WriteBufferWaterMark(
        low: 64 * 1024, high: 2 * PendingWrites.burstBytes)

    private let engine: TLSEngine
    private let isClient: Bool
    private let spare: SpareBuffer
    /// Nothing stands between it and the network.
    private let writesToSocket: Bool
    private var output: SocketOutput?
    private var context: ChannelHandlerContext?
    // Buffers are taken out while something is done with them: an access that ends at once needs no check at run time that there
    // is no other. Nil in the place of an empty one.
    private var ciphertext: ByteBuffer?
    private var outbound: ByteBuffer?
    private var pending = PendingWrites()
    /// There may be something in ``pending``: most of the time nothing is, and then it need not be asked.
    private var hasPending = false
    private var outputClose: EventLoopPromise<Void>??

    private var isStarted = false
    private var isProcessing = false
    private var isClosed = false
    private var reportedTrust: ServerTrust?
    private var trustQuestionReported = false
    private var requestReported = false
    private var endReported = false
    private var closesAfterRead = false
    private var hasDelivered = false
    private var readIsWanted = false
    private var readIsHeld = false
    /// Found while there was plaintext to deliver before it: whatever ends the connection in between, this is why.
    private var failure: TLSError?

    /// The client's side of a connection to `host`: SNI, unless it is an IP address, and what the chain is judged for.
    /// `alpn` names the protocols to offer, the best first; `session` is one of an earlier connection to the same host.
    /// With `asksAboutTrust` a server that is not trusted is asked about by ``TLSEvent/serverTrustAsked(_:)``; without,
    /// the handshake completes. With `writesToSocket` what it writes goes there at once, and no handler before it sees it.
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

    /// A write that fails reads what is there still, which says why: an alert, or a whole response. Where that happens inside
    /// ``process(_:)``, which has encrypted what was to be written, nobody else comes back to it.
    private func takeRest(_ context: ChannelHandlerContext) {
        guard !isClosed, !endReported, !engine.isSuspended,
            ciphertext != nil || engine.pendingPlaintextBytes > 0
        else { return }
        do throws(TLSError) { try takeInput(context) } catch { fail(context, error) }
    }

    // MARK: Outbound

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isClosed, outputClose == nil else {
            promise?.fail(isClosed ? ChannelError.ioOnClosedChannel : ChannelError.outputClosed)
            return
        }
        append(unwrapOutboundIn(data), promise)
    }

    private func append(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>?) {
        pending.append(bytes, promise)
        hasPending = true
    }

    package func flush(context: ChannelHandlerContext) {
        if hasPending { pending.mark() }
        do throws(TLSError) {
            if !isClosed { try encrypt(context) }
        } catch {
            return fail(context, error)
        }
        emit(context)
    }

    /// What ``write(context:data:promise:)`` and ``flush(context:)`` do, without the way through the pipeline.
    package func send(_ bytes: ByteBuffer) {
        guard let context, !isClosed, outputClose == nil else { return }
        do throws(TLSError) {
            let isEncrypted = if hasPending { false } else { try encrypts(bytes) }
            if !isEncrypted {
                append(bytes, nil)
                pending.mark()
                if !engine.isSuspended || ask(context) { try encrypt(context) }
            }
        } catch {
            return fail(context, error)
        }
        emit(context)
    }

    package func read(context: ChannelHandlerContext) {
        readIsWanted = true
        if engine.isSuspended { readIsHeld = true } else { context.read() }
    }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        switch mode {
        case .input:
            context.close(mode: .input, promise: promise)
        case .output:
            guard !isClosed, outputClose == nil else {
                promise?.fail(isClosed ? ChannelError.ioOnClosedChannel : ChannelError.outputClosed)
                return
            }
            outputClose = .some(promise)
            closeOutputWhenWritten(context)
        case .all:
            if !isClosed {
                isClosed = true
                engine.closeOutput()
                emit(context)
                failPending(ChannelError.ioOnClosedChannel)
                failOutputClose(ChannelError.ioOnClosedChannel)
            }
            context.close(mode: .all, promise: promise)
        }
    }

    /// Writes that were not flushed before `close(mode: .output)` are lost, as they are in a channel without TLS.
    private func closeOutputWhenWritten(_ context: ChannelHandlerContext) {
        guard let promise = outputClose, !isClosed, engine.isEstablished, !engine.isOutputClosed, !pending.isMarked
        else { return }
        engine.closeOutput()
        failPending(ChannelError.outputClosed)
        emit(context)
        context.close(mode: .output, promise: promise)
    }

    /// Whoever is told may write or close in answer.
    private func failPending(_ error: any Error) {
        var failed = pending
        pending = PendingWrites()
        hasPending = false
        failed.fail(error)
    }

    private func failOutputClose(_ error: any Error) {
        guard let promise = outputClose, !engine.isOutputClosed else { return }
        promise?.fail(error)
        outputClose = .some(nil)
    }

    // MARK: The engine

    /// Runs the engine until it wants more from the network or from the caller. What handlers do in answer to an
    /// event inside it is picked up by the loop.
    private func process(_ context: ChannelHandlerContext) {
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

    private func takeInput(_ context: ChannelHandlerContext) throws(TLSError) {
        while !isClosed {
            let goesOn = try engine.isEstablished ? decrypt(context) : handshake(context)
            if !goesOn { break }
        }
    }

    private func handshake(_ context: ChannelHandlerContext) throws(TLSError) -> Bool {
        var result = Result<TLSEngine.Step, TLSError>.success(.wantsInput)
        lendCiphertext { engine in
            do throws(TLSError) { result = .success(try engine.handshake()) } catch { result = .failure(error) }
        }
        reportTrust(context)
        switch try result.get() {
        case .done:
            if let summary = engine.summary {
                context.fireUserInboundEventTriggered(TLSEvent.handshakeCompleted(summary))
            }
            return ciphertext != nil
        case .suspended:
            return goesOnAfterAsking(context)
        case .wantsInput:
            return false
        case .inputClosed:
            throw TLSError(.handshakeFailed, "the peer closed the connection in the handshake")
        }
    }

    /// A verdict is told when it is the last, or when it is asked about.
    private func reportTrust(_ context: ChannelHandlerContext) {
        guard engine.serverTrustIsFinal || engine.asksAboutTrust, let trust = engine.serverTrust,
            trust != reportedTrust
        else { return }
        reportedTrust = trust
        context.fireUserInboundEventTriggered(TLSEvent.serverTrustEvaluated(trust))
    }

    /// Delivers what can be decrypted, a buffer of it; true when there is more to be done.
    private func decrypt(_ context: ChannelHandlerContext) throws(TLSError) -> Bool {
        // As much as came: what a record began with in an earlier read mostly leaves room for what this one begins with.
        var plaintext = spare.take(room: max(ciphertext?.readableBytes ?? 0, engine.pendingPlaintextBytes))
        var result = Result<TLSEngine.Step, TLSError>.success(.wantsInput)
        var hasMore = false
        lendCiphertext { engine in
            repeat {
                hasMore = false
                plaintext.writeWithUnsafeMutableBytes(minimumWritableBytes: 1) { room in
                    do throws(TLSError) { result = .success(try engine.read(into: room)) } catch {
                        result = .failure(error)
                    }
                    guard case .success(.done(let count)) = result else { return 0 }
                    return count
                }
                guard case .success(.done) = result else { return }
                hasMore = engine.unreadInputBytes > 0 || engine.pendingPlaintextBytes > 0
            } while hasMore && plaintext.writableBytes > 0
        }
        if case .failure(let error) = result { failure = error }
        if plaintext.readableBytes > 0 {
            hasDelivered = true
            context.fireChannelRead(wrapInboundOut(plaintext))
        }
        spare.giveBack(plaintext)
        switch try result.get() {
        case .done, .wantsInput:
            return hasMore || ciphertext != nil
        case .suspended:
            return goesOnAfterAsking(context)
        case .inputClosed:
            inputClosed(context)
            return false
        }
    }

    private func lendCiphertext(_ body: (TLSEngine) -> Void) {
        let engine = engine
        guard var bytes = takeCiphertext() else {
            _ = engine.withInput(UnsafeRawBufferPointer(start: nil, count: 0)) { body(engine) }
            return
        }
        bytes.readWithUnsafeReadableBytes { bytes in engine.withInput(bytes) { body(engine) } }
        if bytes.readableBytes > 0 { ciphertext = bytes }
    }

    private func takeCiphertext() -> ByteBuffer? {
        let bytes = ciphertext
        ciphertext = nil
        return bytes
    }

    /// Whoever was delivered plaintext before may have sent something, upon which it was asked, and has answered, already.
    private func goesOnAfterAsking(_ context: ChannelHandlerContext) -> Bool {
        _ = ask(context)
        return !engine.isSuspended
    }

    /// Fires the question or request once; true when it has been answered.
    private func ask(_ context: ChannelHandlerContext) -> Bool {
        if let trust = engine.unansweredTrust {
            guard !trustQuestionReported else { return false }
            trustQuestionReported = true
            context.fireUserInboundEventTriggered(TLSEvent.serverTrustAsked(trust))
            return engine.unansweredTrust == nil
        }
        guard let request = engine.certificateRequest, !requestReported else { return false }
        requestReported = true
        context.fireUserInboundEventTriggered(TLSEvent.certificateRequested(request))
        return engine.certificateRequest == nil
    }

    private func inputClosed(_ context: ChannelHandlerContext) {
        ciphertext = nil
        guard !endReported else { return }
        endReported = true
        context.fireUserInboundEventTriggered(TLSEvent.inputClosed)
        let halfCloses = try? context.channel.syncOptions?.getOption(.allowRemoteHalfClosure)
        if halfCloses == true {
            if !isClosed { context.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
        } else {
            closesAfterRead = true
        }
    }

    private func encrypt(_ context: ChannelHandlerContext) throws(TLSError) {
        guard hasPending, pending.isMarked, engine.isEstablished, !engine.isSuspended else { return }
        if let only = pending.takeOnly() {
            if try encrypts(only) {
                hasPending = false
                return
            }
            pending.putBack(only)
            guard engine.isSuspended, ask(context) else { return }
        }
        while let piece = pending.nextPiece(spare) {
            makeRoom(pending.ciphertextEstimateBytes)
            let step = try piece.withUnsafeReadableBytes { bytes throws(TLSError) in try engine.write(bytes) }
            guard case .done = step else {
                if step == .suspended, ask(context) { continue }
                return
            }
            pending.pieceWritten()
            // Flushed here: what comes behind may be nothing, and then nobody flushes.
            if let outbound, outbound.readableBytes >= PendingWrites.burstBytes { emit(context) }
        }
        hasPending = !pending.isEmpty
    }

    /// False: not now.
    private func encrypts(_ bytes: ByteBuffer) throws(TLSError) -> Bool {
        guard engine.isEstablished, !engine.isSuspended, bytes.readableBytes <= PendingWrites.pieceBytes else {
            return false
        }
        makeRoom(PendingWrites.ciphertextBytes(of: bytes))
        let step = try bytes.withUnsafeReadableBytes { bytes throws(TLSError) in try engine.write(bytes) }
        if case .done = step { return true } else { return false }
    }

    private func makeRoom(_ bytes: Int) {
        if outbound == nil { outbound = spare.take(room: bytes) }
    }

    private func takeOutbound() -> ByteBuffer? {
        let bytes = outbound
        outbound = nil
        return bytes
    }

    private func takeOutbound(withRoom room: Int) -> ByteBuffer { takeOutbound() ?? spare.take(room: room) }

    /// Passes what was encrypted to the network, in one write.
    private func emit(_ context: ChannelHandlerContext) {
        var promise: EventLoopPromise<Void>?
        if hasPending {
            promise = pending.takeWrittenPromise()
            hasPending = !pending.isEmpty
        }
        var bytes = takeOutbound() ?? ByteBuffer()
        guard bytes.readableBytes > 0 || promise != nil else { return }
        if promise == nil, sendStraight(&bytes, context) { return spare.giveBack(bytes) }
        if var socket = output {
            socket.channelWrites()
            output = socket
        }
        // May tell of writability, upon which more is written.
        context.write(wrapOutboundOut(bytes), promise: promise)
        spare.giveBack(bytes)
        context.flush()
    }

    private func sendStraight(_ bytes: inout ByteBuffer, _ context: ChannelHandlerContext) -> Bool {
        guard var socket = output else { return false }
        let isOut = socket.send(&bytes, in: context)
        output = socket
        return isOut
    }

    private func finishRead(_ context: ChannelHandlerContext) {
        emit(context)
        let delivered = hasDelivered
        hasDelivered = false
        if delivered { readIsWanted = false }
        context.fireChannelReadComplete()
        if closesAfterRead, !isClosed { return close(context: context, mode: .all, promise: nil) }
        // Records that held no plaintext do not answer a read, and the handshake reads on its own account.
        if !isClosed, !endReported, !engine.isSuspended, readIsWanted || !engine.isEstablished {
            context.read()
        }
    }

    private func fail(_ context: ChannelHandlerContext, _ error: TLSError) {
        guard !isClosed else { return }
        isClosed = true
        failPending(error)
        failOutputClose(error)
        emit(context)
        context.fireErrorCaught(error)
        context.close(promise: nil)
    }
}
