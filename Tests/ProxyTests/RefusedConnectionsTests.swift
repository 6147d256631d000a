// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignProxy

@Suite struct RefusedConnectionsTests {
    @Test func theFirstIsReportedAtOnceAndFurtherOnesOnceAMinute() {
        var refused = RefusedConnections(servedUsers: [1000])
        #expect(
            refused.note(.user(1001), now: 10)
                == "refused a connection from user 1001: this proxy serves only user 1000")
        for second in 10..<70 {
            #expect(refused.timePassed(now: UInt64(second)).isEmpty)
            for _ in 0..<14 { #expect(refused.note(.user(1001), now: UInt64(second)) == nil) }
        }
        #expect(refused.timePassed(now: 70) == ["refused 840 connections from user 1001 in the last minute"])
        #expect(refused.note(.user(1001), now: 71) == nil)
        #expect(refused.timePassed(now: 129).isEmpty)
        #expect(refused.timePassed(now: 130) == ["refused 1 connection from user 1001 in the last minute"])
        #expect(refused.timePassed(now: 190).isEmpty)
        #expect(refused.note(.user(1001), now: 191)?.hasPrefix("refused a connection from user 1001:") == true)
    }

    @Test func causesAreCountedSeparately() {
        var refused = RefusedConnections(servedUsers: [0])
        let causes: [RefusedConnections.Cause] = [.user(1), .user(2), .unknownUser, .noDescriptors, .notAccepted]
        #expect(Set(causes.compactMap { refused.note($0, now: 0) }).count == causes.count)
        for cause in causes + causes { #expect(refused.note(cause, now: 1) == nil) }
        #expect(
            refused.timePassed(now: 60) == [
                "could not accept connections for lack of file descriptors in the last minute",
                "refused 2 connections for lack of file descriptors in the last minute",
                "refused 2 connections from unknown users in the last minute",
                "refused 2 connections from user 1 in the last minute",
                "refused 2 connections from user 2 in the last minute",
            ])
    }

    @Test func manyUsersDoNotFillTheLogEither() {
        var refused = RefusedConnections(servedUsers: [0])
        let lines = (1...10_000).compactMap { refused.note(.user(UInt32($0)), now: 0) }
        #expect(lines.count == 17)
        #expect(lines.last == "refused a connection from another user: this proxy serves only user 0")
        #expect(refused.timePassed(now: 60) == ["refused 9983 connections from other users in the last minute"])
    }

    @Test func theRestIsReportedAtTheEnd() {
        var refused = RefusedConnections(servedUsers: [0])
        _ = refused.note(.user(1), now: 0)
        #expect(refused.ended().isEmpty)
        _ = refused.note(.user(1), now: 0)
        _ = refused.note(.user(1), now: 0)
        #expect(refused.ended() == ["refused 1 connection from user 1 since the last report"])
    }
}
