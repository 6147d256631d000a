// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignChannelTLS
import CountersignHTTP1
import CountersignHTTP2
import CountersignTLS
import NIOCore

/// An HTTP/2 connection to an origin (RFC 9113). Exchanges lease ``HTTP2OriginStream``s of it, many at a time.
///
/// It takes the place of the ``OriginConnection`` whose TLS handshake selected `h2`. While it has a home, other
/// exchanges find it: a slot of the pool, which shares it between clients, or the one client that it acts for. Without
/// a home it closes after its last lease. The first authentication of the connection takes it out of the pool.
///
/// This file has the channel's events and the leases; `+Session` has what the session reports, `+Liveness` the PING.
package final class HTTP2OriginConnection: ChannelInboundHandler, KeptConnection {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    let place: String
    let tls: TLSSummary?
    let tlsHandler: TLSHandler?
    let shownIdentity: Identity?
    package let hasShownIdentity: Bool
    var lacksIdentity = false
    var certificateChecks: ThreeChecks?
    /// Each request carries an answer, whatever the origin says: Apache tells every stream that it authenticates the
    /// connection, and challenges the next one.
    package var isPersistentlyAuthenticated: Bool { false }
    /// The connection has carried an answer of Negotiate, so it acts for one client.
    package var isAuthenticated = false { didSet { if isAuthenticated { leaveSlot() } } }

    let link: HTTP2Link
    private(set) var context: ChannelHandlerContext?
    /// The leases with an open stream.
    @exclusivity(unchecked) var streams: [Int32: HTTP2OriginStream] = [:]
    /// The leases that have received something in this read.
    @exclusivity(unchecked) private var touched: [HTTP2OriginStream] = []
    /// How many streams have been opened.
    private(set) var requestCount = 0
    /// Why the connection ends, for the streams that end with it.
    private(set) var failure: UpstreamError?

    /// The slot of the pool in which other exchanges find the connection.
    private var slot: UpstreamPool.Slot?
    /// A client keeps the connection.
    private var isKept = false
    private var leaseCount = 0
    /// Leases without an open stream, for each of which one stays free.
    private var waitingLeases = 0
    /// When the last lease ended, in seconds of the pool's clock; nil while there is one, or if that is not known.
    private var idleSince: UInt64?
    private var isEnding = false
    /// The network may have lost the connection, so it takes no further request.
    private var isSuspect = false
    /// The origin's SETTINGS have arrived, and with them its limit of streams.
    private var isSettled = false
    var liveness = HTTP2Liveness()
    /// A tick of ``liveness`` is due.
    var isWatched = false
    /// Called once, when ``isSettled`` becomes true or the connection ends.
    private var whenSettled: (() -> Void)?

    /// Takes over from `connection`, whose handshake has selected `h2`; nil if it is gone. The caller gets the first
    /// lease.
    static func takeOver(from connection: OriginConnection, spare: SpareBuffer) -> HTTP2OriginStream? {
        guard let tls = connection.tls else { return nil }
        let new = HTTP2OriginConnection(
            place: connection.place, tls: tls, tlsHandler: connection.tlsHandler, shown: connection.shownIdentity,
            hasShownIdentity: connection.hasShownIdentity, spare: spare)
        new.certificateChecks = connection.certificateChecks
        new.lacksIdentity = connection.lacksIdentity
        guard let left = connection.upgrade(), !left.inputEnded else { return nil }
        do { try left.channel.pipeline.syncOperations.addHandler(new) } catch { return nil }
        if left.received.readableBytes > 0 { new.link.read(left.received) }
        new.write()
        return new.newLease()
    }

    /// A connection that begins when it is added to a pipeline. Its last handshake has shown `identity`.
    init(
        place: String, tls: TLSSummary? = nil, tlsHandler: TLSHandler? = nil, shown identity: Identity? = nil,
        hasShownIdentity: Bool = false, spare: SpareBuffer = SpareBuffer()
    ) {
        self.place = place
        self.tls = tls
        self.tlsHandler = tlsHandler
        shownIdentity = identity
        self.hasShownIdentity = hasShownIdentity
        link = HTTP2Link(output: MessageOutput(spare: spare))
    }

    // MARK: Leases

    /// Whether further requests may be sent, now or when a stream has become free.
    package var isReusable: Bool {
        guard let session = link.session, !isEnding, !isSuspect else { return false }
        return !session.isGoingAway && session.failure == nil
    }

    package func lease() -> (lease: any OriginLease, stays: Bool)? { newLease().map { ($0, stays: true) } }

    /// Nil if the origin permits no further stream now.
    func newLease() -> HTTP2OriginStream? {
        guard isReusable, let session = link.session, session.freeStreams > waitingLeases,
            isSettled || leaseCount == 0
        else { return nil }
        leaseCount += 1
        waitingLeases += 1
        idleSince = nil
        return HTTP2OriginStream(of: self)
    }

    /// Opens a stream for a request of `lease`; nil if the connection takes none.
    func open(
        _ head: RequestHead, _ forwarding: borrowing RequestForwarding, endsStream: Bool, for lease: HTTP2OriginStream
    ) -> HTTP2Stream? {
        guard !isEnding, let stream = link.session?.open(head, forwarding, endsStream: endsStream) else { return nil }
        waitingLeases -= 1
        if streams.isEmpty { liveness.begin(lastRead: link.lastRead) }
        watch()
        streams[stream.id] = lease
        requestCount += 1
        return stream
    }

    /// The stream of a lease that goes on has ended.
    func streamEnded() { waitingLeases += 1 }

    /// A lease ends; `isWaiting`: it has no open stream.
    func leaseEnded(isWaiting: Bool, now: UInt64? = nil) {
        leaseCount -= 1
        if isWaiting { waitingLeases -= 1 }
        guard leaseCount == 0 else { return }
        idleSince = now
        if !hasHome || isSuspect { end() }
    }

    /// Other exchanges find the connection.
    package var hasHome: Bool { slot != nil || isKept }

    /// Other exchanges find the connection in `slot` from now on.
    func enter(_ slot: UpstreamPool.Slot) { self.slot = slot }

    func leaveSlot() {
        slot?.ended(self)
        slot = nil
    }

    /// A client keeps the connection, until it closes it.
    package func isKeptByClient() { isKept = true }

    /// Whether nobody has used the connection for more than `seconds`.
    func isIdle(for seconds: UInt64, now: UInt64) -> Bool {
        guard leaseCount == 0 else { return false }
        guard let idleSince else {
            self.idleSince = now
            return false
        }
        return now > idleSince + seconds
    }

    /// Calls `body` once the origin's limit of streams is known, or the connection has ended.
    package func whenSettled(_ body: @escaping () -> Void) {
        if isSettled || isEnding { body() } else { whenSettled = body }
    }

    func settle() {
        isSettled = true
        let body = whenSettled
        whenSettled = nil
        body?()
    }

    // MARK: The end

    /// Gives the connection up for new requests. Those in progress are completed.
    package func close() {
        isKept = false
        leaveSlot()
        if leaseCount == 0 { end() }
    }

    func touch(_ stream: HTTP2OriginStream) { touched.append(stream) }

    /// Says goodbye and closes the channel.
    private func end() {
        guard !isEnding else { return }
        isEnding = true
        leaveSlot()
        settle()
        link.session?.announceEnd()
        write()
        context?.close(promise: nil)
    }

    /// The connection is of no use any more: `error` is the reason for the requests in progress.
    func fail(_ error: UpstreamError) {
        if failure == nil { failure = error }
        isEnding = true
        leaveSlot()
        settle()
        link.close()?.connectionClosed()
        context?.close(promise: nil)
    }

    /// The origin ends the connection after the requests in progress.
    func isGoingAway(_ error: UpstreamError?) {
        if let error, failure == nil { failure = error }
        leaveSlot()
    }

    /// A request is given up that has got nothing since `opened`, in nanoseconds of the link's clock. If nothing else
    /// has arrived either, no other request should wait for the connection.
    func wasSilent(since opened: UInt64) {
        let now = HTTP2Link.clock
        let last = max(opened, link.lastRead)
        guard now > last, now - last > Self.suspiciousSilence else { return }
        isSuspect = true
        leaveSlot()
    }

    private static let suspiciousSilence = UInt64(TimeAmount.seconds(5).nanoseconds)

    // MARK: Channel

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let session = HTTP2Session(.client, settings: .client, delegate: self, at: HTTP2Link.clock)
        link.open(session, context, tls: tlsHandler)
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        link.output.close()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) { link.read(unwrapInboundIn(data)) }

    package func channelReadComplete(context: ChannelHandlerContext) {
        let read = touched
        touched.removeAll(keepingCapacity: true)
        for stream in read { stream.readCompleted() }
        write()
        link.readOn()
    }

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        link.writabilityChanged(of: context.channel)
        if link.isWritable { write() }
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSEvent.certificateRequested:
            // RFC 9113 §9.2.3 forbids it. An origin that wants a certificate for some of its resources gets their
            // requests over HTTP/1.1.
            tlsHandler?.answerCertificateRequest(with: nil)
            fail(UpstreamError(.needsHTTP1, "\(place): asked for a client certificate inside an HTTP/2 connection"))
        case ChannelEvent.inputClosed, TLSEvent.inputClosed:
            fail(connectionLost)
        default:
            break
        }
        context.fireUserInboundEventTriggered(event)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case let error as TLSError where error.code == .truncated: fail(connectionLost)
        case let error as TLSError: fail(UpstreamError.tls(error, at: place, shown: shownIdentity))
        case let error as UpstreamError: fail(error)
        default: fail(connectionLost)
        }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        fail(connectionLost)
        context.fireChannelInactive()
    }

    var connectionLost: UpstreamError {
        UpstreamError(.closedBeforeResponse, "\(place): closed the connection without answering")
    }

    /// As ``write()``, together with what other leases send in this turn of the event loop.
    func writeSoon() { link.writeSoon { self.write() } }

    /// Writes the frames that are queued, and closes the connection if the session is over.
    func write() {
        guard link.write(), let session = link.session, session.isOver, !isEnding else { return }
        if let code = session.failure, code != .noError {
            fail(UpstreamError(.malformedResponse, "\(place): broke the rules of HTTP/2 (\(code))"))
        } else {
            fail(connectionLost)
        }
    }
}
