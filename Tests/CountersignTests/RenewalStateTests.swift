// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignTestOrigin
import CountersignCryptography
import CountersignEnrollment
import Testing
import CountersignVault

@testable import Countersign

/// The time of an identity's next renewal attempt, as computed from the vault.
@Suite(.waiting) struct RenewalStateTests {
    private static let now: Int64 = 1_800_000_000
    private static let year: Int64 = 366 * 86_400

    private static func record() -> EnrollmentRecord {
        EnrollmentRecord(
            name: "laptop", server: "https://est.example", subject: "CN=jdoe", keySpecification: "any", anchors: [[1]])
    }

    private func state(_ contents: VaultContents) throws -> RenewalState {
        try #require(
            RenewalState(named: "laptop", in: contents, home: Home(path: "/nonexistent/countersign"), now: Self.now))
    }

    /// Times in the future were recorded by a clock that was years ahead.
    @Test(arguments: [(-30, 30), (0, 60), (1, 0), (10 * year, 0)] as [(Int64, Int64)])
    func aFailureInTheFutureIsIgnored(since: Int64, wait: Int64) throws {
        var (contents, record) = (VaultContents(), Self.record())
        record.failures = 1
        record.lastFailure = Self.now + since
        try contents.setEnrollment(record)
        #expect(max(0, try state(contents).nextAttempt - Self.now) == wait)
    }

    @Test(arguments: [(60, 60), (86_400, 86_400), (86_401, 0), (10 * year, 0)] as [(Int64, Int64)])
    func aRetryTimeThatNoServerCanRequestIsIgnored(asked: Int64, wait: Int64) throws {
        var contents = VaultContents()
        try contents.setEnrollment(Self.record())
        var pending = PendingEnrollment(name: "laptop", privateKey: Secret([1]), created: Self.now)
        pending.retryAt = Self.now + asked
        try contents.setPendingEnrollment(pending)
        #expect(max(0, try state(contents).nextAttempt - Self.now) == wait)
    }

    /// A plan counts if the server has received it, or if there is no other enrolment.
    @Test func aPlanThatNoServerHasReceivedIsIgnored() throws {
        var contents = VaultContents()
        var (plan, pending) = (Self.record(), PendingEnrollment(name: "laptop", privateKey: Secret([1]), created: 1))
        plan.server = "https://other.example"
        pending.plan = plan
        try contents.setPendingEnrollment(pending)
        #expect(contents.plan(of: "laptop") == plan && contents.plannedNames == ["laptop"])
        try contents.setEnrollment(Self.record())
        #expect(contents.plan(of: "laptop") == Self.record())
        pending.request = [1]
        try contents.setPendingEnrollment(pending)
        #expect(contents.plan(of: "laptop") == plan)
    }
}
