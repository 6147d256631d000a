// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// One end of a tunnel: what comes in here goes out at the other end, unread, with back-pressure and half-closes carried over.
/// Used for a CONNECT that is not intercepted, and after a 101.
final class TunnelHandler: ChannelInboundHandler, TimeWatched {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// What both ends share.
    final class Tally {
        var bytesFromClient = 0
        var bytesFromOrigin = 0
        var lastActivity: UInt64
        private var finished: ((Tally) -> Void)?

        init(now: UInt64, finished: @escaping (Tally) -> Void) {
            lastActivity = now
            self.finished = finished
        }

        func finish() {
            let tell = finished
            finished = nil
            tell?(self)
        }
    }

    private weak var other: TunnelHandler?
    private var context: ChannelHandlerContext?
    private let tally: Tally
    private let services: LoopServices
    private let isClientEnd: Bool
    private var inputEnded = false
    private var endsOutput = false
    private var outputEnded = false
    private var hasFailed = false

    private init(services: LoopServices, tally: Tally, isClientEnd: Bool) {
        self.services = services
        self.tally = tally
        self.isClientEnd = isClientEnd
    }

    /// Joins two channels of this event loop. `early` are bytes that already came, and `hasEnded` says that no more will.
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
        originEnd.forward(client.early, from: clientEnd)
        clientEnd.forward(origin.early, from: originEnd)
        originEnd.context?.flush()
        clientEnd.context?.flush()
        if client.hasEnded { clientEnd.endOfInput() }
        if origin.hasEnded { originEnd.endOfInput() }
        for channel in [client.channel, origin.channel] {
            try? channel.syncOptions?.setOption(.autoRead, value: true)
        }
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        services.watch(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        services.unwatch(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        other?.forward(unwrapInboundIn(data), from: self)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        other?.context?.flush()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        try? other?.context?.channel.syncOptions?.setOption(.autoRead, value: context.channel.isWritable)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { endOfInput() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        hasFailed = true
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        // Where the output was shut already, NIO closes the channel at the end of the input and does not tell of that end.
        let wasCut = !inputEnded && (hasFailed || !outputEnded)
        inputEnded = true
        outputEnded = true
        if wasCut {
            other?.context?.close(promise: nil)
        } else {
            // Nobody is left to hear the other end; it closes when what it was to send is out.
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

    private func forward(_ bytes: ByteBuffer, from source: TunnelHandler) {
        guard bytes.readableBytes > 0, let context else { return }
        tally.lastActivity = services.now
        if isClientEnd {
            tally.bytesFromOrigin += bytes.readableBytes
        } else {
            tally.bytesFromClient += bytes.readableBytes
        }
        context.write(wrapOutboundOut(bytes), promise: nil)
        if !context.channel.isWritable {
            try? source.context?.channel.syncOptions?.setOption(.autoRead, value: false)
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

    /// Ends what this end sends, once all that was written is out.
    private func endOutput() {
        guard !endsOutput, let context else { return }
        endsOutput = true
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { _ in
            self.outputEnded = true
            self.closeIfBothEnded()
        }
        context.flush()
        if inputEnded {
            // Closing the second half closes the channel at once, and what has not gone out is lost.
            context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
        } else {
            context.close(mode: .output, promise: written)
        }
    }

    /// Closes this end when nothing goes through it any more, either way.
    private func closeIfBothEnded() {
        if inputEnded, outputEnded { context?.close(promise: nil) }
    }
}
