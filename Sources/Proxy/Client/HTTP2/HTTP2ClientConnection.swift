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
    let site: ClientSession.ConnectSite
    var phase = Phase.open
    /// No call of it re-enters this object.
    @exclusivity(unchecked) var admission: RequestAdmission
    private var distrust: DistrustWatch
    var context: ChannelHandlerContext?
    let output: MessageOutput
    private let tls: TLSHandler?
    /// Nil before the handler is part of a pipeline, and at the end.
    private(set) var http2: HTTP2Session?
    /// The streams that have not ended.
    @exclusivity(unchecked) var streams: [Int32: HTTP2ClientStream] = [:]
    /// Content of all streams that has not been written, in octets.
    @exclusivity(unchecked) var queuedBytes = 0
    /// The streams whose exchanges wait until they are writable.
    @exclusivity(unchecked) var heldBack: [HTTP2ClientStream] = []
    var idleSince: UInt64
    /// While discarding input: whether the last frame has been written out.
    var outputIsOut = false

    /// What is being read. The session reports content as parts of it.
    @exclusivity(unchecked) var received = ByteBuffer()
    /// The memory of ``received`` while the session reads it.
    @exclusivity(unchecked) var receivedMemory: UnsafeRawPointer?
    /// Frames are being read. What they cause is written when all have been.
    private var isReceiving = false
    private var isWriting = false
    /// Whether the network takes more. Stored, because asking the channel is expensive.
    private var isWritable = true
    private var readingPaused = false
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
        output = MessageOutput(spare: services.spare)
        idleSince = services.now
    }

    /// Nanoseconds of the loop's clock.
    private var clock: UInt64 { NIODeadline.now().uptimeNanoseconds }

    // MARK: Channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        isWritable = context.channel.isWritable
        session.connected()
        output.open(context, tls: tls, isNextToSocket: false)
        services.watch(self)
        http2 = HTTP2Session(.server, settings: .server, delegate: self, at: clock)
        write()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        gone()
        self.context = nil
        output.close()
        services.unwatch(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .open = phase, let http2 else { return }
        distrust.received()
        received = unwrapInboundIn(data)
        isReceiving = true
        received.withUnsafeReadableBytes { octets in
            receivedMemory = octets.baseAddress
            http2.receive(octets, at: clock)
        }
        receivedMemory = nil
        received = ByteBuffer()
        isReceiving = false
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        for stream in streams.values { stream.readCompleted() }
        write()
        if !readingPaused { output.readOn() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        isWritable = context.channel.isWritable
        // A client that does not read is not read from, because it may ask for replies without end.
        if isWritable == readingPaused {
            readingPaused = !isWritable
            try? context.channel.syncOptions?.setOption(.autoRead, value: isWritable)
        }
        if isWritable { write() }
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
        guard !isReceiving, !isWriting, let http2 else { return }
        isWriting = true
        var isMore = true
        while isMore, isWritable {
            isMore = http2.drain()
            output.flush()
        }
        isWriting = false
        resumeStreams()
        guard http2.isOver || inputEnded && streams.isEmpty, case .open = phase else { return }
        lingerAndClose()
    }

    /// Whether a stream may queue content beside that of the others: a client that does not read must not cost much.
    var takesContent: Bool { queuedBytes < Self.maximumQueuedBytes }

    private static let maximumQueuedBytes = 512 * 1024

    /// Lets the exchanges go on whose streams are writable again. They may send more before this returns.
    private func resumeStreams() {
        guard !heldBack.isEmpty else { return }
        let waiting = heldBack
        heldBack = []
        for stream in waiting where !stream.resumeIfWritable() { heldBack.append(stream) }
    }

    /// Collects what the session writes.
    func append(_ octets: UnsafeRawBufferPointer) {
        output.write(about: octets.count) { space in
            guard octets.count <= space.count else { return octets.count }
            space.copyMemory(from: octets)
            return octets.count
        }
    }

    // MARK: The end

    /// The client sends nothing more.
    private func clientEndedInput() {
        noteDistrust(.silence)
        // What is half sent cannot be completed. The rest is still answered, as in HTTP/1 (RFC 9112 §9.6).
        for stream in Array(streams.values) where !stream.requestIsWhole { stream.cancel() }
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
        let ending = http2
        http2 = nil
        ending?.connectionClosed()
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
        output.flush()
        endStreams()
        session.closeBound()
        guard let context, isWritable else { return close() }
        context.endOutput(inputEnded: inputEnded) {
            self.outputIsOut = true
            self.idleSince = self.services.now
            if self.inputEnded { self.close() }
        }
    }
}
