// SPDX-License-Identifier: Apache-2.0

import NIOCore
import CountersignChannelTLS

/// Reading, which NIO or the kernel does.
///
/// During a bulk transfer NIO does not read: ``ReadThrottle`` delays, and then a ``SplicePipe`` moves everything that
/// has arrived meanwhile. Both sockets stay registered with NIO, which still reports closes and errors. It reads again
/// as soon as a delay brings few bytes, the sink is full, or the other direction carries bytes. Without splice(2) reads
/// are delayed all the same, in larger pieces.
extension TunnelHandler {
    /// The state of reading at one end of a tunnel.
    struct Reading {
        var isOn = false
        var isWaiting = false
        var run = BulkReadDetector()
        /// Nil until it has been determined.
        var maySplice: Bool?
    }

    /// Reads while the other end is writable and the read is not delayed.
    func updateReading() {
        guard let context, let other else { return }
        let isOn = !reading.isWaiting && other.hasRoom
        guard isOn != reading.isOn else { return }
        reading.isOn = isOn
        try? context.channel.syncOptions?.setOption(.autoRead, value: isOn)
    }

    /// The other end is writable again.
    func sinkHasRoom() {
        if reading.run.isBulk, maySplice { wait() }
        updateReading()
    }

    /// The other direction has carried bytes, so that this may not be a bulk transfer: ends the delay.
    func oppositeDirectionCarried() {
        reading.run.oppositeDirectionCarried()
        guard reading.isWaiting else { return }
        reading.isWaiting = false
        updateReading()
    }

    /// The delay by ``ReadThrottle`` is over.
    func waitEnded() {
        guard reading.isWaiting else { return }
        reading.isWaiting = false
        splice()
        updateReading()
    }

    /// Delays reading until ``waitEnded()`` or ``oppositeDirectionCarried()``. The caller calls ``updateReading()``.
    func wait() {
        guard !reading.isWaiting else { return }
        reading.isWaiting = true
        services.readThrottle.wait(self)
    }

    /// Lets the kernel move the bytes that have arrived meanwhile, unless earlier bytes are still unsent.
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
            other.oppositeDirectionCarried()
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

    /// Neither end has TLS, and there is a pipe.
    private var maySplice: Bool {
        if let maySplice = reading.maySplice { return maySplice }
        let may = services.splicePipe != nil && isPlain && other?.isPlain == true
        reading.maySplice = may
        return may
    }

    private var isPlain: Bool {
        (try? context?.pipeline.syncOperations.handler(type: TLSHandler.self)) == nil
    }

    /// Nil if the channel has no socket.
    private static func withSocket<Value>(
        of context: ChannelHandlerContext, _ body: (NIOBSDSocket.Handle) throws -> Value
    ) throws -> Value? {
        try context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self, body)
    }
}
