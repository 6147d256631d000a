// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// How many wrong passwords a real domain controller counts after a password has changed, in schedules of many kinds.
/// Servers/lockout_schedules.py describes and runs them. The long form takes about a quarter of an hour.
@Suite(.waiting) struct DomainLockoutTests {
    private struct Outcome: Decodable {
        let kind: String
        let number: Int
        /// The password changed.
        let changes: Bool?
        /// Wrong passwords that the controller has counted, and how many it may count.
        let wrong: Int?
        let allowed: Int?
        /// Requests at the end that failed although the password was right.
        let failed: Int?
        let error: String?
    }

    private static let isLong = ProcessInfo.processInfo.environment["COUNTERSIGN_LONG_TESTS"] == "1"

    /// The controller has mounts of its own.
    private static let isPossible =
        geteuid() == 0
        && (try? Command.run(
            Tool.path("unshare"), ["--mount", "--propagation", "private", "true"], in: TemporaryFolder()
        ).status) == 0

    @Test(.enabled(if: isPossible, "Samba's domain controller needs root and unshare(1)"))
    func aChangedPasswordIsSentAtMostTwice() async throws {
        let folder = try TemporaryFolder("domain")
        let programs = URL(fileURLWithPath: try Countersign.executable).deletingLastPathComponent().path
        let address = "127.\(Int.random(in: 64...127)).\(Int.random(in: 1...254)).\(Int.random(in: 1...254))"
        let (count, seed) = (Self.isLong ? 600 : 24, Int.random(in: 0..<1_000_000))
        let done = try await Command.detached {
            try Command.run(
                try Tool.path("unshare"),
                [
                    "--mount", "--propagation", "private", "/usr/bin/python3", Tool.server("lockout_schedules.py"),
                    folder.path, address, programs, "\(count)", "\(seed)",
                ], in: folder, seconds: Self.isLong ? 3600 : 900)
        }
        let outcomes = done.output.split(separator: "\n").compactMap {
            try? JSONDecoder().decode(Outcome.self, from: Data($0.utf8))
        }
        #expect(done.status == 0 && outcomes.count == count, "seed \(seed): \(done.said.suffix(2000))")
        for outcome in outcomes {
            let place = "\(outcome.kind), seed \(seed), number \(outcome.number)"
            #expect(outcome.error == nil, "\(place)")
            #expect(outcome.wrong ?? 0 <= outcome.allowed ?? 0, "\(place)")
            #expect(outcome.failed ?? 0 == 0, "\(place)")
            if outcome.changes == false { #expect(outcome.wrong == 0, "\(place)") }
        }
        // If the controller did not count, nothing would be found.
        #expect(outcomes.contains { $0.wrong ?? 0 > 0 })
        let counts = Dictionary(grouping: outcomes.filter { $0.kind != "flow" }, by: { $0.wrong ?? -1 })
        print("wrong passwords per schedule:", counts.mapValues(\.count).sorted { $0.key < $1.key })
    }
}
