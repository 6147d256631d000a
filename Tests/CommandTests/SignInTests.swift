// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `countersign enroll`, `status` and `unenroll` with a provider.
@Suite(.waiting) struct SignInTests {
    @Test func aPersonIsSignedInWithTheBrowser() throws {
        let bench = try SignInSandbox(profile: [
            "sites": ["https://api.corp.example"], "parameters": ["acr_values": "persistent-cookie"],
        ])
        let result = try bench.enroll()
        let said = result.said
        #expect(result.status == 0 && result.output.contains("signed in as jdoe@acme.example"), "\(said)")
        #expect(result.error.contains("\(bench.provider.issuer)/authorize?"), "\(said)")
        #expect(
            bench.provider.requests == [
                "GET /.well-known/openid-configuration 200", "GET /authorize 302",
                "POST /token authorization_code 200", "GET /keys 200",
            ])
        // The URL is one argument, and the browser ends at the page without the response.
        let arguments = TextFile.lines(bench.file("browser.arguments"))
        #expect(arguments.count == 2 && arguments[0] == "1" && arguments[1].contains("acr_values=persistent-cookie"))
        let seen = TextFile.text(bench.file("browser.seen"))
        #expect(seen.contains("You can close this window") && seen.hasSuffix("\n200\n"), "\(seen)")
        let status = try bench.status
        #expect(status.count == 1 && status[0]["account"] as? String == "jdoe@acme.example")
        #expect(status[0]["isRenewable"] as? Bool == true && status[0]["name"] as? String == "127.0.0.1")
        #expect(try bench.sandbox.succeed("sites", "list", "--no-header").contains("https://api.corp.example"))
        let table = try bench.sandbox.succeed("status").split(whereSeparator: \.isNewline)
            .map { $0.split(separator: " ") }
        #expect(table.contains { $0 == ["NAME", "SCOPES", "SITES"] }, "\(table)")
        #expect(table.last == ["127.0.0.1", "openid,", "offline_access", "https://api.corp.example"], "\(table)")
        #expect(!said.contains("canary"))
    }

    /// All of them are in `--json`.
    @Test func onlyTheFirstOfManyScopesAndSitesAreInTheTable() throws {
        for (count, sites) in [
            (5, "a1.example, a2.example, a3.example, a4.example, a5.example"),
            (6, "a1.example, a2.example, a3.example, a4.example and 2 more"),
        ] {
            let bench = try SignInSandbox(
                ["scope": ""], profile: ["scopes": ["files"], "sites": (1...count).map { "a\($0).example" }])
            #expect(try bench.enroll().status == 0)
            let line = try bench.sandbox.succeed("status").split(whereSeparator: \.isNewline).last
            #expect(line == "127.0.0.1  none    \(sites)", "\(line ?? "")")
            #expect((try bench.status[0]["sites"] as? [String])?.count == count)
        }
    }

    @Test func aSmallerGrantIsSaidAtTheEnd() throws {
        let bench = try SignInSandbox(
            ["scope": "openid https://graph.example/Files.Read", "refresh": false],
            profile: ["scopes": ["openid", "files.read", "files.write"]])
        let result = try bench.enroll()
        #expect(result.status == 0 && result.error.contains("has not granted files.write: "), "\(result.said)")
        #expect(result.error.contains("sent no refresh token: the sign-in ends at 20"), "\(result.said)")
        #expect(result.error.contains("--scope offline_access"), "\(result.said)")
        let stored = try events(try bench.enroll("--events")).last
        #expect(stored?["missingScopes"] == "files.write" && stored?["renewable"] == "no", "\(result.said)")
    }

    @Test func anErrorOfTheDirectoryIsExplained() throws {
        let bench = try SignInSandbox(["error": "access_denied", "description": "AADSTS53003: Access is blocked."])
        let result = try bench.enroll()
        #expect(result.status == 1 && result.error.contains("hint: the organisation's access policy blocks"))
    }

    @Test func signingOutRemovesExactlyWhatTheProfileBrought() throws {
        let bench = try SignInSandbox(profile: ["sites": ["https://api.corp.example"], "name": "work"])
        try bench.sandbox.succeed("sites", "add", "https://own.corp.example")
        try bench.sandbox.succeed("credential", "set", "mine", "--token-stdin", input: "mine\n")
        #expect(try bench.enroll().status == 0)
        let result = try bench.sandbox.countersign("unenroll", "work")
        #expect(result.status == 0 && result.error.contains("\(bench.provider.issuer)/logout?"), "\(result.said)")
        #expect(
            bench.provider.requests.suffix(2) == ["POST /revoke refresh_token 200", "POST /revoke access_token 200"])
        let sites = try bench.sandbox.succeed("sites", "list", "--no-header")
        #expect(sites.contains("own.corp.example") && !sites.contains("api.corp.example"))
        let credentials = try bench.sandbox.succeed("credential", "list", "--no-header")
        #expect(credentials.contains("mine") && !credentials.contains("work"))
        #expect(try bench.status.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: bench.file("home/AllowedSites/signed-in.work.sites")))
        let again = try bench.sandbox.countersign("unenroll", "work")
        #expect(again.status == 1 && again.error.contains("there is no sign-in \"work\""), "\(again.said)")
    }

    @Test func aSignOutNeedsNoProvider() throws {
        let bench = try SignInSandbox()
        #expect(try bench.enroll().status == 0)
        try bench.provider.change(["fail": ["/revoke": 503]])
        let result = try bench.sandbox.countersign("unenroll")
        #expect(result.status == 0 && result.error.contains("the provider has not revoked the tokens"))
        #expect(try bench.status.isEmpty)
    }

    /// As glewlwyd does with clients without a password.
    @Test func aProviderThatRevokesForClientsWithAPasswordOnlyIsNamedSo() throws {
        let bench = try SignInSandbox()
        #expect(try bench.enroll().status == 0)
        try bench.provider.change(["fail": ["/revoke": 401]])
        let result = try bench.sandbox.countersign("unenroll")
        #expect(result.status == 0 && result.error.contains("wants a password of the client"), "\(result.said)")
        #expect(try bench.status.isEmpty)
    }

    @Test func aCodeIsEnteredOnAnotherDevice() throws {
        let bench = try SignInSandbox(["device": 2])
        let result = try bench.enroll("--user-agent", "device")
        #expect(result.status == 0 && result.error.contains("enter the code WDJB-MJHT"), "\(result.said)")
        #expect(result.error.contains("\(bench.provider.issuer)/enter\n"))
        let polls = bench.provider.requests.filter { $0.hasPrefix("POST /token") }
        #expect(polls.map { $0.suffix(3) } == ["400", "400", "200"])
        #expect(!FileManager.default.fileExists(atPath: bench.file("browser.arguments")))
    }

    @Test func aPushedRequestShowsNothingInTheURL() throws {
        let bench = try SignInSandbox(["push": true])
        let result = try bench.enroll()
        #expect(result.status == 0, "\(result.said)")
        let url = TextFile.lines(bench.file("browser.arguments")).last ?? ""
        #expect(url.contains("request_uri=") && !url.contains("state=") && !url.contains("code_challenge"))
    }

    @Test func aFormIsAccepted() throws {
        let bench = try SignInSandbox(
            profile: ["form_post": true],
            browser: """
                #!/bin/sh
                page=$(curl -sS --noproxy '*' "$1")
                action=$(echo "$page" | sed 's/.*action="\\([^"]*\\)".*/\\1/')
                fields=$(echo "$page" | grep -o 'name="[^"]*" value="[^"]*"' |
                    sed 's/name="\\([^"]*\\)" value="\\([^"]*\\)"/--data-urlencode \\1=\\2/')
                curl -sSL --noproxy '*' $fields "$action" > browser.seen 2>&1
                """)
        let result = try bench.enroll()
        #expect(result.status == 0, "\(result.said)\n\(TextFile.text(bench.file("browser.seen")))")
    }

    // MARK: Events

    private func events(_ result: CommandResult) throws -> [[String: String]] {
        try result.output.split(separator: "\n").map { line in
            try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String] ?? [:]
        }
    }

    /// Programs depend on these names and members.
    @Test func theProgressIsJSON() throws {
        let bench = try SignInSandbox()
        let result = try bench.enroll("--events", "--name", "work")
        let events = try events(result)
        try #require(events.compactMap { $0["event"] } == ["started", "page", "authorized", "finished", "stored"])
        #expect(events.first == ["event": "started", "issuer": bench.provider.issuer], "\(result.said)")
        #expect(events[1].keys.sorted() == ["event", "url"])
        #expect(events[1]["url"] == TextFile.lines(bench.file("browser.arguments")).last)
        #expect(events[2] == ["event": "authorized"] && events[3] == ["event": "finished"])
        let expires = try bench.status[0]["expires"] as? String
        #expect(
            events.last == [
                "event": "stored", "issuer": bench.provider.issuer, "name": "work", "account": "jdoe@acme.example",
                "expires": try #require(expires),
            ], "\(result.said)")
        #expect(!result.said.contains("canary"))
    }

    @Test func theCodeOfADeviceIsAnEvent() throws {
        let bench = try SignInSandbox()
        let result = try bench.enroll("--events", "--user-agent", "device")
        let events = try events(result)
        try #require(events.compactMap { $0["event"] } == ["started", "code", "finished", "stored"], "\(result.said)")
        let page = "\(bench.provider.issuer)/enter?user_code=WDJB-MJHT"
        #expect(events[1] == ["event": "code", "url": page, "code": "WDJB-MJHT"])
    }

    @Test func whatGoesWrongOnTheWayIsAnEvent() throws {
        let bench = try SignInSandbox(
            browser: """
                #!/bin/sh
                location=$(curl -sS --noproxy '*' -o /dev/null -w '%{redirect_url}' "$1")
                curl -sS --noproxy '*' -o /dev/null "${location%%\\?*}?code=evil&state=evil"
                curl -sS --noproxy '*' -o /dev/null "$location"
                """)
        let ignored = try events(try bench.enroll("--events"))
        let names = ["started", "page", "redirect-ignored", "authorized", "finished", "stored"]
        try #require(ignored.compactMap { $0["event"] } == names, "\(ignored)")
        #expect(ignored[2]["reason"]?.contains("does not belong to this sign-in") == true)
        #expect(ignored[2].keys.sorted() == ["event", "reason"])
        try bench.write(browser: "#!/bin/sh\nexit 1\n")
        let failed = try bench.enroll("--events", "--timeout", "20")
        #expect(failed.status == 1 && failed.error.contains("nobody has signed in"), "\(failed.said)")
        let shown = try events(failed)
        #expect(shown.compactMap { $0["event"] } == ["started", "page", "page-not-shown"], "\(failed.said)")
        #expect(shown.last?.keys.sorted() == ["event", "reason"])
    }

    // MARK: Refusals

    /// Each ends the sign-in with an error, and the earlier sign-in stays.
    @Test(
        arguments: [
            (["forge": "none"], "alg"), (["forge": "key"], "signature"), (["forge": "audience"], "another client"),
            (["forge": "nonce"], "nonce"), (["forge": "expired"], "expired"),
            (["redirect": ["iss": "https://evil.example"]], "another issuer"),
            (["redirect": ["iss": ""]], "does not name its issuer"), (["error": "access_denied"], "access_denied"),
            (["redirect": ["code": "wrong"]], "invalid_grant"), (["fail": ["/keys": 503]], "cannot answer now"),
            (["fail": ["/token": 500]], "cannot answer now"),
            (["fail": ["/.well-known/openid-configuration": 500]], "cannot answer now"),
            (["metadata": ["issuer": "https://evil.example"]], "issuer"),
            (["token": ["not a token"]], "forbidden character"),
        ] as [([String: any Sendable], String)])
    func aFaultOfTheProviderEndsTheSignIn(control: [String: any Sendable], reason: String) throws {
        let bench = try SignInSandbox()
        #expect(try bench.enroll().status == 0)
        let stored = try bench.stored
        #expect(stored.signIns.count == 1 && stored.tokens.count == 1)
        try bench.provider.change(control)
        let result = try bench.enroll()
        #expect(result.status == 1 && result.error.contains("countersign: error: "), "\(result.said)")
        #expect(result.error.contains(reason), "\(result.said)")
        #expect(!result.said.contains("canary"), "\(result.said)")
        let isSame = try bench.stored == stored
        #expect(isSame, "the stored tokens have changed")
    }

    /// A redirect with another state is refused, and the right one is still accepted.
    @Test func anotherProcessCannotEndTheSignIn() throws {
        let bench = try SignInSandbox(
            browser: """
                #!/bin/sh
                location=$(curl -sS --noproxy '*' -o /dev/null -w '%{redirect_url}' "$1")
                base=${location%%\\?*}
                for query in 'code=evil&state=evil' 'error=access_denied' 'code=evil' 'state=x&state=y&code=evil'; do
                    curl -sS --noproxy '*' -o /dev/null -w '%{http_code} ' "$base?$query"
                done > browser.seen
                curl -sS --noproxy '*' -o /dev/null -w '%{http_code}' "$location" >> browser.seen
                """)
        let result = try bench.enroll()
        #expect(result.status == 0, "\(result.said)")
        #expect(TextFile.text(bench.file("browser.seen")) == "400 400 400 400 303")
        #expect(result.error.contains("does not belong to this sign-in"))
    }

    @Test func nobodySignsIn() throws {
        let bench = try SignInSandbox(browser: "#!/bin/sh\nexit 0\n")
        let result = try bench.enroll("--timeout", "1")
        #expect(result.status == 1 && result.error.contains("nobody has signed in within 1 seconds"), "\(result.said)")
    }

    @Test func aMissingAgentIsAnErrorThatSaysWhatToInstall() throws {
        let bench = try SignInSandbox()
        let environment = ["BROWSER": "", "PATH": "/nowhere"]
        for (agent, hint) in [("system", "install xdg-utils"), ("system-private", "install chromium")] {
            let result = try bench.run(
                ["enroll", "profile.json", "--yes", "--user-agent", agent], environment: environment)
            #expect(result.status == 1 && result.error.contains(hint), "\(result.said)")
        }
        #expect(try bench.status.isEmpty)
    }

    @Test func nothingHappensWithoutConsent() throws {
        let bench = try SignInSandbox()
        let result = try bench.run(["enroll", "profile.json"])
        #expect(result.status == 1 && result.error.contains("there is no terminal to ask"), "\(result.said)")
        #expect(bench.provider.requests.isEmpty)
    }

    /// A full disk, or a folder that cannot be written, is noticed before the person signs in.
    @Test func aVaultThatCannotBeWrittenIsNoticedFirst() throws {
        let bench = try SignInSandbox()
        try bench.sandbox.succeed("credential", "set", "mine", "--token-stdin", input: "mine\n")
        let command = "ulimit -f 0; exec countersign enroll profile.json --yes"
        let result = try bench.sandbox.sh(command)
        #expect(result.status != 0, "\(result.said)")
        #expect(bench.provider.requests.isEmpty, "\(result.said)")
    }

    @Test func ctrlCEndsTheSignInAndChangesNothing() throws {
        let bench = try SignInSandbox(browser: "#!/bin/sh\necho yes > started\n")
        let child = try ChildProcess(
            try Sandbox.executable, ["enroll", "profile.json", "--yes"],
            environment: try bench.sandbox.environment(adding: bench.environment), folder: bench.sandbox.folder.path,
            capture: bench.file("enroll"))
        let hasStarted = poll { TextFile.lines(bench.file("started")).isEmpty ? nil : true }
        #expect(hasStarted == true, "\(child.errorOutput)")
        child.send(SIGINT)
        #expect(child.waitForExit() == 130, "\(child.errorOutput)")
        #expect(child.errorOutput.contains("the sign-in was cancelled; nothing was changed"))
        #expect(try bench.status.isEmpty)
    }

    /// Both get a port of their own, and the last one stays.
    @Test func twoSignInsAtOnceDoNotDisturbEachOther() throws {
        let bench = try SignInSandbox()
        let command = """
            countersign enroll profile.json --yes --name one & first=$!
            countersign enroll profile.json --yes --name two; second=$?
            wait $first && exit $second
            """
        let result = try Command.run(
            "/usr/bin/setsid", ["--wait", "/bin/sh", "-c", command],
            environment: try bench.sandbox.environment(adding: bench.environment), folder: bench.sandbox.folder.path,
            in: bench.sandbox.folder)
        #expect(result.status == 0, "\(result.said)")
        #expect(try bench.status.compactMap { $0["name"] as? String } == ["one", "two"])
    }

    // MARK: Profiles

    /// The beginning of a valid profile; the next column is 51.
    private static let start = "{\"issuer\": \"https://a.example\", \"client_id\": \"c\", "

    /// The error names the place of the fault.
    @Test(arguments: [
        (
            "{\n  \"issuerr\": \"https://a.example\"}",
            "2, column 3: \"issuerr\" is not a known key; did you mean \"issuer\"?"
        ),
        (
            "{\"issuer\": \"https://a.example\",\n   \"client_idd\": \"c\"}",
            "2, column 4: \"client_idd\" is not a known key; did you mean \"client_id\"?"
        ),
        ("{\"issuer\": \"https://a.example\"}", "1, column 1: the key \"client_id\" is missing"),
        ("{\n  \"issuer\": 1\n}", "2, column 13"), (Self.start + "\n \"scope\": []}", "did you mean \"scopes\"?"),
        ("{\"client_id\": \"c\",\n \"issuer\": \"http://a.example\"}", "2, column 12: \"issuer\" is not an address"),
        ("{\"issuer\": \"https://a.example\", \"client_id\":\n\"\"}", "2, column 1: the client identifier is empty"),
        (Self.start + "\n\"scopes\": [\"a\", \"b c\"]}", "2, column 17: \"b c\" is not a scope"),
        (Self.start + "\n\"resources\": [\"api\"]}", "2, column 15: the resource \"api\" is not an absolute URI"),
        (
            Self.start + "\n\"sites\": [\"b.example\",\n\"b.example credential=x\"]}",
            "3, column 1: \"sites\" must list sites"
        ),
        (Self.start + "\n\"redirect_uri\": \"ftp:/x\"}", "2, column 17: the redirect URI"),
        (Self.start + "\n\"redirect_uri\": \"http://b.example/\"}", "2, column 17: the redirect URI"),
        (
            Self.start + "\"parameters\": {\n \"state\": \"x\"}}",
            "2, column 2: the parameter \"state\" is set by the protocol"
        ),
        (Self.start + "\"token_parameters\": {\"code\": \"x\"}}", "1, column 72: the parameter \"code\" is set"),
        ("not JSON", "line 1"),
    ])
    func aFaultyProfileIsRefused(text: String, reason: String) throws {
        let sandbox = try Sandbox()
        try sandbox.folder.write("profile.json", text)
        let result = try sandbox.countersign("enroll", "profile.json", "--yes")
        #expect(result.status == 1 && result.error.contains("profile.json: line "), "\(result.said)")
        #expect(result.error.contains(reason), "\(result.said)")
    }

    @Test(arguments: [
        ("https://localhost:1/p.json", "https://localhost:1/p.json cannot be read: no connection to localhost, port 1"),
        ("https://corp.invalid/p.json", "https://corp.invalid/p.json cannot be read: corp.invalid has no IP address"),
        ("http://corp.example/p.json", "\"the profile's address\" is not an address that can be used: it is not https"),
    ])
    func anAddressWithoutAProfileIsNamed(address: String, reason: String) throws {
        let result = try Sandbox().countersign("enroll", address, "--yes")
        #expect(result.status == 1 && result.error.contains(reason), "\(result.said)")
        #expect(reason.contains("not https") || result.error.contains("pass the profile as a file"), "\(result.said)")
    }

    @Test func aBrowserCannotComeBackToACustomScheme() throws {
        let bench = try SignInSandbox(profile: ["redirect_uri": "com.example.app:/callback"])
        let result = try bench.enroll()
        #expect(result.status == 1 && result.error.contains("com.example.app:/callback is not on the loopback"))
        #expect(bench.provider.requests.isEmpty && !FileManager.default.fileExists(atPath: bench.file("home/vault")))
    }

    @Test func aSiteThatIsListedAlreadyIsNotTakenOver() throws {
        let bench = try SignInSandbox(profile: ["sites": ["https://api.corp.example"]])
        try bench.sandbox.succeed("sites", "add", "https://api.corp.example", "answer=basic")
        let result = try bench.enroll()
        #expect(result.status == 1 && result.error.contains("cannot be added to the list"), "\(result.said)")
        #expect(!bench.provider.requests.contains { $0.contains("/authorize") })
    }

    @Test func anotherCredentialIsNotTakenOver() throws {
        let bench = try SignInSandbox()
        try bench.sandbox.succeed("credential", "set", "127.0.0.1", "--token-stdin", input: "mine\n")
        let result = try bench.enroll()
        #expect(result.status == 1 && result.error.contains("exists and is no sign-in"), "\(result.said)")
        #expect(try bench.enroll("--name", "work").status == 0)
        let removal = try bench.sandbox.countersign("credential", "remove", "work")
        #expect(removal.status == 1 && removal.error.contains("countersign unenroll work"), "\(removal.said)")
    }
}
