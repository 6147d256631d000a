// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges

/// Asks a person to sign in again for what an access token lacks, while the client gets the response that reports the
/// lack.
package struct ScopeAsker: Sendable {
    package struct Lack: Sendable {
        package let origin: Origin
        /// The request's path and query.
        package let target: String
        /// The access token of a sign-in, which has its name.
        package let token: CredentialReference
        /// What the origin requires.
        package let stepUp: StepUp
        /// The parameter `resource_metadata` of the challenge (RFC 9728 §5.1), as received.
        package let metadata: String?
        /// The sentence for `Proxy-Status`.
        package let reason: String

        package init(
            origin: Origin, target: String, token: CredentialReference, stepUp: StepUp, metadata: String?,
            reason: String
        ) {
            self.origin = origin
            self.target = target
            self.token = token
            self.stepUp = stepUp
            self.metadata = metadata
            self.reason = reason
        }
    }

    /// Begins to ask, and returns at once with the end of a sentence for `Proxy-Status`; nil without a question. Must
    /// not block an event loop.
    package let ask: @Sendable (Lack) -> String?

    package init(ask: @escaping @Sendable (Lack) -> String?) { self.ask = ask }
}
