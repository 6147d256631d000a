// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `enroll` with a profile that names the identity broker as the source of accounts.
@Suite(.waiting) struct BrokerSignInTests {
    private struct Bench {
        let broker: IdentityBroker
        let origin: BearerOrigin
        let user: Countersign
        let profile: String

        init(_ replies: [String: any Sendable], tokens: [String: String] = ["at-1": "valid"]) throws {
            broker = try IdentityBroker(replies)
            origin = try BearerOrigin(["tokens": tokens])
            user = try Countersign()
            profile = try user.folder.write(
                "profile.json",
                """
                {"name": "work", "issuer": "https://login.invalid/tenant/v2.0", "client_id": "app", "broker": true,
                 "scopes": ["api", "offline_access"], "sites": ["\(origin.url)"]}
                """)
        }

        var environment: [String: String] { ["DBUS_SESSION_BUS_ADDRESS": broker.address] }

        func enroll(_ flags: String..., display: Bool = false) throws -> CommandResult {
            try user.run(
                ["enroll", profile, "--yes"] + flags,
                environment: environment.merging(display ? ["DISPLAY": ":99"] : [:]) { $1 })
        }

        var called: [String] { broker.calls.map(\.method) }
    }

    /// The last one is that of ``token``.
    private static func accounts(_ names: String...) -> [String: any Sendable] { ["json": list(names)] }

    private static func list(_ names: [String]) -> [String: any Sendable] {
        let accounts = names.map { IdentityBroker.account($0, home: $0 == names.last ? "uid.utid" : "uid.\($0)") }
        return ["accounts": accounts]
    }

    private static let token = IdentityBroker.token("at-@count", expires: 4_000_000_000)
    private static let signInNeeded: [String: any Sendable] = [
        "json": ["brokerTokenResponse": ["error": ["context": "sign in"]]] as [String: any Sendable]
    ]

    @Test func theBrokersTokenAnswersTheProfilesSites() throws {
        let bench = try Bench(
            ["getAccounts": Self.accounts("jdoe@corp.example"), "acquireTokenSilently": Self.token],
            tokens: ["at-1": "valid", "at-2": "valid"])
        let done = try bench.enroll("--events")
        #expect(done.status == 0 && done.output.contains(#""event":"switching-to-broker""#), "\(done.said)")
        #expect(done.output.contains(#""account":"jdoe@corp.example""#) && !done.said.contains("at-1"))
        #expect(bench.called == ["getAccounts", "acquireTokenSilently"])
        let parameters = try #require(bench.broker.calls.last?.parameters)
        #expect(parameters["authority"] as? String == "https://login.invalid/tenant")
        #expect(parameters["requestedScopes"] as? [String] == ["api"])
        #expect(parameters["redirectUri"] as? String == "ms-appx-web://Microsoft.AAD.BrokerPlugin/app")
        let proxy = try bench.user.serve(environment: bench.environment)
        #expect(try proxy.get("\(bench.origin.url)/a").status == 200)
        #expect(bench.origin.log.requests.last?.authorization == "Bearer at-1")
        // The origin calls the token invalid, and the broker issues another one without a person.
        try bench.origin.change(["tokens": ["at-2": "valid"]])
        #expect(try proxy.get("\(bench.origin.url)/a").status == 200)
        #expect(bench.origin.log.requests.last?.authorization == "Bearer at-2")
        #expect(bench.called == ["getAccounts", "acquireTokenSilently", "getAccounts", "acquireTokenSilently"])
        #expect(bench.broker.calls.last?.parameters["accessTokenToRenew"] as? String == "at-1")
        let status = try bench.user.run("status", "--json")
        #expect(status.output.contains("jdoe@corp.example"), "\(status.said)")
        let out = try bench.user.run("unenroll", "work")
        #expect(out.status == 0 && out.output == "signed out: \"work\" removed\n" && out.error == "", "\(out.said)")
        #expect(try poll { try proxy.get("\(bench.origin.url)/a").status != 200 ? true : nil } == true)
    }

    @Test func oneOfSeveralAccountsIsChosen() throws {
        let bench = try Bench([
            "getAccounts": Self.accounts("a@corp.example", "b@corp.example"), "acquireTokenSilently": Self.token,
        ])
        let none = try bench.enroll()
        #expect(
            none.status == 1 && none.error.contains("2 accounts") && none.error.contains("--account"), "\(none.said)")
        let wrong = try bench.enroll("--account", "c@corp.example")
        #expect(wrong.status == 1 && wrong.error.contains("no account \"c@corp.example\""), "\(wrong.said)")
        #expect(!bench.called.contains("acquireTokenSilently"))
        let chosen = try bench.enroll("--account", "B@corp.example")
        #expect(chosen.status == 0 && chosen.output.contains("as b@corp.example"), "\(chosen.said)")
        #expect(bench.broker.calls.last?.parameters["username"] as? String == "b@corp.example")
    }

    @Test func aTokenOfAnotherAccountIsNotUsed() throws {
        let bench = try Bench([
            "getAccounts": Self.accounts("a@corp.example", "b@corp.example"), "acquireTokenSilently": Self.token,
        ])
        let done = try bench.enroll("--account", "a@corp.example")
        #expect(done.status == 1 && done.error.contains("for another account than \"a@corp.example\""), "\(done.said)")
        #expect(try bench.user.run("status", "--json").output.contains("work") == false)
    }

    @Test func aTokenWithoutAKnownOwnerIsNotStored() throws {
        let bench = try Bench([
            "getAccounts": ["json": ["accounts": [String]()] as [String: any Sendable]],
            "acquireTokenInteractively": Self.token,
        ])
        let unknown = try bench.enroll(display: true)
        #expect(unknown.status == 1 && unknown.error.contains("does not say whose token"), "\(unknown.said)")
    }

    @Test func aRenewalNeverTakesAnotherAccount() throws {
        let bench = try Bench(
            ["getAccounts": Self.accounts("a@corp.example"), "acquireTokenSilently": Self.token],
            tokens: ["at-1": "valid", "at-2": "valid"])
        #expect(try bench.enroll().status == 0)
        let proxy = try bench.user.serve(environment: bench.environment)
        #expect(try proxy.get("\(bench.origin.url)/a").status == 200)
        // The same user name in another tenant is another account.
        let guest = IdentityBroker.account("a@corp.example", home: "uid.guest")
        try bench.broker.change([
            "getAccounts": ["json": ["accounts": [guest]] as [String: any Sendable]],
            "acquireTokenSilently": Self.token,
        ])
        try bench.origin.change(["tokens": ["at-2": "valid"]])
        #expect(try proxy.get("\(bench.origin.url)/a").status == 401)
        #expect(bench.called.count { $0 == "acquireTokenSilently" } == 1)
        #expect(bench.origin.log.requests.last?.authorization == "Bearer at-1")
    }

    /// The person chooses it in the broker's window.
    @Test func aBrokerWithoutAccountsAsksThePerson() throws {
        let bench = try Bench([
            "getAccounts": ["first": ["accounts": [String]()], "json": Self.list(["new@corp.example"])],
            "acquireTokenInteractively": Self.token,
        ])
        let done = try bench.enroll(display: true)
        #expect(done.status == 0 && done.output.contains("as new@corp.example"), "\(done.said)")
        #expect(bench.called == ["getAccounts", "acquireTokenInteractively", "getAccounts"])
        let asked = try #require(bench.broker.calls.dropFirst().first)
        #expect(asked.request["account"] == nil && asked.parameters["username"] == nil)
        let proxy = try bench.user.serve(environment: bench.environment)
        #expect(try proxy.get("\(bench.origin.url)/a").status == 200)
    }

    @Test func thePersonIsWaitedForUntilTheTimeout() throws {
        let bench = try Bench([
            "getAccounts": Self.accounts("jdoe@corp.example"), "acquireTokenSilently": Self.signInNeeded,
            "acquireTokenInteractively": ["never": true],
        ])
        let done = try bench.enroll("--timeout", "2", display: true)
        #expect(done.status == 1 && done.error.contains("nobody has signed in within 2 seconds"), "\(done.said)")
        #expect(!bench.called.contains("cancelInteractiveFlow"))
    }

    @Test func aPersonIsAskedOnlyWhereThereIsADisplay() throws {
        let bench = try Bench([
            "getAccounts": Self.accounts("jdoe@corp.example"), "acquireTokenSilently": Self.signInNeeded,
            "acquireTokenInteractively": Self.token,
        ])
        let silent = try bench.enroll()
        #expect(silent.status == 1 && silent.error.contains("sign in"), "\(silent.said)")
        #expect(bench.called == ["getAccounts", "acquireTokenSilently"])
        #expect(try bench.enroll(display: true).status == 0)
        #expect(bench.called.suffix(3) == ["getAccounts", "acquireTokenSilently", "acquireTokenInteractively"])
        #expect(bench.broker.calls.last?.parameters["authorizationType"] as? Int == 6)
        // A renewal asks no question.
        let proxy = try bench.user.serve(environment: bench.environment.merging(["DISPLAY": ":99"]) { $1 })
        try bench.origin.change(["tokens": [String: String]()])
        #expect(try proxy.get("\(bench.origin.url)/a").status == 401)
        #expect(bench.called.filter { $0 == "acquireTokenInteractively" }.count == 1)
        #expect(bench.called.last == "acquireTokenSilently")
    }

    @Test func aRenewalThatTheEndOfTheProxyEndsIsNoFailure() throws {
        let bench = try Bench([
            "getAccounts": Self.accounts("jdoe@corp.example"),
            // It expires soon, so that the proxy renews it at once.
            "acquireTokenSilently": IdentityBroker.token("at-1", expires: Int64(Date().timeIntervalSince1970) + 5),
        ])
        #expect(try bench.enroll().status == 0)
        try bench.broker.change([
            "getAccounts": Self.accounts("jdoe@corp.example"), "acquireTokenSilently": ["never": true],
        ])
        let proxy = try bench.user.serve(environment: bench.environment)
        let isAsking = try poll { () -> Bool? in
            if bench.called.count == 2 { _ = try proxy.get("\(bench.origin.url)/a", flags: ["--max-time", "1"]) }
            return bench.called.suffix(2) == ["getAccounts", "acquireTokenSilently"] && bench.called.count > 2
                ? true : nil
        }
        #expect(isAsking == true, "\(bench.called)")
        proxy.process.send(SIGTERM)
        #expect(proxy.process.waitForExit() == 0)
        #expect(!proxy.process.errorOutput.contains("cannot be renewed"), "\(proxy.process.errorOutput)")
    }

    @Test func withoutABrokerNothingIsStored() throws {
        let bench = try Bench([:])
        bench.broker.stop()
        let done = try bench.enroll(display: true)
        #expect(
            done.status == 1 && done.error.contains("there is no identity broker on the session bus"), "\(done.said)")
        #expect(try bench.user.run("status", "--json").output.contains("work") == false)
    }

    @Test func anAccountIsForABrokerOnly() throws {
        let bench = try Bench([:])
        try bench.user.folder.write(
            "profile.json", #"{"issuer": "https://login.invalid/", "client_id": "app"}"#)
        let done = try bench.enroll("--account", "jdoe")
        #expect(done.status == 1 && done.error.contains("--account is for"), "\(done.said)")
    }
}
