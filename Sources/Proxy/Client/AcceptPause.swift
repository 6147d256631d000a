// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore

/// Stops accepting connections for a moment when the process or the system has no descriptors left. Otherwise the event
/// loop would try again at once, and use all of a core.
final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = Any

    private static let pause = TimeAmount.milliseconds(500)
    /// Called when the pause begins.
    private let noted: () -> Void

    init(noted: @escaping () -> Void) { self.noted = noted }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let code = (error as? IOError)?.errnoCode, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code) else {
            return context.fireErrorCaught(error)
        }
        noted()
        let options = context.channel.syncOptions
        try? options?.setOption(.autoRead, value: false)
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
            try? options?.setOption(.autoRead, value: true)
        }
    }
}
