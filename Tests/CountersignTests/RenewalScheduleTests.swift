// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

@testable import Countersign

@Suite(.waiting) struct RenewalScheduleTests {
    private static let day: Int64 = 86_400

    /// Lifetimes from a minute to ten years, with several values of the jitter.
    private static let schedules: [RenewalSchedule] = [60, 3600, day, 7 * day, 30 * day, 90 * day, 3653 * day].flatMap {
        life in
        [-1, -0.37, 0, 0.5, 1].map {
            RenewalSchedule(notBefore: 1_700_000_000, notAfter: 1_700_000_000 + life, jitter: $0)
        }
    }

    @Test(
        arguments: [
            (0.0, 60), (1.0, 64), (-1.0, 55), (7.0, 64), (.nan, 60), (-.infinity, 60),
        ] as [(Double, Int64)])
    func aNinetyDayCertificateIsDueAfterSixtyDaysPlusJitter(jitter: Double, day: Int64) {
        let schedule = RenewalSchedule(notBefore: 0, notAfter: 90 * Self.day, jitter: jitter)
        #expect(schedule.due / Self.day == day)
    }

    @Test(arguments: schedules)
    func theDueTimeIsInTheLastThirdOfTheLifetimePlusJitter(schedule: RenewalSchedule) {
        let life = schedule.notAfter - schedule.notBefore
        #expect(schedule.due >= schedule.notBefore + life * 61 / 100)
        #expect(schedule.due <= schedule.notBefore + life * 72 / 100 + 1)
        #expect(schedule.nextAttempt(failures: 0, lastFailure: 0) == schedule.due)
    }

    @Test func delaysDoubleFromAMinuteToSixHours() {
        let schedule = RenewalSchedule(notBefore: 0, notAfter: 3653 * Self.day, jitter: 0)
        let delays = (1...12).map { failures in
            schedule.nextAttempt(failures: UInt32(failures), lastFailure: schedule.due) - schedule.due
        }
        #expect(delays == [60, 120, 240, 480, 960, 1920, 3840, 7680, 15360, 21600, 21600, 21600])
        #expect(schedule.nextAttempt(failures: .max, lastFailure: schedule.due) == schedule.due + 21_600)
    }

    @Test(arguments: schedules)
    func aDelayIsAtMostATwentiethOfTheRemainingLifetime(schedule: RenewalSchedule) {
        var time = schedule.due
        for failures in 1...200 as ClosedRange<UInt32> where time < schedule.notAfter {
            let next = schedule.nextAttempt(failures: failures, lastFailure: time)
            #expect(next > time)
            #expect(next - time <= max(1, (schedule.notAfter - time) / 20))
            time = next
        }
    }

    @Test func afterExpiryDelaysDependOnlyOnTheFailures() {
        let schedule = RenewalSchedule(notBefore: 0, notAfter: 1000, jitter: 0)
        #expect(schedule.nextAttempt(failures: 1, lastFailure: 5000) == 5060)
        #expect(schedule.nextAttempt(failures: 4, lastFailure: 5000) == 5480)
        #expect(RenewalSchedule.overdue.due == 0)
        #expect(RenewalSchedule.overdue.nextAttempt(failures: 2, lastFailure: 5000) == 5120)
    }

    @Test func aFailureBeforeTheDueTimeChangesNothing() {
        let schedule = RenewalSchedule(notBefore: 0, notAfter: 90 * Self.day, jitter: 0)
        #expect(schedule.nextAttempt(failures: 3, lastFailure: Self.day) == schedule.due)
    }

    @Test(arguments: [
        (Int64.min, Int64.max), (.max, .min), (.max, .max), (.min, .min), (0, .max), (253_402_300_799, 0),
    ])
    func datesOutOfRangeDoNotTrap(notBefore: Int64, notAfter: Int64) {
        for jitter in [-1.0, 0, 1] {
            let schedule = RenewalSchedule(notBefore: notBefore, notAfter: notAfter, jitter: jitter)
            #expect((0...253_402_300_799).contains(schedule.due))
            for last in [Int64.min, 0, .max] {
                #expect(schedule.nextAttempt(failures: .max, lastFailure: last) >= schedule.due)
            }
        }
    }

    /// If the server is down for four fifths of the last third of the lifetime, an attempt is made in the rest.
    @Test(arguments: schedules)
    func anOutageOfFourFifthsOfTheLastThirdIsSurvived(schedule: RenewalSchedule) {
        let life = schedule.notAfter - schedule.notBefore
        guard life >= 3600 else { return }
        let outage = (schedule.notAfter - life / 3)..<(schedule.notAfter - life / 15)
        var time = schedule.due
        var failures: UInt32 = 0
        while outage.contains(time) || time < outage.lowerBound && failures > 0 {
            failures += 1
            time = schedule.nextAttempt(failures: failures, lastFailure: time)
        }
        #expect(time < schedule.notAfter)
        if failures > 0 { #expect(time - outage.upperBound <= (schedule.notAfter - outage.upperBound) / 18) }
    }

    @Test func theJitterIsDerivedFromTheFingerprint() {
        #expect(RenewalSchedule.jitter(of: [0, 0, 9]) == -1)
        #expect(RenewalSchedule.jitter(of: [0xFF, 0xFF]) == 1)
        #expect(RenewalSchedule.jitter(of: []) == 0)
        let middle = RenewalSchedule.jitter(of: [0x80, 0x00])
        #expect(abs(middle) < 0.001)
    }
}
