// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges

/// Remembers which certificates are revoked, and learns it from the sources that they name. Every closure may be called
/// on any thread.
package struct RevocationLookup: Sendable {
    /// The status of a certificate by its issuer, if it was learned. Called on event loops, so it must not block.
    let known: @Sendable (_ certificate: Certificate, _ issuer: Certificate) -> CertificateStatus?
    /// Changes with every status that is learned.
    let version: @Sendable () -> UInt64
    /// Learns the statuses. Calls `done` once: when all are learned or cannot be, or when `patience` has passed since
    /// the first request for one of them. Must not block.
    package let learn:
        @Sendable (
            _ questions: [RevocationQuestion], _ patience: Duration, _ done: @escaping @Sendable () -> Void
        ) -> Void

    package init(
        known: @escaping @Sendable (_ certificate: Certificate, _ issuer: Certificate) -> CertificateStatus?,
        version: @escaping @Sendable () -> UInt64,
        learn:
            @escaping @Sendable (
                _ questions: [RevocationQuestion], _ patience: Duration, _ done: @escaping @Sendable () -> Void
            ) -> Void
    ) {
        self.known = known
        self.version = version
        self.learn = learn
    }
}

extension RevocationCheck {
    /// How long a handshake waits for statuses. They are learned nevertheless, for the next connection. Within the
    /// limit of a handshake, 10 seconds.
    package var patience: Duration {
        switch self {
        case .soft: .milliseconds(1_500)
        case .require: .seconds(6)
        case .off: .zero
        }
    }
}
