// SPDX-License-Identifier: Apache-2.0

import CountersignVault

/// Failures of a process to do something for sign-ins, and the pauses after them. They are kept in memory, because the
/// vault cannot record them on a full disk.
struct SignInFailures: Sendable {
    /// By name.
    private var entries: [String: Entry] = [:]

    private struct Entry: Sendable {
        /// Tell the sign-in apart from others of its name.
        let identifier: String
        let signedIn: Int64
        /// In a row.
        var count: UInt32
        /// When the last one happened, in seconds since 1970.
        var last: Int64
    }

    /// The longest pause, in seconds.
    private static let longestPause: Int64 = 60

    /// Counts a failure at `time`, in seconds since 1970. Returns the number of failures in a row.
    mutating func note(_ record: SignInRecord, at time: Int64) -> UInt32 {
        let count = (entry(of: record)?.count ?? 0) &+ 1
        entries[record.name] = Entry(
            identifier: record.identifier, signedIn: record.signedIn, count: count, last: time)
        return count
    }

    mutating func forget(_ name: String) { entries[name] = nil }

    /// Whether it is too early for another attempt.
    func isPaused(_ record: SignInRecord, at time: Int64) -> Bool {
        guard let entry = entry(of: record) else { return false }
        return Self.isPaused(after: entry.count, last: entry.last, at: time)
    }

    /// Nil after a new sign-in, or a renewal by another process since the last failure.
    private func entry(of record: SignInRecord) -> Entry? {
        guard let entry = entries[record.name], entry.identifier == record.identifier,
            entry.signedIn == record.signedIn, record.renewed <= entry.last
        else { return nil }
        return entry
    }

    /// Whether it is too early after `count` failures in a row. The pause doubles, from two seconds to a minute.
    static func isPaused(after count: UInt32, last: Int64, at time: Int64) -> Bool {
        guard count > 0 else { return false }
        return abs(time - last) < min(longestPause, Int64(1) << min(count, 6))
    }
}
