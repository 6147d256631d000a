// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Countersign

/// Four hundred days with a clock of numbers: an authority that issues for 30 days and is away for four fifths of the last third of
/// each certificate's life, and one that looks once a minute.
struct RenewalWalkTests {
    private static let day: Int64 = 86_400
    private static let life = 30 * day

    private struct Certificate {
        let notBefore: Int64
        let notAfter: Int64
        let jitter: Double

        var schedule: RenewalSchedule { RenewalSchedule(notBefore: notBefore, notAfter: notAfter, jitter: jitter) }
        /// Four fifths of the last third.
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
    func thereIsACertificateInEveryMinute(jitter: Double) {
        var walk = Walk()
        for minute in 0..<(400 * Self.day / 60) { walk.minute(minute * 60, jitter: jitter) }
        #expect(walk.minutesWithout == 0)
        // 400 days are 14 to 22 lives of 18.5 to 29 days.
        #expect((14...22).contains(walk.renewals))
        // The outages cost attempts, and not many: a server that is away is not hammered.
        #expect(walk.attempts >= walk.renewals)
        #expect(walk.attempts < walk.renewals * 60)
    }

    /// What makes the walk above worth anything.
    @Test func withoutASecondAttemptThereWouldBeNone() {
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
