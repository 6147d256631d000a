// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// One end of a tunnel: forwards bytes unchanged to the other end, with back-pressure and half-closes. Used for a
/// CONNECT that is not intercepted, and after a 101 response.
final class TunnelHandler: ChannelInboundHandler, TimeWatched, ThrottledReader {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The state that both ends share.
    final class Tally {
        var bytesFromClient = 0
        var bytesFromOrigin = 0
        var lastActivity: UInt64
        /// The client's.
        let session: ClientSession?
        private var finished: ((Tally) -> Void)?

        init(now: UInt64, _ session: ClientSession?, finished: @escaping (Tally) -> Void) {
            lastActivity = now
            self.session = session
            self.finished = finished
        }

        func finish() {
            let tell = finished
            finished = nil
            tell?(self)
        }
    }

    var clientSession: ClientSession? { isClientEnd ? tally.session : nil }
    private(set) weak var other: TunnelHandler?
    private(set) var context: ChannelHandlerContext?
    private let tally: Tally
    let services: LoopServices
    private let isClientEnd: Bool
    private(set) var inputEnded = false
    private(set) var endsOutput = false
    private var outputEnded = false
    private var hasFailed = false
    /// The channel is writable: its output is below the high-water mark.
    private(set) var hasRoom = true
    /// Whether and how this end is read.
    var reading = Reading()

    private init(services: LoopServices, tally: Tally, isClientEnd: Bool) {
        self.services = services
        self.tally = tally
        self.isClientEnd = isClientEnd
    }

    /// Joins two channels of this event loop. `early` are bytes that were received before, and `hasEnded` means that
    /// the input has ended.
    static func join(
        client: (channel: any Channel, early: ByteBuffer, hasEnded: Bool),
        origin: (channel: any Channel, early: ByteBuffer, hasEnded: Bool), tally: Tally, services: LoopServices
    ) {
        let clientEnd = TunnelHandler(services: services, tally: tally, isClientEnd: true)
        let originEnd = TunnelHandler(services: services, tally: tally, isClientEnd: false)
        clientEnd.other = originEnd
        originEnd.other = clientEnd
        do {
            try client.channel.pipeline.syncOperations.addHandler(clientEnd)
            try origin.channel.pipeline.syncOperations.addHandler(originEnd)
        } catch {
            client.channel.close(promise: nil)
            origin.channel.close(promise: nil)
            return tally.finish()
        }
        originEnd.forward(client.early)
        clientEnd.forward(origin.early)
        originEnd.context?.flush()
        clientEnd.context?.flush()
        if client.hasEnded { clientEnd.endOfInput() }
        if origin.hasEnded { originEnd.endOfInput() }
        clientEnd.updateReading()
        originEnd.updateReading()
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        hasRoom = context.channel.isWritable
        reading.isOn = (try? context.channel.syncOptions?.getOption(.autoRead)) ?? false
        services.watch(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        services.unwatch(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        reading.run.bytesRead(bytes.readableBytes)
        guard let other else { return }
        other.oppositeDirectionCarried()
        other.forward(bytes)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard let other else { return }
        other.context?.flush()
        if reading.run.roundEnded() { wait() }
        if reading.isWaiting || !other.hasRoom { updateReading() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        hasRoom = context.channel.isWritable
        // Losing writability is handled at the end of the round, which flushes: the rest decides whether to read on.
        if hasRoom { other?.sinkHasRoom() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { endOfInput() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail()
    }

    /// The connection is broken.
    func fail() {
        hasFailed = true
        context?.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        // If the output was closed before, NIO closes the channel at the end of the input without an event for that
        // end.
        let wasCut = !inputEnded && (hasFailed || !outputEnded)
        inputEnded = true
        outputEnded = true
        if wasCut {
            other?.context?.close(promise: nil)
        } else {
            // The other end can no longer be answered. It closes when its output has been sent.
            other?.inputEnded = true
            other?.endOutput()
            other?.closeIfBothEnded()
        }
        if other?.context?.channel.isActive != true { tally.finish() }
    }

    func secondPassed(now: UInt64) {
        guard now > tally.lastActivity + services.configuration.tunnelIdleSeconds else { return }
        context?.close(promise: nil)
        other?.context?.close(promise: nil)
    }

    func drain() {}

    func abort() {
        context?.close(promise: nil)
    }

    private func forward(_ bytes: ByteBuffer) {
        guard bytes.readableBytes > 0, let context else { return }
        count(bytes.readableBytes)
        context.write(wrapOutboundOut(bytes), promise: nil)
    }

    /// Counts bytes that are sent at this end.
    func count(_ bytes: Int) {
        tally.lastActivity = services.now
        if isClientEnd {
            tally.bytesFromOrigin += bytes
        } else {
            tally.bytesFromClient += bytes
        }
    }

    private func endOfInput() {
        guard !inputEnded else { return }
        inputEnded = true
        guard let other, other.context != nil else {
            context?.close(promise: nil)
            return
        }
        other.endOutput()
        closeIfBothEnded()
    }

    /// Closes the output of this end after everything that was written has been sent.
    private func endOutput() {
        guard !endsOutput, let context else { return }
        endsOutput = true
        context.flush()
        context.endOutput(inputEnded: inputEnded) {
            self.outputEnded = true
            self.closeIfBothEnded()
        }
    }

    /// Closes this end when both directions have ended.
    private func closeIfBothEnded() {
        if inputEnded, outputEnded { context?.close(promise: nil) }
    }
}
