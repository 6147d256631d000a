// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore

/// The straight way from a handler to the socket of its channel, for what the socket takes at once: a write through the channel
/// costs several times the system call that it ends in.
///
/// For a handler that nothing stands before, and that alone writes: its bytes keep their order because none are sent here while
/// the channel may hold earlier ones. What the socket does not take, and every error, is the channel's as ever. It asks the
/// channel for the next read, too, with nobody in between.
package struct SocketOutput {
    private typealias Core = ChannelCore & NIOTransportAccessibleChannelCore<NIOBSDSocket.Handle>

    private let socket: any Core
    /// The channel may hold bytes that are not out.
    private var mayHold = true

    /// Nil where the channel is none of a socket. NIO's public way to the descriptor looks the channel's core up and casts it at
    /// each use; here that is done once.
    package init?(_ channel: any Channel) {
        guard let socket = channel._channelCore as? any Core else { return nil }
        self.socket = socket
    }

    /// Bytes go, or went, through the channel.
    package mutating func channelWrites() { mayHold = true }

    /// Sends what the socket takes of the bytes at once; they are what is left of them then. True if that is nothing. Otherwise
    /// the handler, whose `context` it is, has the channel write the rest.
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

    /// The channel, which reads by itself, is to read on: what it would come to a little later, through its pipeline.
    package func readOn() { socket.read0() }

    private static let flags = CInt(MSG_NOSIGNAL | MSG_DONTWAIT)
}
