// SPDX-License-Identifier: Apache-2.0

import NIOCore

extension ChannelHandlerContext {
    /// Ends the output of a connection, and calls `isOut` on the event loop when all of it has been written.
    /// If `inputEnded`, the connection stays half-open for the caller to close: closing the second half would close the
    /// channel at once and lose unwritten data.
    func endOutput(inputEnded: Bool, isOut: @escaping () -> Void) {
        let written = eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { _ in isOut() }
        if inputEnded {
            writeAndFlush(NIOAny(ByteBuffer()), promise: written)
        } else {
            close(mode: .output, promise: written)
        }
    }
}
