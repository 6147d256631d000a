// SPDX-License-Identifier: Apache-2.0

import Challenges
import Testing

@testable import Upstream

@Suite struct PoolStateMachineTests {
    private static let origin = Origin(scheme: .https, host: "a.example", port: 443)

    private static func key(
        origin: Origin = origin, trust: UpstreamKey.Trust = .verified,
        credential: UpstreamKey.CredentialTag? = .init(name: "enrollment", generation: 1), principal: UInt32? = 1000,
        settings: UInt64 = 1
    ) -> UpstreamKey {
        UpstreamKey(origin: origin, trust: trust, credential: credential, principal: principal, settings: settings)
    }

    @Test func anEmptyPoolConnects() {
        var pool = PoolStateMachine(idlePerKey: 2, idleSeconds: 55)
        #expect(pool.leaseRequested(Self.key(), now: 0) == .connect)
    }

    @Test func aConnectionIsLentToOneAtATime() {
        var pool = PoolStateMachine(idlePerKey: 2, idleSeconds: 55)
        #expect(pool.leaseReturned(1, to: Self.key(), now: 0) == .parked)
        #expect(pool.leaseRequested(Self.key(), now: 1) == .reuse(1))
        #expect(pool.leaseRequested(Self.key(), now: 1) == .connect)
    }

    @Test func theOneUsedLastIsLentFirst() {
        var pool = PoolStateMachine(idlePerKey: 2, idleSeconds: 55)
        _ = pool.leaseReturned(1, to: Self.key(), now: 0)
        _ = pool.leaseReturned(2, to: Self.key(), now: 0)
        #expect(pool.leaseRequested(Self.key(), now: 0) == .reuse(2))
        #expect(pool.leaseRequested(Self.key(), now: 0) == .reuse(1))
    }

    @Test func theOldestGoesWhenOneTooManyComesBack() {
        var pool = PoolStateMachine(idlePerKey: 2, idleSeconds: 55)
        _ = pool.leaseReturned(1, to: Self.key(), now: 0)
        #expect(pool.leaseReturned(2, to: Self.key(), now: 0) == .parked)
        #expect(pool.leaseReturned(3, to: Self.key(), now: 0) == .close(1))
        #expect(pool.idleCount == 2)
    }

    @Test func theSurplusOfABurstStaysAWhileAndThenGoesOldestFirst() {
        var pool = PoolStateMachine(idlePerKey: 1, idleSeconds: 55, surplusSeconds: 3)
        #expect(pool.leaseReturned(1, to: Self.key(), now: 10) == .parked)
        #expect(pool.leaseReturned(2, to: Self.key(), now: 10) == .parked)
        #expect(pool.timePassed(now: 12).isEmpty)
        #expect(pool.timePassed(now: 13) == [1])
        #expect(pool.leaseReturned(3, to: Self.key(), now: 13) == .close(2))
        #expect(pool.leaseRequested(Self.key(), now: 13) == .reuse(3))
    }

    @Test func aPoolOfNoneKeepsNone() {
        var pool = PoolStateMachine(idlePerKey: 0, idleSeconds: 55)
        #expect(pool.leaseReturned(1, to: Self.key(), now: 0) == .close(1))
        #expect(pool.idleCount == 0)
    }

    @Test func theIdleLimitItselfPassesAndASecondMoreDoesNot() {
        var pool = PoolStateMachine(idlePerKey: 2, idleSeconds: 55)
        _ = pool.leaseReturned(1, to: Self.key(), now: 100)
        #expect(pool.timePassed(now: 155).isEmpty)
        #expect(pool.leaseRequested(Self.key(), now: 155) == .reuse(1))
        _ = pool.leaseReturned(1, to: Self.key(), now: 100)
        #expect(pool.leaseRequested(Self.key(), now: 156) == .connect)
        #expect(pool.timePassed(now: 156) == [1])
        #expect(pool.idleCount == 0)
    }

    @Test func aClockThatGoesBackwardsExpiresNothing() {
        var pool = PoolStateMachine(idlePerKey: 2, idleSeconds: 55)
        _ = pool.leaseReturned(1, to: Self.key(), now: 100)
        #expect(pool.timePassed(now: 0).isEmpty)
        #expect(pool.leaseRequested(Self.key(), now: 0) == .reuse(1))
    }

    @Test func oneThatTheOriginClosedIsNotLent() {
        var pool = PoolStateMachine(idlePerKey: 2, idleSeconds: 55)
        _ = pool.leaseReturned(1, to: Self.key(), now: 0)
        _ = pool.leaseReturned(2, to: Self.key(), now: 0)
        pool.connectionClosed(2, of: Self.key())
        #expect(pool.leaseRequested(Self.key(), now: 0) == .reuse(1))
    }

    @Test func shutDownGivesUpEveryConnectionOfEveryKey() {
        var pool = PoolStateMachine(idlePerKey: 2, idleSeconds: 55)
        _ = pool.leaseReturned(1, to: Self.key(), now: 0)
        _ = pool.leaseReturned(2, to: Self.key(principal: 1001), now: 0)
        #expect(pool.shutDown().sorted() == [1, 2])
        #expect(pool.idleCount == 0)
    }

    /// Each differs from the parked connection's key in one part.
    static let otherKeys: [UpstreamKey] = [
        key(origin: Origin(scheme: .http, host: "a.example", port: 443)),
        key(origin: Origin(scheme: .https, host: "b.example", port: 443)),
        key(origin: Origin(scheme: .https, host: "a.example", port: 8443)),
        key(trust: .accepted(leaf: [1], answering: false)),
        key(trust: .accepted(leaf: [1], answering: true)),
        key(credential: nil),
        key(credential: .init(name: "other", generation: 1)),
        key(credential: .init(name: "enrollment", generation: 2)),
        key(principal: nil),
        key(principal: 1001),
        key(settings: 2),
    ]

    @Test func anAcceptedLeafIsLentToNoOtherLeafAndNoOtherRight() {
        var pool = PoolStateMachine(idlePerKey: 2, idleSeconds: 55)
        _ = pool.leaseReturned(1, to: Self.key(trust: .accepted(leaf: [1], answering: false)), now: 0)
        for trust in [
            UpstreamKey.Trust.verified, .accepted(leaf: [2], answering: false), .accepted(leaf: [1], answering: true),
        ] {
            #expect(pool.leaseRequested(Self.key(trust: trust), now: 0) == .connect)
        }
    }

    @Test(arguments: otherKeys) func anotherKeyIsNeverLentTheConnection(_ other: UpstreamKey) {
        var pool = PoolStateMachine(idlePerKey: 2, idleSeconds: 55)
        _ = pool.leaseReturned(1, to: Self.key(), now: 0)
        #expect(pool.leaseRequested(other, now: 0) == .connect)
        #expect(pool.leaseRequested(Self.key(), now: 0) == .reuse(1))
    }
}
