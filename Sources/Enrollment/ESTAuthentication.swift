// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges

/// What an EST server is verified against, and what it is shown.
package struct ESTAuthentication: Sendable {
    /// The explicit trust anchors (RFC 7030 §3.6.1): self-signed authorities, and nothing beside them. The system's are
    /// not used.
    package var anchors: [Certificate]
    /// Authorities that must not be in a server's chain although an anchor vouches for them: the interception CA.
    package var refused: [Certificate]
    /// Answers one Basic or Digest challenge a call, on the verified connection only.
    package var credential: PasswordCredential?
    /// Answers a TLS CertificateRequest.
    package var identity: Identity?

    package init(
        anchors: [Certificate], refusing refused: [Certificate] = [], credential: PasswordCredential? = nil,
        identity: Identity? = nil
    ) {
        self.anchors = anchors
        self.refused = refused
        self.credential = credential
        self.identity = identity
    }
}
