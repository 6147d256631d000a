// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

@testable import Countersign

/// Simulates 400 days, minute by minute, with a CA that issues certificates for 30 days and is unavailable for four
/// fifths of the last third of each certificate's lifetime.
@Suite(.waiting) struct RenewalWalkTests {
    private static let day: Int64 = 86_400
    private static let life = 30 * day

    private struct Certificate {
        let notBefore: Int64
        let notAfter: Int64
        let jitter: Double

        var schedule: RenewalSchedule { RenewalSchedule(notBefore: notBefore, notAfter: notAfter, jitter: jitter) }
        /// Four fifths of the last third of the lifetime.
        var outage: Range<Int64> { (notAfter - life / 3)..<(notAfter - life / 15) }
    }

    private struct Walk {
        var certificate = Certificate(notBefore: 0, notAfter: life, jitter: 0)
        var failures: UInt32 = 0
        var lastFailure: Int64 = 0
        var attempts = 0
        var renewals = 0
        var minutesWithout = 0

        mutating func minute(_ now: Int64, jitter: Double) {
            if now > certificate.notAfter { minutesWithout += 1 }
            guard certificate.schedule.nextAttempt(failures: failures, lastFailure: lastFailure) <= now else { return }
            attempts += 1
            if certificate.outage.contains(now) {
                failures += 1
                lastFailure = now
            } else {
                certificate = Certificate(notBefore: now, notAfter: now + life, jitter: jitter)
                failures = 0
                renewals += 1
            }
        }
    }

    @Test(arguments: [-1.0, -0.5, 0, 0.5, 1])
    func aCertificateIsValidInEveryMinute(jitter: Double) {
        var walk = Walk()
        for minute in 0..<(400 * Self.day / 60) { walk.minute(minute * 60, jitter: jitter) }
        #expect(walk.minutesWithout == 0)
        // A renewal takes place every 18.5 to 29 days.
        #expect((14...22).contains(walk.renewals))
        // The outages cause additional attempts, but not enough to flood the server.
        #expect(walk.attempts >= walk.renewals)
        #expect(walk.attempts < walk.renewals * 60)
    }

    /// Shows that the simulation above would detect a missing retry.
    @Test func withoutRetriesCertificatesExpire() {
        var walk = Walk()
        var hasTried = false
        for minute in 0..<(400 * Self.day / 60) {
            let before = walk.failures
            if hasTried { walk.lastFailure = .max / 2 }
            walk.minute(minute * 60, jitter: 0.5)
            hasTried = hasTried || walk.failures > before
        }
        #expect(walk.minutesWithout > 0)
    }
}
