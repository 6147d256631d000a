// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// A hostile program that knows the whole list: Tests/Fixtures/redteam.
@Suite(.waiting) struct RedTeamTests {
    /// The share of its attempts; all if `COUNTERSIGN_LONG_TESTS` is set.
    private static let part = ProcessInfo.processInfo.environment["COUNTERSIGN_LONG_TESTS"] == nil ? "0.16" : "1"

    /// The program ends with 0 only if, besides, each request that a line is for has got its secret, and each kind of
    /// attempt has succeeded at the same list without its limits.
    @Test func aHostileProgramGetsNoSecretAndNothingBeyondItsLines() throws {
        let pki = try TestPKI.shared
        let done = try Command.run(
            try Tool.python(),
            [
                "\(Tool.repository)/Tests/Fixtures/redteam/redteam.py", try Countersign.executable,
                pki.certificate("server"), pki.key("server"), pki.originAnchor, "--part", Self.part,
            ], in: TemporaryFolder("redteam"), seconds: 3600)
        #expect(done.status == 0, "\(done.said)")
        let summary = try #require(
            done.output.firstMatch(of: #/attempts (\d+) secrets (\d+) beyond (\d+) /#), "\(done.said)")
        #expect(summary.2 == "0" && summary.3 == "0", "\(done.said)")
        #expect(try #require(Int(summary.1)) >= 2000)
    }
}
