// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignDeviceManagement
import Synchronization

/// Passes the heads of the responses that the proxy of a window sees to the sign-in: those to requests for the window's
/// own pages, redirects included, and no others.
package final class ResponseFeed: Sendable {
    package struct Response: Sendable {
        package let origin: Origin
        package let headers: ResponseHeaders

        package init(origin: Origin, headers: ResponseHeaders) {
            self.origin = origin
            self.headers = headers
        }
    }

    private let receiver = Mutex<(@Sendable (Response) -> Void)?>(nil)

    package init() {}

    func connect(_ receiver: @escaping @Sendable (Response) -> Void) { self.receiver.withLock { $0 = receiver } }

    func disconnect() { receiver.withLock { $0 = nil } }

    /// Called on any thread before the window gets the response, so that the sign-in knows the response when the window
    /// reports what it has led to.
    package func received(_ response: Response) { receiver.withLock { $0 }?(response) }
}
