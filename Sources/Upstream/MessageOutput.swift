// SPDX-License-Identifier: Apache-2.0

import NIOCore
import TLS

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
    private var waiting = ByteBuffer()
    /// Something is in the channel that waits for a flush.
    private var wrote = false

    package init(spare: SpareBuffer) { self.spare = spare }

    /// The handler has its place. `isNextToSocket`: nothing but `tls`, if any, stands between it and the network, and what is
    /// written need not be seen by anyone else.
    package func open(_ context: ChannelHandlerContext, tls: TLSHandler?, isNextToSocket: Bool) {
        self.context = context
        if isNextToSocket { startTLS(tls) }
    }

    /// From here on what is written goes through `tls`, which has just been put before the handler; nil: through none.
    package func startTLS(_ tls: TLSHandler?) {
        self.tls = tls
        socket = tls == nil ? context.flatMap { SocketOutput($0.channel) } : nil
    }

    /// The handler leaves its place.
    package func close() {
        context = nil
        tls = nil
        socket = nil
    }

    // MARK: Writing

    /// Appends what `write` writes into the room that it is given, which will be about `size`.
    package func write(about size: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        makeRoom(size)
        waiting.write(about: size, write)
    }

    package func write(_ bytes: [UInt8]) {
        makeRoom(bytes.count)
        waiting.writeBytes(bytes)
    }

    package func write(_ buffer: ByteBuffer) {
        guard buffer.readableBytes > Self.smallPiece else {
            makeRoom(buffer.readableBytes)
            waiting.writeImmutableBuffer(buffer)
            return
        }
        emit()
        wrote = true
        context?.write(NIOAny(buffer), promise: nil)
    }

    package func flush() {
        if !wrote, waiting.readableBytes > 0, sendStraight() { return }
        emit()
        guard wrote else { return }
        wrote = false
        socket?.channelWrites()
        context?.flush()
    }

    /// Copying as much costs less than a further piece in a write.
    private static let smallPiece = 4 * 1024

    private func makeRoom(_ bytes: Int) {
        if waiting.readableBytes + bytes > 4 * Self.smallPiece { emit() }
        if waiting.capacity == 0 { waiting = spare.take(room: bytes) }
    }

    private func sendStraight() -> Bool {
        guard let context else { return false }
        if let tls {
            // Before it is sent, as that may tell of the connection's end.
            let bytes = waiting
            waiting = ByteBuffer()
            tls.send(bytes)
            spare.giveBack(bytes)
            return true
        }
        guard socket?.send(&waiting, in: context) == true else { return false }
        spare.giveBack(waiting)
        waiting = ByteBuffer()
        return true
    }

    private func emit() {
        guard waiting.readableBytes > 0 else { return }
        wrote = true
        // Before the write, as that may tell of writability, upon which more is written.
        let bytes = waiting
        waiting = ByteBuffer()
        context?.write(NIOAny(bytes), promise: nil)
    }
}
