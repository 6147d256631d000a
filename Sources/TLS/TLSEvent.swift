// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// What ``TLSHandler`` tells the handlers behind it, as user inbound events.
package enum TLSEvent: Sendable {
    /// The server's chain was looked at. Comes before ``serverTrustAsked(_:)``, ``certificateRequested(_:)`` and
    /// ``handshakeCompleted(_:)``; once more when the verdict was asked about and then amended, under TLS 1.2.
    case serverTrustEvaluated(ServerTrust)
    /// The server is not trusted, and the handler was told to ask. All stands still until `answerTrustQuestion(with:)`
    /// is called. Comes before ``certificateRequested(_:)`` and ``handshakeCompleted(_:)``; once more when a stapled
    /// response that TLS 1.2 brings later has added a reason to those that were asked about.
    case serverTrustAsked(ServerTrust)
    /// The server wants a client certificate, and is trusted, or was proceeded with so that it may have one. All stands
    /// still until `answerCertificateRequest(with:)` is called.
    case certificateRequested(CertificateRequest)
    /// Plaintext may be written; nothing has been delivered before this.
    case handshakeCompleted(TLSSummary)
    /// The peer's close_notify came: it sends no more.
    case inputClosed
}
