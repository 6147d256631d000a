// SPDX-License-Identifier: Apache-2.0

import CountersignDeviceManagement
import Synchronization

/// Passes the heads of the responses that the proxy of a window sees to the sign-in: those to requests for the window's
/// own pages, redirects included, and no others.
package final class ResponseFeed: Sendable {
    private let receiver = Mutex<(@Sendable (PageResponse) -> Void)?>(nil)

    package init() {}

    func connect(_ receiver: @escaping @Sendable (PageResponse) -> Void) { self.receiver.withLock { $0 = receiver } }

    func disconnect() { receiver.withLock { $0 = nil } }

    /// Called on any thread before the window gets the response, so that the sign-in knows the response when the window
    /// reports its consequences.
    package func received(_ response: PageResponse) { receiver.withLock { $0 }?(response) }
}
