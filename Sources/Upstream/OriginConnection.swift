// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignChallenges
import CountersignHTTP1
import NIOCore
import CountersignChannelTLS
import CountersignTLS

/// One HTTP/1.1 connection to an origin, with or without TLS. It sends requests and receives one response at a time.
///
/// Owned by its event loop. Only the exchange that has leased it, its ``delegate``, may write to it. A connection on
/// which anything unexpected has happened (bytes after a response, an error, a request that was not completed, a
/// response that had to be repaired) is never reused.
package final class OriginConnection: OriginLease, KeptConnection, ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer
    /// Decides whether to continue to an untrusted origin, at once or later on the event loop. Keeping the answer
    /// closure keeps the connection.
    package typealias TrustSource = (ServerTrust, OriginConnection, @escaping (TrustAnswer) -> Void) -> Void

    enum Phase {
        case handshaking
        case idle
        case head
        /// The response's content is being read from ``input``.
        case body
        case tunnel
        case closed
    }

    // Some properties that other modules access for each request are computed over private storage. Each access to a
    // stored property of another module is checked for exclusivity at run time, at 70 instructions;
    // `@exclusivity(unchecked)` takes effect only inside its own module.

    /// The exchange that leases the connection, until the connection is returned or closed.
    package var delegate: (any OriginStreamDelegate)? {
        get { storedDelegate }
        set { storedDelegate = newValue }
    }
    package var certificateSource: CertificateSource? {
        get { storedCertificateSource }
        set { storedCertificateSource = newValue }
    }
    /// Decides whether to continue to an untrusted origin. Nil leaves it undecided.
    package var trustSource: TrustSource?
    /// Opens the connection; nil once the handshake is over.
    var chain: ConnectionChain?
    /// The slot of the pool that the connection belongs to while it is idle.
    var slot: UpstreamPool.Slot?

    package let place: String
    package let forwarder: Origin?
    package let forwarderTLS: TLSSummary?
    package private(set) var tls: TLSSummary?
    package var http2: HTTP2OriginConnection? { nil }
    package var isAuthenticated: Bool {
        get { storedIsAuthenticated }
        set { storedIsAuthenticated = newValue }
    }
    package internal(set) var parentAuthentication = ParentAuthentication.none
    package var isPersistentlyAuthenticated: Bool {
        get { storedIsPersistentlyAuthenticated }
        set { storedIsPersistentlyAuthenticated = newValue }
    }
    package var certificateChecks: ThreeChecks? {
        get { storedCertificateChecks }
        set { storedCertificateChecks = newValue }
    }
    package private(set) var shownIdentity: Identity?
    package var hasShownIdentity: Bool { storedHasShownIdentity }
    package var lacksIdentity = false
    package var repair: HTTP1Error.Code? { storedRepair }
    package var carriesHandshake: Bool {
        get { storedCarriesHandshake }
        set { storedCarriesHandshake = newValue }
    }
    /// The number of requests that the connection has carried.
    package var requestCount: Int { storedRequestCount }
    package var requestIsWhole: Bool { outgoing.isWhole }
    /// Whether the network takes more. Stored, because asking the channel for each piece of content is expensive.
    package var isWritable: Bool { storedIsWritable }

    private var storedDelegate: (any OriginStreamDelegate)?
    private var storedCertificateSource: CertificateSource?
    private var storedIsAuthenticated = false
    private var storedIsPersistentlyAuthenticated = false
    private var storedCertificateChecks: ThreeChecks?
    private var storedHasShownIdentity = false
    private var storedRepair: HTTP1Error.Code?
    private var storedCarriesHandshake = false
    private var storedRequestCount = 0
    private var storedIsWritable = true

    var phase: Phase
    var method: Method = .get
    private(set) var context: ChannelHandlerContext?
    let tlsHandler: TLSHandler?
    let input = MessageInput(sentBy: .origin)
    var keepsAlive = true
    /// No handler except ``tlsHandler`` is between this one and the network.
    private let isNextToSocket: Bool
    private let output: MessageOutput
    // No access to these two spans a call that may re-enter this object.
    @exclusivity(unchecked) private var outgoing = OutgoingContent()
    /// The fields of the request's head while its content goes out in chunks; they decide which trailers may follow.
    @exclusivity(unchecked) private var chunkedFields: FieldLines?
    /// A part of the content is being written. The delegate, which may send more, learns of a change of writability
    /// when all of that part is in the channel, its chunk's end included.
    private var isWriting = false
    private var writabilityChanged = false
    var paused = false
    var delivering = false
    /// The origin sends nothing more.
    var inputEnded = false
    /// The input ended without a FIN or close_notify: a response that ends with the connection may be truncated.
    var inputWasCut = false
    var bytesOfResponse = false
    /// The response in progress ends with the connection.
    var closeDelimits = false

    /// `isNextToSocket`: no handler except `tlsHandler` is before this one, so that writes and reads may bypass the
    /// pipeline.
    init(
        place: String, tlsHandler: TLSHandler?, spare: SpareBuffer = SpareBuffer(), isNextToSocket: Bool = false,
        forwarder: Origin? = nil, forwarderTLS: TLSSummary? = nil
    ) {
        self.place = place
        self.forwarder = forwarder
        self.forwarderTLS = forwarderTLS
        self.tlsHandler = tlsHandler
        self.isNextToSocket = isNextToSocket
        output = MessageOutput(spare: spare)
        phase = tlsHandler == nil ? .idle : .handshaking
    }

    /// Whether another exchange may lease the connection: nothing is pending, and nothing unexpected has happened.
    package var isReusable: Bool {
        guard case .idle = phase else { return false }
        guard storedRepair == nil || storedCarriesHandshake else { return false }
        return keepsAlive && outgoing.isWhole && !inputEnded && input.byteCount == 0 && context != nil
    }

    package var showedIdentity: String? { tlsHandler?.shownIdentity }

    package var address: String? { context?.remoteAddressText }

    package var tlsVersion: String? { tls?.version ?? tlsHandler?.version }

    /// A response was not clean.
    func noteRepair(_ repair: HTTP1Error.Code) { storedRepair = repair }

    // MARK: Requests

    package func send(_ head: RequestHead, _ changes: consuming RequestChanges) {
        let framing = changes.framing(of: head)
        let forwarding = changes.forwarding(
            framing, connection: head.upgrade != nil && !changes.withholdsContent ? .upgrade : .keepAlive,
            isForParent: forwarder != nil)
        let isSecret =
            changes.authorization != nil || changes.cookie != nil || !changes.added.isEmpty || changes.hidesTarget
            || changes.sharesSession
        chunkedFields = framing.isChunked ? head.fields : nil
        input.wipesHeads = changes.sharesSession
        if changes.sharesSession { tlsHandler?.cleansePlaintext() }
        send(about: head.forwardedSize(forwarding), isSecret: isSecret, method: head.method, content: framing) {
            head.write(forwarding, into: $0)
        }
    }

    /// Sends the bytes of a head, which content may follow in the same array; `content` is the framing that the head
    /// announces for the following content. `method` decides how the response is framed.
    package func send(head: [UInt8], method: Method, content: BodyFraming = .none) {
        send(about: head.count, isSecret: false, method: method, content: content) { room in
            room.copyBytes(from: head.prefix(room.count))
            return head.count
        }
    }

    private func send(
        about size: Int, isSecret: Bool, method: Method, content: BodyFraming,
        _ write: (UnsafeMutableRawBufferPointer) -> Int
    ) {
        guard case .idle = phase, context != nil else { return }
        phase = .head
        self.method = method
        storedRequestCount += 1
        outgoing.begin(content)
        bytesOfResponse = false
        output.write(about: size, isSecret: isSecret, write)
    }

    package func send(_ content: ByteBuffer) {
        let count = content.readableBytes
        // An empty chunk would end the content.
        guard count > 0 else { return }
        guard outgoing.take(count) else {
            return contentFault("\(count) bytes were to be sent behind the end of a request's content")
        }
        isWriting = true
        if outgoing.isChunked {
            output.write(ChunkedEncoding.header(byteCount: count))
            output.write(content)
            output.write(ChunkedEncoding.lineEnd)
        } else {
            output.write(content)
        }
        isWriting = false
        guard writabilityChanged else { return }
        writabilityChanged = false
        delegate?.originWritabilityChanged(isWritable)
    }

    package func finish(trailers: FieldLines?) {
        guard outgoing.end() else { return contentFault("a request was to end where its content does not") }
        guard outgoing.isChunked else { return }
        let fields = chunkedFields
        chunkedFields = nil
        output.write(ChunkedEncoding.end(trailers: trailers, head: fields))
    }

    /// The caller does not send the content that it has announced. Nothing more may go out on the connection.
    private func contentFault(_ detail: String) {
        if case .closed = phase { return }
        fail(UpstreamError(.ownFault, "\(place): \(detail); the connection is closed"))
    }

    package func flush() { output.flush() }

    /// Stops delivering and reading input.
    package func pauseReading() {
        guard !paused else { return }
        paused = true
        try? context?.channel.syncOptions?.setOption(.autoRead, value: false)
    }

    /// Delivers the input that was held back, then reads on.
    package func resumeReading() {
        guard paused else { return }
        paused = false
        deliver()
        // No read ends after this delivery, which would flush it.
        delegate?.originReadCompleted()
        guard !paused else { return }
        try? context?.channel.syncOptions?.setOption(.autoRead, value: true)
        if inputEnded, !delivering { endOfInput() }
    }

    package func close() {
        if case .closed = phase { return }
        phase = .closed
        delegate = nil
        leaveSlot()
        leaveChain()?.cancel()
        context?.close(promise: nil)
    }

    func leaveSlot() {
        slot?.closed(self)
        slot = nil
    }

    package func reset() { close() }

    // MARK: Leases

    /// All of the connection.
    package func lease() -> (lease: any OriginLease, stays: Bool)? { (self, stays: false) }

    package func giveBack(to slot: UpstreamPool.Slot, now: UInt64) {
        delegate = nil
        certificateSource = nil
        if isReusable, !lacksIdentity { slot.park(self, now: now) } else { close() }
    }

    package func keep() -> (any KeptConnection)? {
        delegate = nil
        certificateSource = nil
        guard isReusable else {
            close()
            return nil
        }
        return self
    }

    package func upgrade() -> UpgradedConnection? {
        guard let context else { return nil }
        phase = .tunnel
        delegate = nil
        let upgraded = UpgradedConnection(channel: context.channel, received: input.takeAll(), inputEnded: inputEnded)
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        return upgraded
    }

    // MARK: Channel

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let parent = isNextToSocket ? nil : try? context.pipeline.syncOperations.handler(type: TLSHandler.self)
        output.open(context, tls: tlsHandler ?? parent, isNextToSocket: isNextToSocket)
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        output.close()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        input.append(unwrapInboundIn(data))
        if case .idle = phase {
            // Without a request these bytes must not be taken for the next response.
            return fail(UpstreamError(.malformedResponse, "\(place): sent bytes without a request"))
        }
        deliver()
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        if let delegate { delegate.originReadCompleted() }
        output.flush()
        if !paused { output.readOn() }
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        storedIsWritable = context.channel.isWritable
        if isWriting { writabilityChanged = true } else { delegate?.originWritabilityChanged(isWritable) }
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSEvent.handshakeCompleted(let summary) where tls == nil:
            tls = summary
            if case .handshaking = phase { phase = .idle }
            finishEstablishing(nil)
            // Another handler may have taken over.
            guard self.context != nil else { return }
        case TLSEvent.serverTrustAsked(let trust):
            askAboutTrust(trust)
        case TLSEvent.certificateRequested(let request):
            let answer = { [self] (identity: Identity?) in
                shownIdentity = identity
                if identity != nil { storedHasShownIdentity = true }
                tlsHandler?.answerCertificateRequest(with: identity)
            }
            if let delegate {
                delegate.originAskedForCertificate(request, answer)
            } else if let certificateSource {
                certificateSource(request, self, answer)
            } else {
                // Nobody holds the connection, so nobody can say whether the next one would show an identity.
                if slot != nil { lacksIdentity = true }
                answer(nil)
            }
        case ChannelEvent.inputClosed, TLSEvent.inputClosed:
            inputEnded = true
            if !paused { endOfInput() }
        default:
            break
        }
        context.fireUserInboundEventTriggered(event)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case let error as TLSError where error.code == .truncated:
            // Whether this matters depends on the framing of the response.
            inputCut()
        case let error as TLSError:
            fail(UpstreamError.tls(error, at: place, shown: shownIdentity))
        case let error as UpstreamError:
            fail(error)
        default:
            inputCut()
        }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        if !inputEnded { inputCut() }
        context.fireChannelInactive()
    }

    private func inputCut() {
        guard !inputEnded else { return }
        inputEnded = true
        inputWasCut = true
        if !paused { endOfInput() }
    }
}

extension ChannelHandlerContext {
    /// The remote address with its port: `192.0.2.1:443`, `[2001:db8::1]:443`.
    var remoteAddressText: String? {
        guard let remote = channel.remoteAddress, let ip = remote.ipAddress, let port = remote.port else { return nil }
        return HostText.joined(ip, port)
    }
}
