// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Foundation
import CountersignTestOrigin
import Testing
import CountersignVault

@testable import Countersign

/// Certificates renewed at the program's request, or because they are due.
@Suite(.waiting) struct LibraryRefreshTests {
    /// A home whose identity `laptop` was enrolled at an EST server.
    private struct Enrolled {
        let server: ESTServer
        let home: LibraryHome

        init(_ control: String = "") async throws {
            server = try ESTServer(Self.usual(control))
            home = try LibraryHome(
                "https://git.corp.example\n", credentials: ["enrollment": (ESTServer.user, ESTServer.password)])
            try await home.enroll("laptop", at: server)
        }

        static func usual(_ control: String) -> String {
            #"{"auth": "basic", "clientCertificate": "optional""# + (control.isEmpty ? "" : ", \(control)") + "}"
        }

        func control(_ control: String) throws { try server.set(Self.usual(control)) }
    }

    private static func leaf(_ controller: ChallengeController) async throws -> X509Certificate {
        let challenge = AuthenticationChallenge(protectionSpace: .git(.clientCertificate))
        guard case (.useCredential, .identity(let identity)?) = await controller.handle(challenge) else {
            throw HarnessError("no identity")
        }
        return try #require(identity.chain.first)
    }

    @Test(arguments: ["laptop", nil])
    func aRequestedRenewalTakesEffectImmediatelyAndIsReported(_ name: String?) async throws {
        let enrolled = try await Enrolled()
        let controller = try enrolled.home.controller()
        let before = try await Self.leaf(controller)
        let events = controller.events
        try await controller.fetchNewCertificates(named: name)
        let after = try await Self.leaf(controller)
        #expect(before != after)
        #expect(await controller.told(events).first == .refreshed(identity: "laptop"))
        #expect(enrolled.server.requests("simplereenroll").count == 1)
    }

    @Test func aDueCertificateIsRenewedFromTheStart() async throws {
        // Issued ten days ago, and valid for another hour.
        func text(_ offset: TimeInterval) -> String {
            let format = DateFormatter()
            format.locale = Locale(identifier: "en_US_POSIX")
            format.timeZone = TimeZone(secondsFromGMT: 0)
            format.dateFormat = "yyyyMMddHHmmss'Z'"
            return format.string(from: Date(timeIntervalSinceNow: offset))
        }
        let enrolled = try await Enrolled(#""notBefore": "\#(text(-864_000))", "notAfter": "\#(text(3600))""#)
        try enrolled.control("")
        let controller = try enrolled.home.controller()
        let end = ContinuousClock.now + .seconds(20)
        while try await Self.leaf(controller).notAfter < .now + 86_400, ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(try await Self.leaf(controller).notAfter > .now + 86_400)
        #expect(enrolled.server.requests("simplereenroll").count == 1)
    }

    @Test func aPendingRequestIsRepeated() async throws {
        let enrolled = try await Enrolled()
        let controller = try enrolled.home.controller()
        let before = try await Self.leaf(controller)
        try enrolled.control(#""pending": 2, "retryAfter": "1""#)
        try await controller.fetchNewCertificates(named: "laptop")
        #expect(try await Self.leaf(controller) != before)
    }

    @Test func aPendingRequestIsRepeatedAsOftenAsTheCallerWishes() async throws {
        let enrolled = try await Enrolled()
        let controller = try enrolled.home.controller()
        let before = try await Self.leaf(controller)
        try enrolled.control(#""pending": 100, "retryAfter": "1""#)
        let error = await #expect(throws: ChallengeError.self) {
            try await controller.fetchNewCertificates(
                named: "laptop", pendingRetry: PendingRetry(attempts: 2, interval: .milliseconds(10)))
        }
        #expect(error?.code == .refreshPending)
        #expect(error?.fault == .peer)
        #expect(try await Self.leaf(controller) == before)
        #expect(PendingRetry().attempts == 10)
    }

    @Test(arguments: [Duration.seconds(Int64.max), .seconds(Int64.min), .zero])
    func anyIntervalIsAccepted(_ interval: Duration) async throws {
        let enrolled = try await Enrolled()
        let controller = try enrolled.home.controller()
        try enrolled.control(#""pending": 100, "retryAfter": "1""#)
        let task = Task {
            try await controller.fetchNewCertificates(
                named: "laptop", pendingRetry: PendingRetry(attempts: 3, interval: interval))
        }
        if interval > .zero {
            let isAsked = try await eventually { !enrolled.server.requests("simplereenroll").isEmpty }
            #expect(isAsked)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        } else {
            let error = await #expect(throws: ChallengeError.self) { try await task.value }
            #expect(error?.code == .refreshPending)
        }
    }

    /// A check for due certificates reads the home again.
    @Test func anIdentityThatAnotherProcessEnrolledIsSeen() async throws {
        let home = try LibraryHome("https://git.corp.example\n")
        let controller = try home.controller()
        try home.enroll("later", user: "later")
        await controller.renewals.refreshDueIdentities()
        #expect(controller.keeper.vault?.contents.credentials["later"] != nil)
    }

    @Test func aCancelledTaskStopsAsking() async throws {
        let enrolled = try await Enrolled()
        let controller = try enrolled.home.controller()
        try enrolled.control(#""pending": 100, "retryAfter": "60""#)
        let asked = enrolled.server.log.count
        let task = Task { try await controller.fetchNewCertificates(named: "laptop") }
        let isAsked = try await eventually { !enrolled.server.requests("simplereenroll").isEmpty }
        #expect(isAsked)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(enrolled.server.log.count > asked)
    }

    @Test func aFailedRenewalIsReported() async throws {
        let enrolled = try await Enrolled()
        let controller = try enrolled.home.controller()
        let unknown = await #expect(throws: ChallengeError.self) {
            try await controller.fetchNewCertificates(named: "nobody")
        }
        #expect(unknown?.code == .nothingToAnswerWith)
        enrolled.server.stop()
        let events = controller.events
        let away = await #expect(throws: ChallengeError.self) {
            try await controller.fetchNewCertificates(named: "laptop")
        }
        #expect(away?.code == .refreshFailed)
        guard case .notRefreshed(identity: "laptop", _)? = await controller.told(events).first else {
            Issue.record("there is no event")
            return
        }
        let empty = try TemporaryFolder("library")
        let none = await #expect(throws: ChallengeError.self) {
            try await ChallengeController(home: URL(filePath: empty.path)).fetchNewCertificates()
        }
        #expect(none?.code == .nothingToAnswerWith)
    }
}
