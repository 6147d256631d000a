// SPDX-License-Identifier: Apache-2.0

/// Connections that the proxy closes without serving them, as lines for its log.
///
/// Any local user can cause any number of them. So the first of each cause is reported at once, and further ones are
/// counted and reported once per minute. Times are monotonic seconds.
struct RefusedConnections {
    enum Cause: Hashable {
        case user(UInt32)
        /// A user who is not counted separately, because there are too many.
        case otherUser
        /// The kernel does not know the owner: the client has closed the connection already.
        case unknownUser
        /// The process or the system has no descriptors left to look up the owner, or to accept a connection at all.
        case noDescriptors
        case notAccepted

        fileprivate var clause: String {
            switch self {
            case .user(let uid): "from user \(uid)"
            case .otherUser: "from other users"
            case .unknownUser: "from unknown users"
            case .noDescriptors, .notAccepted: "for lack of file descriptors"
            }
        }
    }

    private struct Tally {
        /// When the period that is being counted began.
        var since: UInt64
        /// The connections in this period that have not been reported.
        var count = 0
    }

    private static let periodSeconds: UInt64 = 60
    /// A user with subordinate user ids has thousands.
    private static let separateUsers = 16

    /// The users that the proxy serves: `user 1000`, `users 1000, 1001`.
    private let served: String
    private var tallies: [Cause: Tally] = [:]

    init(servedUsers: [UInt32]) {
        let numbers = servedUsers.map(String.init).joined(separator: ", ")
        served = servedUsers.count == 1 ? "user \(numbers)" : "users \(numbers)"
    }

    /// Counts a connection. Returns the line to report now, if any.
    mutating func note(_ cause: Cause, now: UInt64) -> String? {
        let cause = counted(cause)
        guard tallies[cause] == nil else {
            tallies[cause]?.count += 1
            return nil
        }
        tallies[cause] = Tally(since: now)
        return first(cause)
    }

    /// The lines to report for periods that have ended, in a stable order.
    mutating func timePassed(now: UInt64) -> [String] {
        var lines: [String] = []
        for (cause, tally) in tallies where now >= tally.since + Self.periodSeconds {
            tallies[cause] = tally.count == 0 ? nil : Tally(since: now)
            if tally.count > 0 { lines.append(summary(cause, tally.count, "in the last minute")) }
        }
        return lines.sorted()
    }

    /// The lines to report when the proxy stops.
    mutating func ended() -> [String] {
        defer { tallies = [:] }
        return tallies.filter { $0.value.count > 0 }.map { summary($0.key, $0.value.count, "since the last report") }
            .sorted()
    }

    private func counted(_ cause: Cause) -> Cause {
        guard case .user = cause, tallies[cause] == nil, tallies.count >= Self.separateUsers else { return cause }
        return .otherUser
    }

    private func first(_ cause: Cause) -> String {
        switch cause {
        case .user(let uid):
            "refused a connection from user \(uid): this proxy serves only \(served)"
        case .otherUser:
            "refused a connection from another user: this proxy serves only \(served)"
        case .unknownUser:
            "refused a connection from an unknown user: this proxy serves only \(served)"
        case .noDescriptors:
            "refused a connection whose user could not be looked up: out of file descriptors (see `ulimit -n`)"
        case .notAccepted:
            "cannot accept connections: out of file descriptors (see `ulimit -n`)"
        }
    }

    private func summary(_ cause: Cause, _ count: Int, _ when: String) -> String {
        if cause == .notAccepted { return "could not accept connections \(cause.clause) \(when)" }
        return "refused \(count) connection\(count == 1 ? "" : "s") \(cause.clause) \(when)"
    }
}
