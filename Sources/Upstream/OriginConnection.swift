// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignHTTP1
import NIOCore
import CountersignTLS

/// One HTTP/1.1 connection to an origin: requests out, one response at a time back, over TLS or not.
///
/// Owned by its event loop. Whoever leased it is its ``delegate``; nobody else may write to it. A connection on which anything
/// unexpected happened (bytes behind a response, an error, a request that was not finished) is never reusable.
package final class OriginConnection: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer
    /// Asks who the client of this connection is; the answer may come later, on the event loop. Who keeps it keeps the connection.
    package typealias CertificateSource = (CertificateRequest, OriginConnection, @escaping (Identity?) -> Void) -> Void
    /// Asks whether to go on to an origin that is not trusted; the answer may come later, on the event loop. Who keeps it keeps the
    /// connection.
    package typealias TrustSource = (ServerTrust, OriginConnection, @escaping (TrustAnswer) -> Void) -> Void

    enum Phase {
        case handshaking
        case idle
        case head
        /// ``input`` is in it.
        case body
        case tunnel
        case closed
    }

    /// Whoever leased the connection, until it is given back or closed.
    package var delegate: (any OriginConnectionDelegate)? {
        get { leaser }
        set { leaser = newValue }
    }
    /// Answers the origin's certificate requests while there is no ``delegate``, during the handshake. Nil: none is shown.
    package var certificateSource: CertificateSource? {
        get { identifies }
        set { identifies = newValue }
    }
    /// Answers the question whether to go on to an origin that is not trusted. Nil: undecided, as nobody is asked.
    package var trustSource: TrustSource?
    /// Opens the connection; nil once the handshake is over.
    var chain: ConnectionChain?
    /// Where the connection waits while it is idle.
    var slot: UpstreamPool.Slot?

    /// `host:port`, for error texts.
    package let place: String
    /// What the handshake found out; nil without TLS.
    package private(set) var tls: TLSSummary?
    /// An NTLM dialogue, a client's own or ours, has been spoken on it: it belongs to one client from then on.
    package var isAuthenticated: Bool {
        get { isPersonal }
        set { isPersonal = newValue }
    }
    /// How the last certificate request of the origin was decided; nil where none came.
    package var certificateChecks: ThreeChecks? {
        get { checks }
        set {
            checks = newValue
            hasChecks = newValue != nil
        }
    }
    /// The client identity that the origin was shown last.
    package private(set) var shownIdentity: Identity?
    /// The origin was shown a client identity at some time: the connection stands for a person.
    package var hasShownIdentity: Bool { wasIdentified }
    /// There are ``certificateChecks``.
    package var hasCertificateChecks: Bool { hasChecks }
    /// How many requests it has carried.
    package var requestCount: Int { requests }

    // What other rooms see is stored apart from what they see it by: the compiler then knows of every access to it, and leaves
    // out the checks at run time that no two of them overlap.
    private var leaser: (any OriginConnectionDelegate)?
    private var identifies: CertificateSource?
    private var checks: ThreeChecks?
    private var hasChecks = false
    private var requests = 0
    private var isPersonal = false
    private var wasIdentified = false
    private var isWhole = true
    var hasEnded = false

    var phase: Phase
    var method: Method = .get
    private(set) var context: ChannelHandlerContext?
    let tlsHandler: TLSHandler?
    let input = MessageInput(sentBy: .origin)
    var keepsAlive = true
    /// Nothing but its TLS stands between it and the network.
    private let isNextToSocket: Bool
    private let output: MessageOutput
    /// The request that is being answered is out whole.
    package var requestIsWhole: Bool { isWhole }
    var paused = false
    var delivering = false
    /// The origin sends no more.
    package var inputEnded: Bool { hasEnded }
    /// It did not say that it was done: what ends with the connection may be cut.
    var inputWasCut = false
    var bytesOfResponse = false
    /// The response in progress ends with the connection.
    var closeDelimits = false

    /// With `isNextToSocket` no handler but `tlsHandler` stands before it, and none sees what it writes or that it reads on.
    init(
        place: String, tlsHandler: TLSHandler?, spare: SpareBuffer = SpareBuffer(), isNextToSocket: Bool = false
    ) {
        self.place = place
        self.tlsHandler = tlsHandler
        self.isNextToSocket = isNextToSocket
        output = MessageOutput(spare: spare)
        phase = tlsHandler == nil ? .idle : .handshaking
    }

    /// Another exchange may lease it: nothing is pending on it and nothing odd has happened.
    package var isReusable: Bool {
        guard case .idle = phase else { return false }
        return keepsAlive && requestIsWhole && !inputEnded && input.byteCount == 0 && context != nil
    }

    /// The name of the client identity that it shows.
    package var showedIdentity: String? { tlsHandler?.shownIdentity }

    /// The network takes more. Asking the channel each time is dear.
    package private(set) var isWritable = true

    /// The address that is connected to, with its port: `192.0.2.1:443`, `[2001:db8::1]:443`.
    package var address: String? {
        guard let remote = context?.channel.remoteAddress, let ip = remote.ipAddress, let port = remote.port else {
            return nil
        }
        return HostText.joined(ip, port)
    }

    /// `TLSv1.3` or `TLSv1.2`, as soon as the origin has said so; nil without TLS.
    package var tlsVersion: String? { tls?.version ?? tlsHandler?.version }

    /// The channel, for a tunnel that takes it over.
    package var channel: (any Channel)? { context?.channel }

    // MARK: Requests

    /// Sends a request head; call ``endRequest()`` when its body is out.
    package func send(_ head: RequestHead, as forwarding: borrowing RequestForwarding) {
        send(about: head.forwardedSize(forwarding), method: head.method) { head.write(forwarding, into: $0) }
    }

    /// Sends a request head; `method` decides how the response is framed. Call ``endRequest()`` when its body is out.
    package func send(head: [UInt8], method: Method) {
        send(about: head.count, method: method) { room in
            room.copyBytes(from: head.prefix(room.count))
            return head.count
        }
    }

    private func send(about size: Int, method: Method, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        guard case .idle = phase, context != nil else { return }
        phase = .head
        self.method = method
        requests += 1
        isWhole = false
        bytesOfResponse = false
        output.write(about: size, write)
    }

    /// Sends bytes of the request's body, framed by the caller.
    package func send(body: ByteBuffer) {
        output.write(body)
    }

    /// The request is out whole.
    package func endRequest() {
        isWhole = true
    }

    package func flush() { output.flush() }

    /// Holds the delivery of what the origin sends, and its reading.
    package func pauseReading() {
        guard !paused else { return }
        paused = true
        try? context?.channel.syncOptions?.setOption(.autoRead, value: false)
    }

    /// Goes on delivering.
    package func resumeReading() {
        guard paused else { return }
        paused = false
        deliver()
        // What was held has no read of its own whose end would flush it.
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

    /// Takes the connection out of HTTP: the bytes that already came behind the last head. The handler leaves the pipeline.
    package func becomeTunnel() -> ByteBuffer {
        phase = .tunnel
        delegate = nil
        let rest = input.takeAll()
        if let context { context.pipeline.syncOperations.removeHandler(context: context, promise: nil) }
        return rest
    }

    // MARK: Channel

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        output.open(context, tls: tlsHandler, isNextToSocket: isNextToSocket)
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        output.close()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        input.append(unwrapInboundIn(data))
        if case .idle = phase {
            // Nobody asked: whatever it is, it must not become the next response.
            return fail(UpstreamError(.malformedResponse, "\(place): bytes that answer no request"))
        }
        deliver()
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        if let delegate { delegate.originReadCompleted() }
        output.flush()
        if !paused { output.readOn() }
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        isWritable = context.channel.isWritable
        delegate?.originWritabilityChanged(isWritable)
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSEvent.handshakeCompleted(let summary) where tls == nil:
            tls = summary
            if case .handshaking = phase { phase = .idle }
            finishEstablishing(nil)
        case TLSEvent.serverTrustAsked(let trust):
            askAboutTrust(trust)
        case TLSEvent.certificateRequested(let request):
            let answer = { [self] (identity: Identity?) in
                shownIdentity = identity
                if identity != nil { wasIdentified = true }
                tlsHandler?.answerCertificateRequest(with: identity)
            }
            if let delegate {
                delegate.originAskedForCertificate(request, self, answer)
            } else if let certificateSource {
                certificateSource(request, self, answer)
            } else {
                answer(nil)
            }
        case ChannelEvent.inputClosed, TLSEvent.inputClosed:
            hasEnded = true
            if !paused { endOfInput() }
        default:
            break
        }
        context.fireUserInboundEventTriggered(event)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case let error as TLSError where error.code == .truncated:
            // Whether that matters depends on the framing: `endOfInput` knows.
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
        hasEnded = true
        inputWasCut = true
        if !paused { endOfInput() }
    }
}
