// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// What a handshake came to.
package struct TLSSummary: Equatable, Sendable {
    /// `TLSv1.3` or `TLSv1.2`.
    package let version: String
    /// OpenSSL's name of the cipher suite.
    package let cipher: String
    /// The application protocol (RFC 7301) that both sides speak; nil where none was agreed on.
    package let alpn: String?
    /// What the verifier thinks of the server; nil on the server's side.
    package let serverTrust: ServerTrust?
    /// What was answered to the question about a server that is not trusted; nil when it was not asked.
    package let trustAnswer: TrustAnswer?
    /// The leaf that the peer showed.
    package let peerCertificate: Certificate?
    /// The name of the identity that was shown to the server; nil when none was.
    package internal(set) var clientIdentity: String?
    /// The connection goes on with an earlier one's session (RFC 8446 §2.2).
    package let resumed: Bool
    /// On the server's side the client's chain as it verified, leaf first; empty without a client certificate.
    package let verifiedClientChain: [Certificate]
}
