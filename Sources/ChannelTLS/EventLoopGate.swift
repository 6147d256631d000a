// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Synchronization

/// Schedules tasks on an event loop from other threads until it is closed. A result may arrive after the event loop has
/// stopped, which accepts no tasks then.
package final class EventLoopGate: Sendable {
    /// Nil once the gate is closed.
    private let loop: Mutex<(any EventLoop)?>

    package init(_ loop: any EventLoop) { self.loop = Mutex(loop) }

    /// Runs `body` on the event loop; does nothing if the gate is closed.
    package func execute(_ body: @escaping @Sendable () -> Void) {
        // The event loop must not stop between the check and the call.
        loop.withLock { $0?.execute(body) }
    }

    /// From the return of this call on, nothing is scheduled.
    package func close() {
        loop.withLock { $0 = nil }
    }
}
