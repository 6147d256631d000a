// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Logging
import Synchronization
import Testing

@testable import Countersign

import class CountersignCryptography.Secret

/// Silent questions about sign-ins that are withheld, at times of the test's own.
@Suite(.waiting) struct ComplianceKeeperTests {
    /// A person who has signed in, with a token that does not expire.
    struct Bench {
        let service: ComplianceServer
        let home: EnrollmentHome
        let controller: ChallengeController
        let keeper: ComplianceKeeper
        let time: Clock

        final class Clock: Sendable {
            private let value: Atomic<Int64>
            init(_ value: Int64) { self.value = Atomic(value) }
            var now: Int64 { value.load(ordering: .relaxed) }
            func advance(_ seconds: Int64) { value.wrappingAdd(seconds, ordering: .relaxed) }
        }

        init(
            _ script: [String: any Sendable], service own: [String: any Sendable] = [:],
            control: [String: any Sendable] = ["lifetime": 0]
        ) async throws {
            service = try ComplianceServer(script)
            let compliance: [String: any Sendable] = ["url": service.url].merging(own) { _, new in new }
            home = try EnrollmentHome(control)
            try await home.signIn(["compliance_service": compliance])
            let time = Clock(ChallengeController.now())
            self.time = time
            try Self.change(home) { contents in
                var record = try #require(contents.signIns["work"])
                record.expires = 0
                try contents.updateSignIn(record)
            }
            controller = try ChallengeController(home: URL(filePath: home.path))
            controller.renewals.stop()
            keeper = ComplianceKeeper(
                policyKeeper: controller.keeper, now: { time.now }, chance: { 0 },
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }

        static func change(_ home: EnrollmentHome, _ body: (inout VaultContents) throws -> Void) throws {
            try SealedVault(home: home.path).open { () throws in Secret(utf8: "") }.update(body)
        }

        /// The service has found that the device does not comply.
        func withhold() throws {
            let time = time.now
            try Self.change(home) { contents in
                var record = try #require(contents.compliance["work"])
                (record.status, record.checked, record.title, record.message) = (1, time, "No", "Not yet.")
                try contents.setCompliance(record)
            }
        }

        /// The number of requests for a new token to the provider.
        var refreshes: Int { home.provider.requests.count { $0.hasPrefix("POST /token refresh_token") } }

        /// Lets time pass in steps of ten minutes, and checks whenever a check is due.
        func pass(_ seconds: Int64) async {
            for _ in 0..<seconds / 600 {
                time.advance(600)
                await keeper.check()
            }
        }

        func record() throws -> ComplianceRecord { try #require(try home.vault.compliance["work"]) }

        /// The seconds after the beginning at which the service got a question, while time passes in these steps.
        func askedTimes(_ seconds: ClosedRange<Int64>, step: Int64) async -> [Int64] {
            var times: [Int64] = []
            for second in stride(from: seconds.lowerBound, through: seconds.upperBound, by: Int64.Stride(step)) {
                let count = service.requests.count
                await keeper.check()
                if service.requests.count > count { times.append(second) }
                time.advance(step)
            }
            return times
        }
    }

    @Test func aWithheldSignInIsAskedAboutOnScheduleAndNoPageIsOpened() async throws {
        let bench = try await Bench(["script": "rules", "tokens": true], service: ["access_token": true])
        #expect(await bench.askedTimes(0...200, step: 20) == [], "it is not withheld")
        try bench.withhold()
        #expect(await bench.askedTimes(0...900, step: 20) == [60, 120, 240, 480])
        #expect(bench.service.requests.allSatisfy { $0.action == "remediate" && $0.silent == true })
        #expect(try bench.record().status == 1 && bench.record().title == "Not protected")
        #expect(bench.refreshes == 0)
    }

    @Test func aDeviceThatCompliesAgainIsUsedAgain() async throws {
        let bench = try await Bench(["script": "rules"])
        try bench.withhold()
        bench.time.advance(60)
        await bench.keeper.check()
        #expect(bench.controller.keeper.policy.current.withheld["work"] != nil)
        try bench.service.change(["script": "compliant"])
        bench.time.advance(60)
        await bench.keeper.check()
        #expect(try bench.record().isCompliant && bench.record().checked == bench.time.now)
        #expect(bench.controller.keeper.policy.current.withheld.isEmpty)
        let count = bench.service.requests.count
        #expect(await bench.askedTimes(0...4000, step: 200) == [])
        #expect(bench.service.requests.count == count)
    }

    /// Of several programs, one asks. The provider may not know the service's result yet, and its token is not due.
    @Test func aQuestionOfAPersonPostponesTheNext() async throws {
        let bench = try await Bench(["script": "page"])
        try bench.withhold()
        await bench.keeper.check()
        bench.time.advance(50)
        try bench.withhold()
        bench.time.advance(20)
        await bench.keeper.check()
        #expect(bench.service.requests.isEmpty)
        bench.time.advance(40)
        await bench.keeper.check()
        #expect(bench.service.requests.count == 1)
        #expect(try bench.record().status == 4, "a person has something to do")
        #expect(bench.refreshes == 0)
    }

    /// The service cannot know the person without a page, but the provider knows the device.
    @Test func theProviderIsAskedWhenTheTokenIsDue() async throws {
        let bench = try await Bench(["script": "page"])
        try bench.withhold()
        let time = bench.time.now
        try Bench.change(bench.home) { contents in
            var record = try #require(contents.signIns["work"])
            (record.obtained, record.expires) = (time - 3600, time - 10)
            try contents.updateSignIn(record)
        }
        try bench.home.provider.change(["lifetime": 3600])
        bench.time.advance(60)
        await bench.keeper.check()
        #expect(bench.service.requests.map(\.action) == ["remediate"])
        #expect(bench.refreshes == 1)
        #expect(try bench.record().isCompliant)
    }

    @Test func aSignInThatIsBeingRemovedIsNotAskedAbout() async throws {
        let bench = try await Bench(["script": "rules"])
        try bench.withhold()
        try Bench.change(bench.home) { contents in
            var record = try #require(contents.signIns["work"])
            record.ended = SignInRecord.isSigningOut
            try contents.updateSignIn(record)
        }
        bench.time.advance(7200)
        await bench.keeper.check()
        #expect(bench.service.requests.isEmpty)
    }
}
