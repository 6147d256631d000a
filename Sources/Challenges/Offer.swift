// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// A challenge that can be answered, and its authenticator.
package struct Offer: Equatable, Sendable {
    package let authenticator: any Authenticator
    package let challenge: Challenge

    package init(_ authenticator: any Authenticator, _ challenge: Challenge) {
        self.authenticator = authenticator
        self.challenge = challenge
    }

    /// The protection space of an answer at `origin`.
    package func space(at origin: Origin) -> AuthenticationSpace { authenticator.space(of: challenge, at: origin) }

    package static func == (left: Self, right: Self) -> Bool {
        left.authenticator === right.authenticator && left.challenge == right.challenge
    }
}
