// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The state of a sign-in in the web view when a special URL appears.
package struct InteractiveWebviewState: Equatable, Sendable {
    /// At most this many attempts to obtain a broker refresh token are made in a session: one, and one more.
    package static let maximumBRTAttempts = 2

    /// The number of requests for a broker refresh token.
    package var brtAttemptCount = 0
    /// Whether one was obtained.
    package var brtAcquired = false
    /// Those of the response that led to the special URL: a redirect to it, else the page's.
    package var responseHeaders = ResponseHeaders()
    /// The origin of that response; nil without one.
    package var responder: Origin?
    /// The identifier that device management has given to this device in this session.
    package var deviceIdentifier: String?
    /// Whether the broker continues the sign-in.
    package var isTransferredToBroker = false
    /// Why the broker has not gone on with the sign-in.
    package var brokerFailure: DeviceManagementError?

    package init() {}
}
