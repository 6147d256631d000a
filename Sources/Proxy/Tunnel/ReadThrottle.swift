// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// A reader that can delay its reads.
protocol ThrottledReader: AnyObject {
    /// The delay is over.
    func waitEnded()
}

/// Delays the reads of an event loop's bulk tunnels until one common wake-up.
final class ReadThrottle {
    /// The longest delay.
    static let wait = TimeAmount.microseconds(500)

    private let loop: any EventLoop
    private var waiting: [any ThrottledReader] = []

    init(loop: any EventLoop) {
        self.loop = loop
    }

    /// Calls ``ThrottledReader/waitEnded()`` later.
    func wait(_ reader: any ThrottledReader) {
        waiting.append(reader)
        guard waiting.count == 1 else { return }
        loop.assumeIsolated().scheduleTask(in: Self.wait) {
            let ended = self.waiting
            self.waiting.removeAll()
            for reader in ended { reader.waitEnded() }
        }
    }
}
