// SPDX-License-Identifier: Apache-2.0

import Certificates

/// What ``TLSHandler`` tells the handlers behind it, as user inbound events.
package enum TLSEvent: Sendable {
    /// The server's chain was looked at. Comes before ``certificateRequested(_:)`` and ``handshakeCompleted(_:)``.
    case serverTrustEvaluated(ServerTrust)
    /// The trusted server wants a client certificate. All stands still until `answerCertificateRequest(with:)` is
    /// called.
    case certificateRequested(CertificateRequest)
    /// Plaintext may be written; nothing has been delivered before this.
    case handshakeCompleted(TLSSummary)
    /// The peer's close_notify came: it sends no more.
    case inputClosed
}
