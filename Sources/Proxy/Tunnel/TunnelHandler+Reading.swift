// SPDX-License-Identifier: Apache-2.0

import NIOCore
import CountersignTLS

/// When a tunnel's end reads, and what the kernel moves instead.
///
/// Where much comes one way, NIO does not read: ``ReadThrottle`` waits, and then a ``SplicePipe`` moves all that has come meanwhile.
/// NIO keeps both sockets. It hears of ends and failures all the while, and reads again as soon as a wait brings little, the sink
/// has no room, or the other way carries something. Where there is no splice(2), the waits remain.
extension TunnelHandler {
    /// What is known of one way through a tunnel.
    struct Reading {
        var isOn = false
        var isWaiting = false
        var run = BulkReadDetector()
        /// Nil: nobody has asked yet.
        var maySplice: Bool?
    }

    /// Reads where the other end has room, and it is not better to wait.
    func updateReading() {
        guard let context, let other else { return }
        let isOn = !reading.isWaiting && other.hasRoom
        guard isOn != reading.isOn else { return }
        reading.isOn = isOn
        try? context.channel.syncOptions?.setOption(.autoRead, value: isOn)
    }

    /// What could not be sent at the other end is out.
    func sinkHasRoom() {
        if reading.run.isBulk, maySplice { wait() }
        updateReading()
    }

    /// It may be a dialogue.
    func otherWayCarried() {
        reading.run.otherWayCarried()
        guard reading.isWaiting else { return }
        reading.isWaiting = false
        updateReading()
    }

    /// ``ReadThrottle`` has waited.
    func waitEnded() {
        guard reading.isWaiting else { return }
        reading.isWaiting = false
        splice()
        updateReading()
    }

    /// Not to be read until ``waitEnded()``, or ``otherWayCarried()``. ``updateReading()`` is the caller's.
    func wait() {
        guard !reading.isWaiting else { return }
        reading.isWaiting = true
        services.readThrottle.wait(self)
    }

    /// Has the kernel move what has come meanwhile, where nothing that came before is still to be sent.
    private func splice() {
        guard let context, let other, let sink = other.context, let pipe = services.splicePipe, !inputEnded,
            !other.endsOutput, maySplice,
            (try? sink.channel.syncOptions?.getOption(.bufferedWritableBytes)) == 0
        else { return }
        let moved = try? Self.withSocket(of: context) { from in
            try Self.withSocket(of: sink) { to in pipe.move(from: from, to: to) }
        }
        guard let round = moved ?? nil else {
            reading.maySplice = false
            return
        }
        if round.bytes > 0 {
            other.count(round.bytes)
            other.otherWayCarried()
        }
        reading.run.bytesRead(round.bytes)
        let pays = reading.run.roundEnded(full: .max)
        if round.rest.readableBytes > 0 { sink.writeAndFlush(other.wrapOutboundOut(round.rest), promise: nil) }
        switch round.failure {
        case .notSupported: reading.maySplice = false
        case .broken: fail()
        case nil: if pays, other.hasRoom { wait() }
        }
    }

    /// What comes goes out as it came, and there is a pipe.
    private var maySplice: Bool {
        if let known = reading.maySplice { return known }
        let may = services.splicePipe != nil && isPlain && other?.isPlain == true
        reading.maySplice = may
        return may
    }

    private var isPlain: Bool {
        (try? context?.pipeline.syncOperations.handler(type: TLSHandler.self)) == nil
    }

    /// Nil where the channel is none of a socket.
    private static func withSocket<Value>(
        of context: ChannelHandlerContext, _ body: (NIOBSDSocket.Handle) throws -> Value
    ) throws -> Value? {
        try context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self, body)
    }
}
