// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges

/// The key under which connections to an origin are reused. Two requests share a connection only if their keys are
/// equal. A connection to an origin that was authenticated for one client connection is never pooled: it stays with
/// that client. One to a parent is kept under the parent's own key (``ParentAuthentication/shared``).
package struct UpstreamKey: Hashable, Sendable {
    /// Why the origin's certificate is accepted.
    package enum Trust: Hashable, Sendable {
        /// The chain verifies.
        case verified
        /// The chain does not verify, but this leaf certificate was accepted nevertheless. `leaf` is the SHA-256 of its
        /// DER. `answering` permits answering challenges, for which a trust exception is needed.
        case accepted(leaf: [UInt8], answering: Bool)

        /// Challenges may be answered on such a connection.
        package var answers: Bool {
            switch self {
            case .verified: true
            case .accepted(_, let answering): answering
            }
        }
    }

    package let origin: Origin
    package let trust: Trust
    /// Nil for connections that never carry a credential of the proxy.
    package let credential: CredentialReference?
    /// The user id of the client, if the kernel knows it.
    package let principal: UInt32?
    /// Changes with the trust anchors, the site list and the identities, so that connections from before the change are
    /// not reused.
    package let settings: UInt64
    /// Which of a site's lines the requests belong to, if the lines are for different requests: a connection that is
    /// authenticated for one of them never carries a request of another. 0 for all other sites, and for requests that
    /// no line is for.
    package let line: Int

    package init(
        origin: Origin, trust: Trust, credential: CredentialReference?, principal: UInt32?, settings: UInt64,
        line: Int = 0
    ) {
        self.origin = origin
        self.trust = trust
        self.credential = credential
        self.principal = principal
        self.settings = settings
        self.line = line
    }
}
