// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges

/// How an EST server and its client authenticate each other: the trust anchors for the server and for the certificates
/// that it issues, the credential and identity for the client.
package struct ESTAuthentication: Sendable {
    /// The explicit trust anchors of issued certificates (RFC 7030 §4.1.3): self-signed CA certificates.
    package var anchors: [Certificate]
    /// The anchors that verify the server.
    package var server: ESTServerAnchors
    /// CAs that must not occur in a server's chain even if an anchor vouches for them: the interception CA.
    package var refused: [Certificate]
    /// Answers one Basic or Digest challenge per call, on a verified connection only.
    package var credential: PasswordCredential?
    /// Answers one Bearer challenge per call, on a verified connection only, and is preferred to the credential.
    package var token: TokenCredential?
    /// Answers a TLS CertificateRequest.
    package var identity: Identity?

    /// `server` is nil if the same anchors verify the server.
    package init(
        anchors: [Certificate], server: ESTServerAnchors? = nil, refusing refused: [Certificate] = [],
        credential: PasswordCredential? = nil, token: TokenCredential? = nil, identity: Identity? = nil
    ) {
        self.anchors = anchors
        self.server = server ?? .explicit(anchors)
        self.refused = refused
        self.credential = credential
        self.token = token
        self.identity = identity
    }
}

extension ESTAuthentication {
    /// The credential for a challenge that offers Bearer, or not; nil without one.
    func answer(toBearer offersBearer: Bool) -> EnrollmentError.Object? {
        if offersBearer, token != nil { return .token }
        return credential == nil ? nil : .credential
    }
}
