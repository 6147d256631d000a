// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignDeviceManagement

/// The times of further checks of a device that does not comply.
@Suite struct ComplianceScheduleTests {
    /// The pauses between checks that each take place as soon as they are due.
    private static func pauses(_ number: Int, chance: Double) -> [Int64] {
        var schedule = ComplianceSchedule(checked: 1000, now: 1000, chance: chance)
        var last: Int64 = 1000
        return (0..<number).map { _ in
            let pause = schedule.due - last
            last = schedule.due
            #expect(schedule.isDue(at: last) && !schedule.isDue(at: last - 1))
            schedule.noteAsked(at: last, chance: chance)
            return pause
        }
    }

    @Test func thePauseDoublesUpToAnHour() {
        #expect(Self.pauses(9, chance: 0) == [60, 60, 120, 240, 480, 960, 1920, 3600, 3600])
    }

    @Test func chanceProlongsEachPauseByUpToAHalf() {
        #expect(Self.pauses(9, chance: 1) == [90, 90, 180, 360, 720, 1440, 2880, 5400, 5400])
        #expect(Self.pauses(3, chance: 0.5) == [75, 75, 150])
    }

    /// After the machine was off.
    @Test(arguments: [(0.0, 0), (0.5, 5), (1.0, 10)] as [(Double, Int64)])
    func anOverdueQuestionIsAskedSoonAfterTheStart(chance: Double, pause: Int64) {
        #expect(ComplianceSchedule(checked: 1000, now: 900_000, chance: chance).due == 900_000 + pause)
    }

    @Test func aQuestionOfAnotherProcessPostponesThis() {
        var schedule = ComplianceSchedule(checked: 1000, now: 1000, chance: 0)
        schedule.noteAsked(at: 1060, chance: 0)
        schedule.noteAsked(at: 1120, chance: 0)
        #expect(schedule.due == 1240)
        schedule.observed(checked: 1120, chance: 0)
        #expect(schedule.due == 1240, "that was this schedule's own question")
        schedule.observed(checked: 1200, chance: 0)
        #expect(schedule.due == 1320)
    }

    /// The times in the vault are those of a clock that was wrong.
    @Test func aClockThatIsSetBackStopsNoQuestions() {
        var schedule = ComplianceSchedule(checked: 4_000_000_000, now: 1000, chance: 0)
        #expect(schedule.due <= 1090)
        schedule.noteAsked(at: 3_000_000, chance: 1)
        #expect(schedule.isDue(at: 1000))
    }
}

/// When the results of an enrolment are wiped.
@Suite struct ComplianceDeadlineTests {
    private static let day: Int64 = 86_400
    private static let start: Int64 = 1_800_000_000

    private static func deadline(_ days: Int64) -> ComplianceDeadline {
        ComplianceDeadline(confirmed: start, days: days)
    }

    @Test(arguments: [(1, 21_600), (2, 43_200), (4, 86_400), (30, 86_400), (3650, 86_400)] as [(Int64, Int64)])
    func aConfirmationIsWantedOnceADayAndFourTimesBefore(days: Int64, seconds: Int64) {
        let deadline = Self.deadline(days)
        #expect(deadline.needsConfirmation(at: Self.start + seconds))
        #expect(!deadline.needsConfirmation(at: Self.start + seconds - 1))
    }

    @Test func theLastQuarterIsNear() {
        let deadline = Self.deadline(8)
        #expect(!deadline.isNear(at: Self.start + 6 * Self.day) && deadline.isNear(at: Self.start + 6 * Self.day + 1))
    }

    /// However long the machine was off, attempts have to fail for an hour.
    @Test func itIsOverOnlyAfterAttemptsHaveFailedForAnHour() {
        let deadline = Self.deadline(2)
        let end = Self.start + 2 * Self.day
        #expect(deadline.end == end)
        #expect(!deadline.isOver(at: end + 90 * Self.day, failingSince: nil))
        #expect(!deadline.isOver(at: end + 3599, failingSince: end))
        #expect(deadline.isOver(at: end + 3600, failingSince: end))
        #expect(!deadline.isOver(at: end - 1, failingSince: end - 7200))
        // The clock was set back.
        #expect(!deadline.isOver(at: end + 10, failingSince: end + 7200))
    }
}
