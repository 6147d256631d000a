// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Lets the tunnels of an event loop wait before they read on, all of them until the same wake-up.
final class ReadThrottle {
    /// At the most.
    static let wait = TimeAmount.microseconds(500)

    private let loop: any EventLoop
    private var waiting: [TunnelHandler] = []

    init(loop: any EventLoop) {
        self.loop = loop
    }

    /// ``TunnelHandler/waitEnded()`` comes later.
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
