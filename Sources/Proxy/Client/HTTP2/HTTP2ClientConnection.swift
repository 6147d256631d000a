// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChannelTLS
import CountersignHTTP1
import CountersignHTTP2
import CountersignTLS
import CountersignUpstream
import NIOCore

/// A client's HTTP/2 connection inside the tunnel to an intercepted site (RFC 9113). Each stream is an exchange of its
/// own, with an ``HTTP2ClientStream`` as its client.
///
/// It takes the place of the ``ClientConnection`` that accepted the CONNECT, after a TLS handshake that selected `h2`,
/// and goes on with its ``ClientSession``. The frames are the `HTTP2Session`'s business; this object owns the channel,
/// the time limits and the end.
///
/// This file has the channel's events. `+Streams` has the requests, `+Ends` the limits and the end.
final class HTTP2ClientConnection: ChannelInboundHandler, TimeWatched {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Phase {
        case open
        /// The last frame has been sent. Input is discarded until the client closes.
        case discarding
        case closed
    }

    let services: LoopServices
    let session: ClientSession
    var clientSession: ClientSession? { session }
    let site: ClientSession.ConnectSite
    var phase = Phase.open
    /// No call of it re-enters this object.
    @exclusivity(unchecked) var admission: RequestAdmission
    private var distrust: DistrustWatch
    var context: ChannelHandlerContext?
    let link: HTTP2Link
    private let tls: TLSHandler?
    /// Nil before the handler is part of a pipeline, and at the end.
    var http2: HTTP2Session? { link.session }
    /// The streams that have not ended.
    @exclusivity(unchecked) var streams: [Int32: HTTP2ClientStream] = [:]
    var idleSince: UInt64
    /// While discarding input: whether the last frame has been written out.
    var outputIsOut = false

    private var inputEnded = false

    /// Writes go to `tls` past the pipeline, or through the pipeline without it.
    init(
        _ services: LoopServices, _ session: ClientSession, _ site: ClientSession.ConnectSite,
        _ admission: RequestAdmission, _ distrust: DistrustWatch, _ tls: TLSHandler?
    ) {
        self.services = services
        self.session = session
        self.site = site
        self.admission = admission
        self.distrust = distrust
        self.tls = tls
        link = HTTP2Link(output: MessageOutput(spare: services.spare))
        idleSince = services.now
    }

    private static let settings = {
        var settings = HTTP2Settings.server
        settings.webSocketKey = WebSocketHandshake.key
        return settings
    }()

    // MARK: Channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        session.connected()
        services.watch(self)
        link.open(
            HTTP2Session(.server, settings: Self.settings, delegate: self, at: HTTP2Link.clock), context, tls: tls)
        write()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        gone()
        self.context = nil
        link.output.close()
        services.unwatch(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .open = phase else { return }
        distrust.received()
        link.read(unwrapInboundIn(data))
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        for stream in streams.values { stream.readCompleted() }
        write()
        link.readOn()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        link.writabilityChanged(of: context.channel)
        if link.isWritable { write() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed, TLSEvent.inputClosed:
            inputEnded = true
            if case .discarding = phase { if outputIsOut { close() } } else { clientEndedInput() }
        default:
            break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let sign = ClientDistrust.Sign(error) { noteDistrust(sign) }
        // Nothing that arrives after an error can be relied on.
        gone()
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        gone()
        context.fireChannelInactive()
    }

    // MARK: Output

    /// Writes the frames that are queued, unless more frames are being read or written, after which it happens anyway.
    func write() {
        guard link.write(), let http2 else { return }
        guard http2.isOver || inputEnded && streams.isEmpty, case .open = phase else { return }
        lingerAndClose()
    }

    /// As ``write()``, together with what other streams send in this turn of the event loop.
    func writeSoon() { link.writeSoon { self.write() } }

    // MARK: The end

    /// The client sends nothing more.
    private func clientEndedInput() {
        noteDistrust(.silence)
        // What is half sent cannot be completed. The rest is still answered, as in HTTP/1 (RFC 9112 §9.6).
        for stream in Array(streams.values) { stream.connectionEndedInput() }
        write()
    }

    func noteDistrust(_ sign: ClientDistrust.Sign) {
        distrust.left(sign, isInHandshake: false, session, services)
    }

    /// The client cannot be reached any more.
    func gone() {
        phase = .closed
        session.disconnected()
        endStreams()
    }

    private func endStreams() {
        link.close()?.connectionClosed()
    }

    func close() {
        phase = .closed
        context?.close(promise: nil)
    }

    /// Writes out what is left, half-closes, and discards input for a moment. Closing with unread input would send a
    /// reset, which may destroy the last frames before the client has read them.
    private func lingerAndClose() {
        phase = .discarding
        idleSince = services.now
        link.output.flush()
        endStreams()
        session.closeBound()
        guard let context, link.isWritable else { return close() }
        context.endOutput(inputEnded: inputEnded) {
            self.outputIsOut = true
            self.idleSince = self.services.now
            if self.inputEnded { self.close() }
        }
    }
}
