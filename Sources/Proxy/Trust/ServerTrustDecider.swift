// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTLS

/// What a delegate is asked: to go on, or not, to an origin whose certificate does not verify.
package struct UntrustedServer: Sendable, Equatable {
    /// Canonical; an IPv6 address without brackets.
    package let host: String
    package let port: UInt16
    /// The chain as sent, and every reason against it.
    package let trust: ServerTrust
    /// What is connected to, with its port.
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

/// The caller's word on origins that do not verify, of the listed ones, where no standing decision speaks for them.
package protocol ServerTrustDecider: Sendable {
    /// The origin's handshake stands still until the answer is there, for 30 seconds at most; after that it is a no, and the
    /// task is cancelled. A yes never unlocks the answering of challenges: `.proceed(answering: true)` counts as `false`.
    func decide(_ question: UntrustedServer) async -> TrustAnswer
}
