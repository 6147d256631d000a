// SPDX-License-Identifier: Apache-2.0

import NIOCore
import CountersignTLS

/// What goes out on one connection: heads and small pieces wait here for the flush, so that they go out in one write, and the
/// shortest way that there is.
///
/// Owned by the connection's event loop. Whoever writes must expect to be told of writability meanwhile.
package final class MessageOutput {
    private let spare: SpareBuffer
    private var context: ChannelHandlerContext?
    private var tls: TLSHandler?
    /// While nothing stands between the handler and its socket.
    private var socket: SocketOutput?
    private var waiting: ByteBuffer?
    /// Something is in the channel that waits for a flush.
    private var wrote = false

    package init(spare: SpareBuffer) { self.spare = spare }

    /// The handler has its place. `isNextToSocket`: nothing but `tls`, if any, stands between it and the network, and what is
    /// written, and that it reads on, need not be seen by anyone else.
    package func open(_ context: ChannelHandlerContext, tls: TLSHandler?, isNextToSocket: Bool) {
        self.context = context
        guard isNextToSocket else { return }
        self.tls = tls
        if tls == nil { socket = SocketOutput(context.channel) }
    }

    /// From here on what is written goes through `tls`, which has just been put before the handler.
    package func startTLS(_ tls: TLSHandler) {
        self.tls = tls
        socket = nil
    }

    /// The handler leaves its place.
    package func close() {
        context = nil
        tls = nil
        socket = nil
    }

    /// A read is over, and another is to follow as the channel reads by itself: where nothing but `tls` stands before the handler,
    /// it need not be asked through the pipeline.
    package func readOn() {
        if let tls { tls.readOn() } else { socket?.readOn() }
    }

    // MARK: Writing

    /// Appends what `write` writes into the room that it is given, which will be about `size`.
    package func write(about size: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        var bytes = takeWaiting(withRoom: size)
        bytes.write(about: size, write)
        waiting = bytes
    }

    package func write(_ bytes: [UInt8]) {
        var all = takeWaiting(withRoom: bytes.count)
        all.writeBytes(bytes)
        waiting = all
    }

    package func write(_ buffer: ByteBuffer) {
        guard buffer.readableBytes > Self.smallPiece else {
            var bytes = takeWaiting(withRoom: buffer.readableBytes)
            bytes.writeImmutableBuffer(buffer)
            waiting = bytes
            return
        }
        passWaiting()
        pass(buffer)
    }

    package func flush() {
        var passed: ByteBuffer?
        if waiting != nil {
            if !wrote, sendStraight() { return }
            passed = takeWaiting()
            if let passed { pass(passed) }
        }
        guard wrote else { return }
        wrote = false
        channelWrites()
        context?.flush()
        // Not before: until then it is held.
        if let passed { spare.giveBack(passed) }
    }

    /// Copying as much costs less than a further piece in a write.
    private static let smallPiece = 4 * 1024

    // What waits, and the way to the socket, are taken out while something is done with them: an access that ends at once needs no
    // check at run time that there is no other.

    private func takeWaiting() -> ByteBuffer? {
        let bytes = waiting
        waiting = nil
        return bytes
    }

    /// What waits, or an empty buffer, to be put back with `room` more bytes in it.
    private func takeWaiting(withRoom room: Int) -> ByteBuffer {
        if let waiting, waiting.readableBytes + room > 4 * Self.smallPiece { passWaiting() }
        return takeWaiting() ?? spare.take(room: room)
    }

    private func sendStraight() -> Bool {
        guard let context else { return false }
        if let tls {
            guard let bytes = takeWaiting() else { return false }
            tls.send(bytes)
            spare.giveBack(bytes)
            return true
        }
        guard socket != nil, var bytes = takeWaiting(), var way = takeSocket() else { return false }
        let isOut = way.send(&bytes, in: context)
        socket = way
        if isOut { spare.giveBack(bytes) } else { waiting = bytes }
        return isOut
    }

    private func channelWrites() {
        guard var way = takeSocket() else { return }
        way.channelWrites()
        socket = way
    }

    private func takeSocket() -> SocketOutput? {
        let way = socket
        socket = nil
        return way
    }

    private func passWaiting() {
        if let bytes = takeWaiting() { pass(bytes) }
    }

    /// May tell of writability, upon which more is written.
    private func pass(_ bytes: ByteBuffer) {
        wrote = true
        context?.write(NIOAny(bytes), promise: nil)
    }
}
