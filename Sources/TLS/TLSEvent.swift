// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges

/// The user inbound events that ``TLSHandler`` fires.
package enum TLSEvent: Sendable {
    /// The server's chain was verified. Fired before ``serverTrustAsked(_:)``, ``certificateRequested(_:)`` and
    /// ``handshakeCompleted(_:)``; fired again if the verdict changes after the question to the caller, in TLS 1.2.
    case serverTrustEvaluated(ServerTrust)
    /// The server is not trusted, and the handler is configured to ask. The handshake waits for
    /// `answerTrustQuestion(with:)`. Fired before ``certificateRequested(_:)`` and ``handshakeCompleted(_:)``; fired
    /// again if a stapled response that arrives later, in TLS 1.2, adds a reason.
    case serverTrustAsked(ServerTrust)
    /// The server requests a client certificate, and is trusted or was accepted with permission to receive one. The
    /// connection waits for `answerCertificateRequest(with:)`.
    case certificateRequested(CertificateRequest)
    /// Plaintext may be written. No plaintext was delivered before this.
    case handshakeCompleted(TLSSummary)
    /// The peer has sent close_notify, and sends nothing more.
    case inputClosed
}

/// The caller's answer to ``TLSEvent/serverTrustAsked(_:)``.
package enum TrustAnswer: Equatable, Sendable {
    /// The handshake completes, and the caller decides later. No client certificate is sent.
    case undecided
    /// The handshake completes. With `answering`, requests for a client certificate are fired as for a trusted server.
    case proceed(answering: Bool)
    /// The handshake fails: the server gets the alert bad_certificate, the caller ``TLSError/Code/serverNotTrusted``.
    case refuse
}

/// The result of a handshake.
package struct TLSSummary: Equatable, Sendable {
    /// `TLSv1.3` or `TLSv1.2`.
    package let version: String
    /// OpenSSL's name of the cipher suite.
    package let cipher: String
    /// The negotiated application protocol (RFC 7301), if any.
    package let alpn: String?
    /// The verdict on the server; nil on the server's side.
    package let serverTrust: ServerTrust?
    /// The answer to the question about a server that is not trusted; nil if there was no question.
    package let trustAnswer: TrustAnswer?
    /// The peer's leaf certificate.
    package let peerCertificate: Certificate?
    /// The name of the identity that was sent to the server, if any.
    package internal(set) var clientIdentity: String?
    /// The session of an earlier connection was resumed (RFC 8446 §2.2).
    package let resumed: Bool
    /// On the server's side, the verified chain of the client, leaf first; empty without a client certificate.
    package let verifiedClientChain: [Certificate]

    /// The value that binds an answer to this connection; nil without a certificate of the peer.
    package var channelBinding: ChannelBinding? {
        peerCertificate.map { .tlsServerEndPoint(certificateHash: $0.tlsServerEndPointHash) }
    }
}
