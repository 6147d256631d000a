// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges

/// How an EST server and its client authenticate each other: the trust anchors for the server, the credential and
/// identity for the client.
package struct ESTAuthentication: Sendable {
    /// The explicit trust anchors (RFC 7030 §3.6.1): self-signed CA certificates. The system's anchors are not used.
    package var anchors: [Certificate]
    /// CAs that must not occur in a server's chain even if an anchor vouches for them: the interception CA.
    package var refused: [Certificate]
    /// Answers one Basic or Digest challenge per call, on a verified connection only.
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
