// SPDX-License-Identifier: Apache-2.0

/// When a long-running program checks silently whether a device that did not comply complies now.
///
/// The pause after a check doubles from one minute to one hour. A random addition of up to half its length prolongs
/// each, so that the devices for which a policy was switched on at the same time do not all ask at the same time.
package struct ComplianceSchedule: Equatable, Sendable {
    /// When to ask next, in seconds since 1970.
    package private(set) var due: Int64
    /// The time of the last known question to the service, by any process.
    private var asked: Int64
    /// The number of this schedule's own questions.
    private var count = 0

    private static let firstPause: Int64 = 60
    package static let longestPause: Int64 = 3600
    /// In seconds. For a check that is overdue when the schedule begins: the machines of an organisation are switched
    /// on at the same time, too.
    private static let startPause = 10.0

    /// `checked` is the time of the last question to the service. Times are in seconds since 1970, and `chance` is from
    /// 0 to 1.
    package init(checked: Int64, now: Int64, chance: Double) {
        asked = checked
        due = max(checked + Self.pause(after: 1, chance), now + Int64(chance * Self.startPause))
        due = min(due, now + Self.pause(after: 1, 1))
    }

    /// Whether to ask. Also true if the clock has been set back, because ``due`` may then be years away.
    package func isDue(at now: Int64) -> Bool {
        now >= due || due - now > Self.pause(after: .max, 1)
    }

    /// The service got a question at `checked`, perhaps from another process or a person. Postpones the next one.
    package mutating func observed(checked: Int64, chance: Double) {
        guard checked > asked else { return }
        asked = checked
        due = max(due, checked + Self.pause(after: max(1, count), chance))
    }

    /// This schedule's question was sent. The device does not comply, or its state is unknown.
    package mutating func noteAsked(at now: Int64, chance: Double) {
        count += 1
        asked = max(asked, now)
        due = now + Self.pause(after: count, chance)
    }

    private static func pause(after count: Int, _ chance: Double) -> Int64 {
        let pause = min(longestPause, firstPause << Int64(min(count - 1, 6)))
        return pause + Int64(Double(pause) * min(max(chance, 0), 1) / 2)
    }
}
