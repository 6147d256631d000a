// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTLS

/// An origin whose certificate does not verify, as presented to a ``ServerTrustDecider``.
package struct UntrustedServer: Sendable, Equatable {
    /// Canonical; an IPv6 address has no brackets.
    package let host: String
    package let port: UInt16
    /// The chain as the origin sent it, and every reason against it.
    package let trust: ServerTrust
    /// The address of the connection, with its port.
    package let address: String
    /// `TLSv1.3` or `TLSv1.2`.
    package let tlsVersion: String

    package init(host: String, port: UInt16, trust: ServerTrust, address: String, tlsVersion: String) {
        self.host = host
        self.port = port
        self.trust = trust
        self.address = address
        self.tlsVersion = tlsVersion
    }
}

/// Decides about listed origins whose certificates do not verify and for which there is no trust exception.
package protocol ServerTrustDecider: Sendable {
    /// The handshake waits for the answer, for at most 30 seconds; then it fails, and the task is cancelled. A positive
    /// answer never permits answering challenges: `.proceed(answering: true)` counts as `.proceed(answering: false)`.
    func decide(_ server: UntrustedServer) async -> TrustAnswer
}
