// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Synchronization
import Testing

@testable import Countersign

/// The results of an enrolment are wiped after a long time without a confirmation that the device complies.
@Suite(.waiting) struct ComplianceWipeTests {
    private typealias Bench = ComplianceKeeperTests.Bench
    private static let day: Int64 = 86_400

    private final class Delegate: ComplianceDelegate {
        let heard = Mutex<[String]>([])
        private let home: EnrollmentHome
        private let wipesAtOnce: Bool

        init(_ home: EnrollmentHome, wipesAtOnce: Bool = false) {
            self.home = home
            self.wipesAtOnce = wipesAtOnce
        }

        private func note(_ text: String) { heard.withLock { $0.append(text) } }

        func remediated(_ result: ComplianceResult) async { note("\(result.status)") }
        func shouldWipe(after result: ComplianceResult) async -> Bool {
            note("wipe?")
            return wipesAtOnce
        }
        func willWipe(_ wipe: ComplianceWipe) async {
            let isThere = (try? home.vault.signIns[wipe.signIn]) != nil
            note("will wipe \(wipe.signIn) of \(wipe.accountID) after \(wipe.days ?? 0), \(isThere ? "there" : "gone")")
        }
        func wiped(_ wipe: ComplianceWipe) async {
            let isThere = (try? home.vault.signIns[wipe.signIn]) != nil
            note("wiped, \(isThere ? "there" : "gone")\(wipe.failure.map { ": \($0)" } ?? "")")
        }
        var wipes: [String] { heard.withLock { $0.filter { $0.contains("wipe") } } }
    }

    /// All that does not belong to the sign-in `work`: records with every field, and the bytes of files.
    private struct Unrelated: Equatable {
        let signIn: SignInRecord?
        let token: String?
        let generation: UInt64?
        let compliance: ComplianceRecord?
        let files: [String: Data]

        init(_ home: EnrollmentHome) throws {
            let contents = try home.vault
            signIn = contents.signIns["other"]
            (token, generation) = (contents.tokens["other"]?.token.utf8Text, contents.tokens["other"]?.generation)
            compliance = contents.compliance["other"]
            let folder = "\(home.path)/AllowedSites"
            let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
                $0.hasSuffix(".sites") && !$0.contains("work")
            }
            files = try Dictionary(
                uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\($0)"))) })
        }
    }

    private static let refusing: [String: any Sendable] = ["script": "rules", "tokens": true]

    private static func bench(
        _ script: [String: any Sendable] = refusing, days: Int? = 2, control: [String: any Sendable] = ["lifetime": 0]
    ) async throws -> Bench {
        var own: [String: any Sendable] = ["access_token": true]
        own["wipe_after_days"] = days
        return try await Bench(script, service: own, control: control)
    }

    private static func isThere(_ bench: Bench) throws -> Bool { try bench.home.vault.signIns["work"] != nil }

    @Test func itIsWipedAfterTheDaysOfTheProfileAndAnotherEnrolmentStays() async throws {
        let bench = try await Self.bench()
        let compliance: [String: any Sendable] = ["url": bench.service.url]
        let other = try bench.home.enrollment([
            "name": "other", "sites": ["https://other.corp.example"], "compliance_service": compliance,
        ])
        _ = try await other.signIn(with: .custom(EnrollmentHome.Browser(bench.home)))
        try bench.withhold()
        let delegate = Delegate(bench.home)
        bench.keeper.delegate = delegate
        let before = try Unrelated(bench.home)
        #expect(before.token != nil && before.compliance != nil && before.files.count == 1)

        await bench.pass(2 * Self.day)
        #expect(try Self.isThere(bench) && delegate.wipes.isEmpty)
        await bench.pass(3 * 3600)
        let contents = try bench.home.vault
        #expect(contents.signIns["work"] == nil && contents.tokens["work"] == nil && contents.wipes.isEmpty)
        #expect(contents.compliance["work"] == nil)
        let file = "\(bench.home.path)/AllowedSites/signed-in.work.sites"
        #expect(!FileManager.default.fileExists(atPath: file))
        #expect(delegate.wipes == ["will wipe work of object-1 after 2, there", "wiped, gone"])
        #expect(try Unrelated(bench.home) == before)
        #expect(bench.home.provider.requests.contains("POST /revoke refresh_token 200"))
    }

    /// Confirms that the device complies when it hears of the wipe.
    private final class InTime: ComplianceDelegate {
        let failures = Mutex<[String?]>([])
        private let bench: Bench

        init(_ bench: Bench) { self.bench = bench }

        func remediated(_ result: ComplianceResult) async {}
        func willWipe(_ wipe: ComplianceWipe) async {
            let time = bench.time.now
            try? Bench.change(bench.home) { contents in
                guard var record = contents.compliance[wipe.signIn] else { return }
                (record.status, record.checked, record.confirmed) = (0, time, time)
                try contents.setCompliance(record)
            }
        }
        func wiped(_ wipe: ComplianceWipe) async { failures.withLock { $0.append(wipe.failure) } }
    }

    @Test func aDeviceThatIsConfirmedAtTheLastMomentIsNotWiped() async throws {
        let bench = try await Self.bench()
        try bench.withhold()
        let delegate = InTime(bench)
        bench.keeper.delegate = delegate
        await bench.pass(2 * Self.day + 3 * 3600)
        #expect(try Self.isThere(bench) && bench.home.vault.wipes.isEmpty)
        let failures = delegate.failures.withLock { $0 }
        #expect(failures == ["the device was confirmed to comply, or the sign-in has changed meanwhile"])
    }

    @Test func aMachineThatWasOffForLongIsAskedAboutFirst() async throws {
        let bench = try await Self.bench(["script": "compliant", "tokens": true])
        bench.time.advance(30 * Self.day)
        await bench.pass(1200)
        #expect(try Self.isThere(bench) && bench.record().confirmed > bench.time.now - 1200)
        #expect(bench.service.requests.count == 1)
    }

    /// The service cannot be reached, and neither can the provider.
    @Test func aDeviceThatCompliesIsWipedIfNobodyCanConfirmThat() async throws {
        let bench = try await Self.bench(["raw": "", "status": 503])
        try bench.home.provider.change(["fail": ["/token": 503]])
        bench.time.advance(30 * Self.day)
        await bench.pass(1800)
        #expect(try Self.isThere(bench), "the network may not be up yet")
        await bench.pass(7200)
        #expect(try !Self.isThere(bench))
    }

    /// The provider issues tokens to devices that comply.
    @Test func aNewTokenConfirmsThatTheDeviceComplies() async throws {
        let bench = try await Self.bench(["raw": "", "status": 503], days: 1)
        await bench.pass(3 * Self.day)
        #expect(try Self.isThere(bench) && bench.record().confirmed > bench.time.now - Self.day / 2)
        #expect(bench.refreshes >= 6)
    }

    @Test func theServiceIsAskedForAConfirmationOnceADay() async throws {
        let bench = try await Self.bench(["script": "compliant"], days: 30)
        let asked = await bench.askedTimes(0...3 * Self.day, step: 600)
        #expect(asked == [1, 2, 3].map { $0 * Self.day }, "\(asked)")
    }

    @Test func withoutTheKeyNothingIsEverWiped() async throws {
        let bench = try await Self.bench(days: nil)
        try bench.withhold()
        bench.time.advance(4000 * Self.day)
        await bench.pass(4 * 3600)
        #expect(try Self.isThere(bench) && bench.service.requests.count > 3)
    }

    // MARK: The delegate

    /// Of the table: the statuses that leave an enrolment without a token.
    @Test(
        arguments: [
            (["script": "rules", "tokens": true], true), (["raw": "", "status": 503], true),
            (["script": "page"], false), (["script": "compliant"], false),
        ] as [([String: any Sendable], Bool)])
    func aDelegateMayHaveItWipedAtOnce(script: [String: any Sendable], isAsked: Bool) async throws {
        let bench = try await Self.bench(script, days: nil)
        let delegate = Delegate(bench.home, wipesAtOnce: true)
        let manager = ComplianceManager(bench.home.signIns, delegate: delegate)
        let result = try await manager.remediate(accountID: "object-1", silent: true)
        #expect(try Self.isThere(bench) != isAsked, "\(result)")
        let all = ["wipe?", "will wipe work of object-1 after 0, there", "wiped, gone"]
        #expect(delegate.wipes == (isAsked ? all : []), "\(result)")
    }

    @Test func aDelegateThatDoesNotWantItIsAskedOnly() async throws {
        let bench = try await Self.bench(days: nil)
        let delegate = Delegate(bench.home)
        let result = try await ComplianceManager(bench.home.signIns, delegate: delegate).remediate(
            accountID: "object-1", silent: true)
        #expect(result.status == .notCompliant && delegate.wipes == ["wipe?"])
        #expect(try Self.isThere(bench))
    }

    private struct Endless: ComplianceDelegate {
        func remediated(_ result: ComplianceResult) async {}
        func willWipe(_ wipe: ComplianceWipe) async {
            while !Task.isCancelled { try? await Task.sleep(for: .seconds(3600)) }
        }
    }

    @Test(.timeLimit(.minutes(15))) func aDelegateThatSavesForeverIsNotWaitedFor() async throws {
        let wipe = ComplianceWipe(signIn: "work", accountID: "object-1", days: 1)
        let isDone = Mutex(false)
        await wipe.perform(for: Endless(), within: .milliseconds(10)) {
            isDone.withLock { $0 = true }
            return nil
        }
        #expect(isDone.withLock { $0 })
    }

    @Test func aControllerTellsItsDelegateWhatSilentQuestionsFind() async throws {
        let bench = try await Self.bench(["script": "compliant"], days: nil)
        try bench.withhold()
        let delegate = Delegate(bench.home)
        bench.controller.complianceDelegate = delegate
        #expect(bench.controller.renewals.compliance.delegate as? Delegate === delegate)
        bench.time.advance(60)
        await bench.controller.renewals.compliance.check()
        #expect(delegate.heard.withLock { $0 }.isEmpty, "the controller's clock shows another time")
        bench.keeper.delegate = delegate
        await bench.keeper.check()
        #expect(try await eventually { delegate.heard.withLock { $0 } == ["compliant"] })
    }
}
