// SPDX-License-Identifier: Apache-2.0

import CountersignChannelTLS
import CountersignTLS
import CountersignUpstream
import NIOCore

/// The client's end of a ``StreamTunnel``: a stream of HTTP/2.
protocol TunnelledStream: AnyObject {
    /// The client takes no more for now. ``StreamTunnel/clientHasRoom()`` reports the end of that.
    var isHeldBack: Bool { get }
    func send(_ content: ByteBuffer)
    func flush()
    /// The origin has taken `byteCount` octets, so the client may send as many again.
    func consumed(_ byteCount: Int)
    func originEnded()
    /// The connection to the origin is broken.
    func originFailed()
}

/// The origin's end of a tunnel whose other end is a stream of HTTP/2, which a WebSocket was opened in (RFC 8441 §5):
/// forwards octets unchanged, with back-pressure and half-closes. ``TunnelHandler`` is the end of one between channels.
final class StreamTunnel: ChannelInboundHandler, TimeWatched {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private weak var client: (any TunnelledStream)?
    private let tally: TunnelHandler.Tally
    private let services: LoopServices
    private var context: ChannelHandlerContext?
    private var inputEnded = false
    private var endsOutput = false
    private var outputEnded = false
    private var hasFailed = false
    private var isReading = false
    /// Octets from the client that wait until the origin takes them.
    private var unconsumedBytes = 0

    init(_ client: any TunnelledStream, tally: TunnelHandler.Tally, services: LoopServices) {
        self.client = client
        self.tally = tally
        self.services = services
    }

    /// Begins with the octets that both ends have already sent.
    func join(_ origin: UpgradedConnection, sent early: [ByteBuffer], hasEnded: Bool) {
        do { try origin.channel.pipeline.syncOperations.addHandler(self) } catch {
            origin.channel.close(promise: nil)
            client?.originFailed()
            return tally.finish()
        }
        forward(origin.received)
        for content in early { send(content) }
        flush()
        if hasEnded { endOutput() }
        client?.flush()
        if origin.inputEnded { endOfInput() }
        // The exchange may have left it either way.
        isReading = client?.isHeldBack ?? true
        updateReading()
    }

    // MARK: The client

    /// Sends octets of the client's. They may wait for ``flush()``.
    func send(_ bytes: ByteBuffer) {
        guard let context, !endsOutput else { return }
        tally.lastActivity = services.now
        tally.bytesFromClient += bytes.readableBytes
        context.write(wrapOutboundOut(bytes), promise: nil)
        unconsumedBytes += bytes.readableBytes
    }

    func flush() {
        context?.flush()
        consume()
    }

    /// The client sends nothing more.
    func endOutput() {
        guard !endsOutput, let context else { return }
        endsOutput = true
        context.flush()
        context.endOutput(inputEnded: inputEnded) {
            self.outputEnded = true
            self.closeIfBothEnded()
        }
    }

    func clientHasRoom() { updateReading() }

    /// The stream has ended, whole or not.
    func clientGone() {
        client = nil
        if !endsOutput || !inputEnded { context?.close(promise: nil) }
        tally.finish()
    }

    // MARK: The origin

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        services.watch(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        services.unwatch(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { forward(unwrapInboundIn(data)) }

    func channelReadComplete(context: ChannelHandlerContext) {
        client?.flush()
        updateReading()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        guard context.channel.isWritable else { return }
        consume()
        client?.flush()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed, TLSEvent.inputClosed: endOfInput()
        default: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        hasFailed = true
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        // If the output was closed before, NIO closes the channel at the end of the input without an event for it.
        let wasCut = !inputEnded && (hasFailed || !outputEnded)
        inputEnded = true
        outputEnded = true
        if wasCut { client?.originFailed() } else { client?.originEnded() }
        tally.finish()
    }

    func secondPassed(now: UInt64) {
        guard now > tally.lastActivity + services.configuration.tunnelIdleSeconds else { return }
        abort()
    }

    func drain() {}

    func abort() { context?.close(promise: nil) }

    private func forward(_ bytes: ByteBuffer) {
        guard bytes.readableBytes > 0, let client else { return }
        tally.lastActivity = services.now
        tally.bytesFromOrigin += bytes.readableBytes
        client.send(bytes)
    }

    private func endOfInput() {
        guard !inputEnded else { return }
        inputEnded = true
        client?.originEnded()
        closeIfBothEnded()
    }

    private func closeIfBothEnded() {
        if inputEnded, outputEnded { context?.close(promise: nil) }
    }

    private func consume() {
        guard unconsumedBytes > 0, let context, context.channel.isWritable else { return }
        let count = unconsumedBytes
        unconsumedBytes = 0
        client?.consumed(count)
    }

    /// Reads from the origin while the client takes more.
    private func updateReading() {
        let wants = client?.isHeldBack == false
        guard wants != isReading, let context else { return }
        isReading = wants
        try? context.channel.syncOptions?.setOption(.autoRead, value: wants)
    }
}
