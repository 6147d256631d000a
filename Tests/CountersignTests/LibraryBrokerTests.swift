// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignTestOrigin
import CountersignVault
import Testing

@testable import Countersign

/// An app that signs its user in with the identity broker of the machine.
@Suite(.waiting) struct LibraryBrokerTests {
    private struct Bench {
        let broker: IdentityBroker
        let folder: TemporaryFolder
        let signIns: SignIns

        init(_ replies: [String: any Sendable], display: Bool = false) throws {
            broker = try IdentityBroker(replies)
            folder = try TemporaryFolder("broker-home")
            let environment = ["DBUS_SESSION_BUS_ADDRESS": broker.address]
            signIns = try SignIns(
                home: folder.file("home"), environment: environment.merging(display ? ["DISPLAY": ":99"] : [:]) { $1 })
        }

        func enrollment(isBrokers: Bool = true) throws -> Enrollment {
            let text = """
                {"name": "work", "issuer": "https://login.invalid/tenant/v2.0", "client_id": "app",
                 "broker": \(isBrokers), "scopes": ["api"], "sites": ["https://git.corp.example"]}
                """
            return try signIns.enrollment(try EnrollmentProfile(Array(text.utf8), source: "a test"))
        }

        func error(account: String? = nil, timeout: Duration = .seconds(60)) async throws -> ChallengeError? {
            do {
                try await enrollment().signIn(account: account, timeout: timeout)
                return nil
            } catch let error as ChallengeError {
                return error
            }
        }
    }

    private static func accounts(_ names: String...) -> [String: any Sendable] {
        let accounts = names.map { IdentityBroker.account($0, home: $0 == names.last ? "uid.utid" : "uid.\($0)") }
        return ["json": ["accounts": accounts] as [String: any Sendable]]
    }

    private static let token = IdentityBroker.token("at-1", expires: 4_000_000_000)
    private static let signInNeeded: [String: any Sendable] = [
        "json": ["brokerTokenResponse": ["error": ["context": "sign in"]]] as [String: any Sendable]
    ]

    @Test func theAppChoosesTheAccount() async throws {
        let bench = try Bench([
            "getAccounts": Self.accounts("a@corp.example", "b@corp.example"), "acquireTokenSilently": Self.token,
        ])
        #expect(try await bench.error()?.code == .providerRefused)
        #expect(try await bench.signIns.all().isEmpty)
        let signIn = try await bench.enrollment().signIn(account: "b@corp.example")
        #expect(signIn.account == "b@corp.example" && signIn.subject == "uid.utid" && signIn.isRenewable)
        #expect(try await bench.signIns.all() == [signIn])
    }

    @Test func theBrokerIsToldWhatTheProfileWants() async throws {
        let bench = try Bench(["getAccounts": Self.accounts("b@corp.example"), "acquireTokenSilently": Self.token])
        let text = """
            {"name": "work", "issuer": "https://login.invalid/tenant/v2.0", "client_id": "app", "broker": true,
             "scopes": ["api"], "sites": ["https://git.corp.example"], "parameters": {"acr_values": "mfa"},
             "compliance_service": {"url": "https://mdm.invalid/", "protapp": true}}
            """
        let profile = try EnrollmentProfile(Array(text.utf8), source: "a test")
        _ = try await bench.signIns.enrollment(profile).signIn()
        let call = try #require(bench.broker.calls.last { $0.method == "acquireTokenSilently" })
        let parameters = call.parameters
        #expect(parameters["decodedClaims"] as? String == #"{"access_token":{"xms_cc":{"values":["protapp"]}}}"#)
        let additional = parameters["additionalQueryParametersForAuthorization"] as? [String: String]
        #expect(additional == ["acr_values": "mfa"])
        // The account for compliance questions.
        let contents = try SealedVault(home: bench.folder.file("home")).open { () throws in Secret(utf8: "") }.contents
        #expect(contents.compliance["work"]?.homeAccount == "uid.utid")
        // A renewal would ask without it.
        let error = #expect(throws: ChallengeError.self) { try profile.adding(scopes: ["more"]) }
        #expect(error?.code == .profileFaulty && error?.detail.contains("the profile's scopes only") == true)
        #expect(throws: Never.self) { try profile.adding(scopes: ["api"]) }
    }

    @Test func anAccountIsForABrokerOnly() async throws {
        let bench = try Bench([:])
        let error = await #expect(throws: ChallengeError.self) {
            try await bench.enrollment(isBrokers: false).signIn(account: "jdoe")
        }
        #expect(error?.code == .profileFaulty)
    }

    @Test func thePersonIsWaitedForUntilTheTimeout() async throws {
        let bench = try Bench(
            [
                "getAccounts": Self.accounts("jdoe@corp.example"), "acquireTokenSilently": Self.signInNeeded,
                "acquireTokenInteractively": ["never": true],
            ], display: true)
        #expect(try await bench.error(timeout: .milliseconds(500))?.code == .signInTimedOut)
    }

    @Test func aCancelledTaskStopsWaiting() async throws {
        let bench = try Bench(
            [
                "getAccounts": Self.accounts("jdoe@corp.example"), "acquireTokenSilently": Self.signInNeeded,
                "acquireTokenInteractively": ["never": true],
            ], display: true)
        let task = Task { try await bench.enrollment().signIn() }
        _ = try await eventually { bench.broker.calls.last?.method == "acquireTokenInteractively" }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func theBrokersErrorsArePassedOn() async throws {
        let bench = try Bench(["getAccounts": ["error": ["org.freedesktop.DBus.Error.Failed", "jdoe is blocked"]]])
        let failed = try await bench.error()
        #expect(failed?.code == .providerRefused && failed?.detail.contains("jdoe is blocked") == true)
        bench.broker.stop()
        let missing = try await bench.error()
        #expect(missing?.code == .providerUnreachable && missing?.fault == .peer)
        #expect(missing?.detail.contains("there is no identity broker on the session bus") == true)
        bench.broker.bus.stop()
        #expect(try await bench.error()?.code == .providerUnreachable)
    }
}
