// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges

/// The one tuple that keys every reuse of a connection to an origin. Two requests may share a connection only if all of it is
/// equal; a connection that was authenticated for one client connection is not keyed at all: it stays with that client.
package struct UpstreamKey: Hashable, Sendable {
    /// Who said that the origin's certificate will do.
    package enum Trust: Hashable, Sendable {
        /// The chain verifies.
        case verified
        /// It does not, and somebody went on: with this leaf, and no other. `leaf` is the SHA-256 of its DER; `answering`
        /// says whether challenges may be answered there, for which it takes a standing decision.
        case accepted(leaf: [UInt8], answering: Bool)

        /// Challenges may be answered over a connection of this kind.
        package var answers: Bool {
            switch self {
            case .verified: true
            case .accepted(_, let answering): answering
            }
        }
    }

    /// The credential that may be sent on the connection.
    package struct CredentialTag: Hashable, Sendable {
        package let name: String
        package let generation: UInt64

        package init(name: String, generation: UInt64) {
            self.name = name
            self.generation = generation
        }
    }

    package let origin: Origin
    package let trust: Trust
    /// Nil on a connection that is never to carry a credential of ours.
    package let credential: CredentialTag?
    /// The user id of the client, where the kernel told it.
    package let principal: UInt32?
    /// Changes when the anchors, the list or the identities change: what was handshaken under the old ones is not reused.
    package let settings: UInt64

    package init(
        origin: Origin, trust: Trust, credential: CredentialTag?, principal: UInt32?, settings: UInt64
    ) {
        self.origin = origin
        self.trust = trust
        self.credential = credential
        self.principal = principal
        self.settings = settings
    }
}
