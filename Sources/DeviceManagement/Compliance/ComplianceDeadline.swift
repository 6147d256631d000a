// SPDX-License-Identifier: Apache-2.0

/// When the results of an enrolment are wiped from a device without a confirmation that it complies:
/// `"wipe_after_days"` in the profile.
package struct ComplianceDeadline: Equatable, Sendable {
    /// When the device was last confirmed to comply, in seconds since 1970.
    private let confirmed: Int64
    private let days: Int64

    /// The range for a profile.
    package static let permittedDays: ClosedRange<Int64> = 1...3650
    private static let day: Int64 = 86_400
    /// How long the attempts to get a confirmation continue after the deadline, in seconds: the machine may have been
    /// off for all that time, and its network is not up at once.
    package static let lastAttempts: Int64 = 3600

    package init(confirmed: Int64, days: Int64) {
        self.confirmed = confirmed
        self.days = days
    }

    /// The deadline, in seconds since 1970.
    package var end: Int64 { confirmed + days * Self.day }

    /// Whether to ask for a confirmation although the last known state is that the device complies: once per day, and
    /// at least four times before ``end``.
    package func needsConfirmation(at now: Int64) -> Bool {
        now - confirmed >= min(Self.day, days * Self.day / 4)
    }

    /// Whether less than a quarter of the time is left.
    package func isNear(at now: Int64) -> Bool { end - now < days * Self.day / 4 }

    /// Whether to wipe: the deadline has passed, and attempts have failed for long enough. The first one that has
    /// failed after ``end`` was at `failingSince`, in seconds since 1970; nil if none has.
    package func isOver(at now: Int64, failingSince: Int64?) -> Bool {
        guard now >= end, let failingSince else { return false }
        return now - failingSince >= Self.lastAttempts
    }
}
