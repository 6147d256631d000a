// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Delays the reads of an event loop's bulk tunnels until one common wake-up.
final class ReadThrottle {
    /// The longest delay.
    static let wait = TimeAmount.microseconds(500)

    private let loop: any EventLoop
    private var waiting: [TunnelHandler] = []

    init(loop: any EventLoop) {
        self.loop = loop
    }

    /// Calls ``TunnelHandler/waitEnded()`` later.
    func wait(_ tunnel: TunnelHandler) {
        waiting.append(tunnel)
        guard waiting.count == 1 else { return }
        loop.assumeIsolated().scheduleTask(in: Self.wait) {
            let ended = self.waiting
            self.waiting.removeAll()
            for tunnel in ended { tunnel.waitEnded() }
        }
    }
}
