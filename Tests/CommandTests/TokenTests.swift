// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// `countersign token`: the access tokens of sign-ins as values.
@Suite(.waiting) struct TokenTests {
    private static let site = "https://api.corp.example"

    /// A person who is signed in as `work`.
    static func signedIn(
        _ control: [String: any Sendable] = [:], profile: [String: any Sendable] = [:], isPermitted: Bool = true
    ) throws -> SignInSandbox {
        let usual: [String: any Sendable] = ["name": "work", "sites": [site]]
        let bench = try SignInSandbox(control, profile: usual.merging(profile) { _, new in new })
        let result = try bench.enroll()
        guard result.status == 0 else { throw HarnessError(result.said) }
        if isPermitted { try bench.sandbox.succeed("token", "allow", "work", "--yes") }
        return bench
    }

    private static func refreshes(_ bench: SignInSandbox) -> Int {
        bench.provider.requests.count { $0.hasPrefix("POST /token refresh_token") }
    }

    // MARK: The permission

    @Test func noTokenIsGivenOutBeforeThePersonHasPermittedIt() throws {
        let bench = try Self.signedIn(["token": ["first"]], isPermitted: false)
        let refused = try bench.run(["token", "work"])
        #expect(refused.status == 1 && refused.output.isEmpty, "\(refused.said)")
        #expect(refused.error.contains("the access token of \"work\" is not given out"), "\(refused.said)")
        #expect(refused.error.contains("hint: permit it with `countersign token allow work`"), "\(refused.said)")
        let unasked = try bench.run(["token", "allow", "work"])
        #expect(unasked.status == 1 && unasked.error.contains("pass --yes"), "\(unasked.said)")
        #expect(try bench.run(["token", "work"]).status == 1)

        #expect(try bench.sandbox.succeed("token", "allow", "work", "--yes").hasSuffix("is given out\n"))
        #expect(try bench.sandbox.succeed("token", "allow", "work").hasSuffix("is given out already\n"))
        let given = try bench.run(["token", "work"])
        #expect(given.status == 0 && given.output == "first\n" && given.error.isEmpty, "\(given.said)")
        #expect(try bench.run(["token", "print", "work"]).output == "first\n")

        try bench.sandbox.succeed("token", "deny", "work")
        let denied = try bench.run(["token", "work"])
        #expect(denied.status == 1 && denied.output.isEmpty, "\(denied.said)")
    }

    @Test func theListSaysWhatIsGivenOut() throws {
        let bench = try Self.signedIn(isPermitted: false)
        let none = try bench.sandbox.succeed("token", "list", "--no-header")
        #expect(none.split(separator: " ").map(String.init) == ["work", "jdoe@acme.example", "no\n"], "\(none)")
        try bench.sandbox.succeed("token", "allow", "work", "--yes")
        #expect(try bench.sandbox.succeed("token", "list").contains("since 20"))
        let rows =
            try JSONSerialization.jsonObject(
                with: Data(bench.sandbox.succeed("token", "list", "--json").utf8)) as? [[String: Any]]
        #expect(rows?.first?.keys.sorted() == ["account", "issuer", "name", "permitted"])
    }

    /// The new sign-in may be that of another person.
    @Test func thePermissionEndsWithTheSignInAndWithThePerson() throws {
        let bench = try Self.signedIn()
        #expect(try bench.enroll().status == 0)
        #expect(try bench.run(["token", "work"]).status == 0)
        try bench.provider.change(["subject": "another"])
        #expect(try bench.enroll().status == 0)
        #expect(try bench.run(["token", "work"]).status == 1)
        try bench.sandbox.succeed("token", "allow", "work", "--yes")
        try bench.sandbox.succeed("unenroll", "work")
        #expect(try bench.enroll().status == 0)
        #expect(try bench.run(["token", "work"]).status == 1)
    }

    // MARK: Renewal

    @Test func aTokenThatHasExpiredIsRenewedFirst() throws {
        let bench = try Self.signedIn(["lifetime": 0])
        try bench.provider.change(["lifetime": 3600, "token": ["second"]])
        #expect(try bench.run(["token", "work"]).output == "second\n")
        #expect(try bench.run(["token", "work"]).output == "second\n")
        #expect(Self.refreshes(bench) == 1)
        #expect(try bench.stored.tokens["work"]?.token.utf8Text == "second")
    }

    /// The proxy does the same. The token is due from the beginning, and valid for a while.
    @Test func aTokenThatIsStillValidIsGivenOutDuringAnOutage() throws {
        let bench = try Self.signedIn(["lifetime": 3600, "token": ["first"]])
        let vault = try SealedVault(home: bench.sandbox.home).open { throw HarnessError("there is a passphrase") }
        try vault.update { contents in
            var record = try #require(contents.signIns["work"])
            record.expires = Int64(Date.now.timeIntervalSince1970) + 60
            record.obtained -= 3600
            try contents.updateSignIn(record)
        }
        try bench.provider.change(["fail": ["/token": 503]])
        #expect(try bench.run(["token", "work"]).output == "first\n")
        #expect(bench.provider.requests.count { $0.hasPrefix("POST /token") } == 2)
    }

    @Test func aSignInThatHasEndedNamesTheCommandThatHelps() throws {
        let bench = try Self.signedIn(["lifetime": 0])
        try bench.provider.change(["error": "invalid_grant"])
        for _ in 1...2 {
            let result = try bench.run(["token", "work"])
            #expect(result.status == 1 && result.output.isEmpty, "\(result.said)")
            #expect(result.error.contains("invalid_grant"), "\(result.said)")
            #expect(result.error.contains("`countersign enroll work`"), "\(result.said)")
        }
    }

    @Test func anOutageIsSaid() throws {
        let bench = try Self.signedIn(["lifetime": 0])
        try bench.provider.change(["fail": ["/token": 503]])
        let result = try bench.run(["token", "work"])
        #expect(result.status == 1 && result.output.isEmpty, "\(result.said)")
        #expect(result.error.contains("has expired and cannot be renewed"), "\(result.said)")
        #expect(result.error.contains("cannot answer now"), "\(result.said)")
    }

    /// The command has no passphrase.
    @Test func theRunningServerGivesTheTokenOut() throws {
        let bench = try Self.signedIn(["lifetime": 0], isPermitted: false)
        let server = try bench.serveWithPassphrase()
        let refused = try bench.run(["token", "work"])
        #expect(refused.status == 1 && refused.error.contains("`countersign token allow work`"), "\(refused.said)")
        #expect(try bench.run(["token", "allow", "work", "--yes"]).status == 0)
        try bench.provider.change(["lifetime": 3600, "token": ["second"]])
        let given = try bench.run(["token", "work"])
        #expect(given.status == 0 && given.output == "second\n" && given.error.isEmpty, "\(given.said)")
        #expect(Self.refreshes(bench) == 1)
        let isLogged: Bool? = poll {
            server.errorOutput.contains("given out the access token of \"work\"") ? true : nil
        }
        #expect(isLogged == true, "\(server.errorOutput)")
        #expect(!server.errorOutput.contains("second"))
    }

    // MARK: Sites

    @Test func theTokenOfASiteIsTheOneThatTheListNames() throws {
        let bench = try Self.signedIn(["token": ["first"]])
        try bench.sandbox.succeed("sites", "add", "https://other.corp.example", "credential=other")
        try bench.sandbox.succeed("sites", "add", "https://basic.corp.example", "answer=basic", "credential=work")
        #expect(try bench.run(["token", "work", "--site", "\(Self.site)/v1/things?x=1"]).output == "first\n")
        for (site, reason) in [
            ("https://other.corp.example", "gets the credential \"other\" (AllowedSites/"),
            ("https://basic.corp.example", "is listed without answer=bearer"),
            ("https://none.corp.example", "is not listed"),
        ] {
            let result = try bench.run(["token", "work", "--site", site])
            #expect(result.status == 1 && result.output.isEmpty && result.error.contains(reason), "\(result.said)")
        }
        for (site, reason) in [("http://api.corp.example", "over https only"), ("https://a b", "--site: ")] {
            let result = try bench.run(["token", "work", "--site", site])
            #expect(result.status == 64 && result.output.isEmpty && result.error.contains(reason), "\(result.said)")
        }
    }

    /// A token that a program has can be sent by any program with any request.
    @Test func theTokenOfASiteIsThatOfTheLineForAllClients() throws {
        let bench = try Self.signedIn(["token": ["first"]])
        for (site, options) in [
            ("divided", "for=token:ci credential=other"), ("divided", "answer=bearer credential=work"),
            ("ci", "for=token:ci answer=bearer credential=work"),
            ("parts", "for=token:ci answer=bearer credential=work"),
            ("parts", "paths=/x/** answer=bearer credential=work"),
        ] {
            let added = try bench.sandbox.sh("countersign sites add https://\(site).corp.example \(options)")
            #expect(added.status == 0, "\(added.said)")
        }
        #expect(try bench.run(["token", "work", "--site", "https://divided.corp.example"]).output == "first\n")
        for (site, reason) in [
            ("https://ci.corp.example", "is listed for some clients only (AllowedSites/"),
            ("https://parts.corp.example", "is listed for some requests only (AllowedSites/"),
        ] {
            let result = try bench.run(["token", "work", "--site", site])
            #expect(result.status == 1 && result.output.isEmpty && result.error.contains(reason), "\(result.said)")
        }
        let docker = try bench.sandbox.countersign("token", "docker", "list")
        #expect(
            docker.output
                == "{\"\(Self.site)\":\"<token>\",\"https://divided.corp.example\":\"<token>\"}\n", "\(docker.said)")
    }

    // MARK: Forms and errors

    @Test func theJSONHasTheNamesOfOAuth() throws {
        let bench = try Self.signedIn(["token": ["first"]])
        let text = try bench.sandbox.succeed("token", "work", "--json")
        let value = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: String])
        #expect(value.keys.sorted() == ["access_token", "expires_at", "scope", "token_type"], "\(text)")
        #expect(value["access_token"] == "first" && value["token_type"] == "Bearer")
        #expect(value["scope"] == "openid offline_access")
        let time = try #require(ISO8601DateFormatter().date(from: value["expires_at"] ?? ""))
        #expect(abs(time.timeIntervalSinceNow - 3600) < 300)
    }

    @Test func whatIsNotASignInIsSaid() throws {
        let bench = try Self.signedIn()
        try bench.sandbox.succeed("credential", "set", "mine", "--token-stdin", input: "canary-mine\n")
        let stored = try bench.run(["token", "mine"])
        #expect(stored.status == 1 && stored.error.contains("\"mine\" is not a sign-in"), "\(stored.said)")
        for command in [["token", "typo"], ["token", "allow", "typo", "--yes"], ["token", "deny", "typo"]] {
            let unknown = try bench.run(command)
            #expect(unknown.status == 1 && unknown.error.contains("there is no sign-in \"typo\""), "\(unknown.said)")
            #expect(unknown.error.contains("known names: work"), "\(unknown.said)")
        }
        let misspelt = try bench.run(["token", "alow", "work"])
        #expect(misspelt.status == 64 && misspelt.error.contains("did you mean token allow?"), "\(misspelt.said)")
        let missing = try bench.run(["token"])
        #expect(missing.status == 64 && missing.error.contains("<name>"), "\(missing.said)")
    }

    @Test func anEmptyHomeSaysHowToSignIn() throws {
        let sandbox = try Sandbox()
        let result = try sandbox.countersign("token", "work")
        #expect(result.status == 1 && result.error.contains("`countersign enroll PROFILE`"), "\(result.said)")
    }

    /// `--home` and the environment work without `print`.
    @Test func theCommandWithoutItsNameTakesAllOptions() throws {
        let bench = try Self.signedIn(["token": ["first"]])
        #expect(try bench.run(["token", "--home", bench.sandbox.home, "work"]).output == "first\n")
        let json = try bench.run(["token", "work"], environment: ["COUNTERSIGN_JSON": "yes"])
        #expect(json.output.contains("\"access_token\""), "\(json.said)")
        try bench.sandbox.succeed("token", "deny", "work")
        try FileManager.default.moveItem(atPath: bench.sandbox.home, toPath: bench.file("elsewhere"))
        let hint = try bench.run(["token", "work", "--home", "elsewhere"])
        #expect(hint.error.contains("`countersign token allow --home \(bench.file("elsewhere")) work`"), "\(hint.said)")
    }
}
