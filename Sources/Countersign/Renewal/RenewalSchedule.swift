// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates

/// When to renew a certificate, and when to try again after a failure. All times are in seconds since 1970.
///
/// A renewal is due after two thirds of the certificate's lifetime, with a jitter of a twentieth of the lifetime so
/// that a fleet does not contact the server at once. After a failure, the delay is 1 minute and doubles up to 6 hours,
/// but never exceeds a twentieth of the remaining lifetime: a server that is down for most of the last third is still
/// contacted before the certificate expires.
package struct RenewalSchedule: Equatable, Sendable {
    package let notBefore: Int64
    package let notAfter: Int64
    /// The position of the due time within its range, from -1 to 1.
    package let jitter: Double

    /// Fractions of the lifetime.
    private static let dueFraction = 2.0 / 3.0
    private static let jitterFraction = 0.05
    package static let shortestDelay: Int64 = 60
    package static let longestDelay: Int64 = 6 * 3600
    /// A delay may take one part in this many of the remaining lifetime.
    private static let remainingParts: Int64 = 20
    /// 9999-12-31, the latest date in an X.509 certificate (RFC 5280 §4.1.2.5).
    private static let latest: Int64 = 253_402_300_799

    /// Clamps `jitter` to -1...1, and the dates to the range of X.509.
    package init(notBefore: Int64, notAfter: Int64, jitter: Double) {
        self.notAfter = min(max(notAfter, 0), Self.latest)
        self.notBefore = min(max(notBefore, 0), self.notAfter)
        self.jitter = jitter.isFinite ? min(max(jitter, -1), 1) : 0
    }

    /// Due immediately: there is no usable certificate.
    package static let overdue = RenewalSchedule(notBefore: 0, notAfter: 0, jitter: 0)

    /// The time of the first attempt.
    package var due: Int64 {
        let life = Double(notAfter - notBefore)
        return min(notBefore + Int64(life * (Self.dueFraction + jitter * Self.jitterFraction)), notAfter)
    }

    /// The time of the next attempt after `failures` in a row, the last of them at `lastFailure`. Not before ``due``.
    package func nextAttempt(failures: UInt32, lastFailure: Int64) -> Int64 {
        guard failures > 0 else { return due }
        let last = min(max(lastFailure, 0), Self.latest)
        return max(due, last + delay(after: failures, at: last))
    }

    private func delay(after failures: UInt32, at time: Int64) -> Int64 {
        // Nine doublings of one minute exceed six hours.
        let backOff = min(Self.shortestDelay << Int64(min(failures - 1, 9)), Self.longestDelay)
        let remaining = notAfter - time
        return remaining > 0 ? max(1, min(backOff, remaining / Self.remainingParts)) : backOff
    }
}

extension RenewalSchedule {
    /// The schedule of a certificate. The jitter is derived from its fingerprint, so that it is stable.
    package init(of certificate: Certificate) {
        self.init(
            notBefore: certificate.notBefore, notAfter: certificate.notAfter,
            jitter: Self.jitter(of: certificate.sha256Fingerprint))
    }

    /// Maps the first two bytes of a fingerprint to -1...1.
    package static func jitter(of fingerprint: [UInt8]) -> Double {
        guard fingerprint.count >= 2 else { return 0 }
        return Double(Int(fingerprint[0]) << 8 | Int(fingerprint[1])) / 65_535 * 2 - 1
    }
}
