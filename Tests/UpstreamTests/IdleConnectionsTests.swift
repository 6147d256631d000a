// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import Testing

@testable import CountersignUpstream

/// A connection is represented by a number.
@Suite struct IdleConnectionsTests {
    private static func idle(
        count: Int = 2, idleSeconds: UInt64 = 55, surplusSeconds: UInt64 = 0
    ) -> IdleConnections<Int> {
        IdleConnections(limits: .init(count: count, idleSeconds: idleSeconds, surplusSeconds: surplusSeconds))
    }

    @Test func leaseWithoutIdleConnectionsIsNil() {
        var idle = Self.idle()
        #expect(idle.lease(now: 0) == nil)
    }

    @Test func connectionIsLeasedOnce() {
        var idle = Self.idle()
        #expect(idle.giveBack(1, now: 0) == nil)
        #expect(idle.lease(now: 1) == 1)
        #expect(idle.lease(now: 1) == nil)
    }

    @Test func connectionUsedLastIsLeasedFirst() {
        var idle = Self.idle()
        _ = idle.giveBack(1, now: 0)
        _ = idle.giveBack(2, now: 0)
        #expect(idle.lease(now: 0) == 2)
        #expect(idle.lease(now: 0) == 1)
    }

    @Test func oldestConnectionIsClosedAboveTheLimit() {
        var idle = Self.idle()
        _ = idle.giveBack(1, now: 0)
        #expect(idle.giveBack(2, now: 0) == nil)
        #expect(idle.giveBack(3, now: 0) == 1)
        #expect(idle.count == 2)
    }

    @Test func surplusOfABurstIsClosedLaterOldestFirst() {
        var idle = Self.idle(count: 1, surplusSeconds: 3)
        #expect(idle.giveBack(1, now: 10) == nil)
        #expect(idle.giveBack(2, now: 10) == nil)
        #expect(idle.timePassed(now: 12).isEmpty)
        #expect(idle.timePassed(now: 13) == [1])
        #expect(idle.giveBack(3, now: 13) == 2)
        #expect(idle.lease(now: 13) == 3)
    }

    @Test func limitOfZeroClosesEveryConnection() {
        var idle = Self.idle(count: 0)
        #expect(idle.giveBack(1, now: 0) == 1)
        #expect(idle.isEmpty)
    }

    @Test func idleLimitIsInclusive() {
        var idle = Self.idle()
        _ = idle.giveBack(1, now: 100)
        #expect(idle.timePassed(now: 155).isEmpty)
        #expect(idle.lease(now: 155) == 1)
        _ = idle.giveBack(1, now: 100)
        #expect(idle.lease(now: 156) == nil)
        #expect(idle.timePassed(now: 156) == [1])
        #expect(idle.isEmpty)
    }

    @Test func clockThatGoesBackwardsExpiresNothing() {
        var idle = Self.idle()
        _ = idle.giveBack(1, now: 100)
        #expect(idle.timePassed(now: 0).isEmpty)
        #expect(idle.lease(now: 0) == 1)
    }

    @Test func closedConnectionIsNotLeased() {
        var idle = Self.idle()
        _ = idle.giveBack(1, now: 0)
        _ = idle.giveBack(2, now: 0)
        idle.remove { $0 == 2 }
        #expect(idle.lease(now: 0) == 1)
    }

    @Test func removeAllReturnsEveryConnection() {
        var idle = Self.idle()
        _ = idle.giveBack(1, now: 0)
        _ = idle.giveBack(2, now: 0)
        #expect(idle.removeAll().sorted() == [1, 2])
        #expect(idle.isEmpty)
    }
}

@Suite struct UpstreamKeyTests {
    private static let origin = Origin(scheme: .https, host: "a.example", port: 443)

    private static func key(
        origin: Origin = origin, trust: UpstreamKey.Trust = .verified,
        credential: CredentialReference? = .init(name: "enrollment", source: .vault(generation: 1)),
        principal: UInt32? = 1000, settings: UInt64 = 1
    ) -> UpstreamKey {
        UpstreamKey(origin: origin, trust: trust, credential: credential, principal: principal, settings: settings)
    }

    /// Each key differs from another one in one part.
    static let keys: [UpstreamKey] = [
        key(),
        key(origin: Origin(scheme: .http, host: "a.example", port: 443)),
        key(origin: Origin(scheme: .https, host: "b.example", port: 443)),
        key(origin: Origin(scheme: .https, host: "a.example", port: 8443)),
        key(trust: .accepted(leaf: [1], answering: false)),
        key(trust: .accepted(leaf: [2], answering: false)),
        key(trust: .accepted(leaf: [1], answering: true)),
        key(credential: nil),
        key(credential: .init(name: "other", source: .vault(generation: 1))),
        key(credential: .init(name: "enrollment", source: .vault(generation: 2))),
        key(principal: nil),
        key(principal: 1001),
        key(settings: 2),
    ]

    @Test(arguments: keys) func keysThatDifferInOnePartAreNotEqual(_ key: UpstreamKey) {
        #expect(Self.keys.filter { $0 == key }.count == 1)
    }
}
