// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore

/// Lets a handler write to the socket of its channel directly, because a write through the channel costs several times
/// as much as the system call itself: 8,600 instructions per plain request, for the writes in both directions.
///
/// Only for the handler next to the socket, if no other handler writes. Bytes keep their order: nothing is sent here
/// while the channel may hold earlier bytes. The channel handles the bytes that the socket does not accept, and all
/// errors. Reads can be requested from the channel in the same direct way.
package struct SocketOutput {
    private typealias Core = ChannelCore & NIOTransportAccessibleChannelCore<NIOBSDSocket.Handle>

    private let socket: any Core
    /// The channel may hold bytes that have not been sent.
    private var mayHold = true

    /// Nil if the channel has no socket. NIO's public access to the descriptor looks up and casts the channel's core on
    /// each use; this does it once.
    package init?(_ channel: any Channel) {
        guard let socket = channel._channelCore as? any Core else { return nil }
        self.socket = socket
    }

    /// Bytes are being written through the channel.
    package mutating func channelWrites() { mayHold = true }

    /// Sends as many bytes as the socket accepts, and removes them from `bytes`. False if some remain: then the caller,
    /// whose `context` this is, writes them through the channel.
    package mutating func send(_ bytes: inout ByteBuffer, in context: ChannelHandlerContext) -> Bool {
        if mayHold { mayHold = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) != 0 }
        guard !mayHold else { return false }
        let count = bytes.withUnsafeReadableBytes { bytes in
            (try? socket.withUnsafeTransport { Glibc.send($0, bytes.baseAddress, bytes.count, Self.flags) }) ?? -1
        }
        if count > 0 { bytes.moveReaderIndex(forwardBy: count) }
        mayHold = bytes.readableBytes > 0
        return !mayHold
    }

    /// Makes the channel, which has automatic reading, read again, without a round trip through its pipeline.
    package func readOn() { socket.read0() }

    private static let flags = CInt(MSG_NOSIGNAL | MSG_DONTWAIT)
}
