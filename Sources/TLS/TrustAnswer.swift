// SPDX-License-Identifier: Apache-2.0

/// The caller's answer to ``TLSEvent/serverTrustAsked(_:)``.
package enum TrustAnswer: Equatable, Sendable {
    /// The handshake completes, and the decision is left for later; no client certificate is ever shown.
    case undecided
    /// The handshake completes; `answering` has requests for a client certificate asked as on a trusted server.
    case proceed(answering: Bool)
    /// The handshake fails: the server gets the alert bad_certificate, the caller ``TLSError/Code/serverNotTrusted``.
    case refuse
}
