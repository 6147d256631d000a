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

    private init(services: LoopServices, tally: Tally, isClientEnd: Bool) {
        self.services = services
        self.tally = tally
        self.isClientEnd = isClientEnd
    }

    /// Joins two channels of this event loop. `fromClient` and `fromOrigin` are bytes that already came.
    static func join(
        client: any Channel, origin: any Channel, fromClient: ByteBuffer, fromOrigin: ByteBuffer, tally: Tally,
        services: LoopServices
    ) {
        let clientEnd = TunnelHandler(services: services, tally: tally, isClientEnd: true)
        let originEnd = TunnelHandler(services: services, tally: tally, isClientEnd: false)
        clientEnd.other = originEnd
        originEnd.other = clientEnd
        do {
            try client.pipeline.syncOperations.addHandler(clientEnd)
            try origin.pipeline.syncOperations.addHandler(originEnd)
        } catch {
            client.close(promise: nil)
            origin.close(promise: nil)
            return tally.finish()
        }
        originEnd.forward(fromClient, from: clientEnd)
        clientEnd.forward(fromOrigin, from: originEnd)
        originEnd.context?.flush()
        clientEnd.context?.flush()
        for channel in [client, origin] {
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
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if !inputEnded { other?.context?.close(promise: nil) }
        if other?.context?.channel.isActive != true { tally.finish() }
        endOfInput()
        other?.closeIfBothEnded()
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
        guard let other, let context = other.context else { return closeIfBothEnded() }
        context.flush()
        if other.inputEnded { closeIfBothEnded() } else { context.close(mode: .output, promise: nil) }
    }

    private func closeIfBothEnded() {
        guard inputEnded, other?.inputEnded ?? true else { return }
        context?.close(promise: nil)
        other?.context?.close(promise: nil)
    }
}
