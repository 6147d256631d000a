// SPDX-License-Identifier: Apache-2.0

/// When a certificate is to be renewed, and when to try again after a failure. All times are in seconds since 1970.
///
/// It is due at two thirds of its life, a twentieth of the life earlier or later so that a fleet does not come at once. A failure
/// is followed by 1 minute, then twice as long each time up to 6 hours, and never by more than a twentieth of what is left of the
/// life: a server that is down for most of the last third is asked again while the certificate still lives.
package struct RenewalSchedule: Equatable, Sendable {
    package let notBefore: Int64
    package let notAfter: Int64
    /// Where in its range the due time lies, -1 to 1.
    package let jitter: Double

    /// Shares of the life.
    private static let dueShare = 2.0 / 3.0
    private static let jitterShare = 0.05
    package static let shortestDelay: Int64 = 60
    package static let longestDelay: Int64 = 6 * 3600
    /// The part of the remaining life that a delay may take.
    private static let remainingParts: Int64 = 20
    /// 9999-12-31: no X.509 date is later (RFC 5280 §4.1.2.5).
    private static let latest: Int64 = 253_402_300_799

    /// `jitter` is brought into -1 to 1, the dates into X.509's range.
    package init(notBefore: Int64, notAfter: Int64, jitter: Double) {
        self.notAfter = min(max(notAfter, 0), Self.latest)
        self.notBefore = min(max(notBefore, 0), self.notAfter)
        self.jitter = jitter.isFinite ? min(max(jitter, -1), 1) : 0
    }

    /// Due now: there is no certificate, or none that could be used.
    package static let overdue = RenewalSchedule(notBefore: 0, notAfter: 0, jitter: 0)

    /// The first attempt.
    package var due: Int64 {
        let life = Double(notAfter - notBefore)
        return min(notBefore + Int64(life * (Self.dueShare + jitter * Self.jitterShare)), notAfter)
    }

    /// The next attempt after `failures` in a row, the last of them at `lastFailure`. Not before ``due``.
    package func nextAttempt(failures: UInt32, lastFailure: Int64) -> Int64 {
        guard failures > 0 else { return due }
        let last = min(max(lastFailure, 0), Self.latest)
        return max(due, last + delay(after: failures, at: last))
    }

    private func delay(after failures: UInt32, at time: Int64) -> Int64 {
        // Nine doublings of a minute are past six hours.
        let backOff = min(Self.shortestDelay << Int64(min(failures - 1, 9)), Self.longestDelay)
        let remaining = notAfter - time
        return remaining > 0 ? max(1, min(backOff, remaining / Self.remainingParts)) : backOff
    }
}

extension RenewalSchedule {
    /// A certificate's own place in the range of ``jitter``: the same at every look, another for every certificate.
    package static func jitter(of fingerprint: [UInt8]) -> Double {
        guard fingerprint.count >= 2 else { return 0 }
        return Double(Int(fingerprint[0]) << 8 | Int(fingerprint[1])) / 65_535 * 2 - 1
    }
}
