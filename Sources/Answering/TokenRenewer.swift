// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges

/// Renews the access tokens of sign-ins.
package struct TokenRenewer: Sendable {
    /// The reason for a renewal.
    package enum Reason: Sendable {
        /// It has expired.
        case expired
        /// The origin has called it invalid (`invalid_token`, RFC 6750 §3.1).
        case invalid
        /// The origin requires more of it; for that origin alone. Nobody is asked.
        case lacks(StepUp, Origin)
    }

    package enum Outcome: Sendable {
        /// The newest token, which is stored.
        case renewed(TokenCredential)
        /// There is no other token, and the present one may be used.
        case unchanged
        /// There is no token that can be used, for a reason that is shown to the client and in the log.
        case unavailable(reason: String)
    }

    /// Renews the token of `credential`, unless that was done meanwhile, and returns in time for the request that
    /// waits. Concurrent calls for one name share one renewal. Must not block an event loop.
    package let renew: @Sendable (_ credential: CredentialReference, Reason) async -> Outcome

    package init(renew: @escaping @Sendable (CredentialReference, Reason) async -> Outcome) { self.renew = renew }
}
