// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Device management in the sign-in's window: the real web view on a virtual display, and a server for device
/// management whose pages are a script. One at a time, because each window needs up to five processes.
@Suite(.waiting, .serialized) struct EmbeddedDeviceTests {
    private static let token = ("X-Intune-AuthToken", "canary-install-token")
    private static let profile = MDMServer.Answer(
        200, type: "application/x-apple-aspen-config",
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict><key>PayloadType</key><string>Configuration</string>
        <key>PayloadVersion</key><integer>1</integer><key>PayloadIdentifier</key><string>example.test</string>
        <key>PayloadUUID</key><string>6E6A1F3C-1B5F-4C7E-9A41-0A5D8C2B7F01</string>
        <key>PayloadContent</key><array/></dict></plist>
        """)
    private let display: VirtualDisplay

    init() throws { display = try VirtualDisplay() }

    /// A provider that sends the first requests to `first`, where @MDM@ and @OTHER@ are the servers' origins.
    private func bench(
        _ mdm: MDMServer, first: [String], special: [String: any Sendable]? = [:]
    ) throws -> SignInSandbox {
        let first = first.map {
            $0.replacingOccurrences(of: "@MDM@", with: mdm.origin).replacingOccurrences(of: "@OTHER@", with: mdm.other)
        }
        var own: [String: any Sendable] = ["redirect_uri": "com.example.app:/callback", "name": "work"]
        if let special {
            own["special_urls"] = ["hosts": [mdm.host, mdm.otherHost]].merging(special) { _, new in new }
        }
        let bench = try SignInSandbox(["first": first], profile: own, isTLS: true)
        try bench.sandbox.succeed("trust", "anchor", "add", TestPKI.shared.originAnchor)
        return bench
    }

    private func enroll(_ bench: SignInSandbox, _ flags: String...) throws -> CommandResult {
        try bench.run(
            ["enroll", "profile.json", "--yes", "--events", "--user-agent", "embedded"] + flags,
            environment: display.windowEnvironment)
    }

    private func events(_ result: CommandResult) throws -> [String] {
        try result.output.split(separator: "\n").compactMap { line in
            let event = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String] ?? [:]
            guard let name = event["event"], !name.hasPrefix("load-") else { return nil }
            return name == "special-url" ? event["url"] : name
        }
    }

    /// The draft form: the profile's address and its token are in the headers of a redirect. The token reaches that
    /// address and nothing else. Nothing in the profile can be installed here, and the sign-in ends with that.
    @Test func thePagesOfferAProfileAndTheSignInEndsWithoutIt() throws {
        let mdm = try MDMServer([
            "/portal": [.page("Company portal", "<script>location = '/portal/done'</script>")],
            "/portal/done": [
                .redirect(to: "msauth://installProfile", [("X-Install-Url", "@MDM@/install"), Self.token])
            ],
            "/install": [.page("Install the profile", "<script>location = '/profile.mobileconfig'</script>")],
            "/profile.mobileconfig": [Self.profile],
        ])
        let bench = try bench(
            mdm, first: ["msauth://enroll?cpurl=@MDM@%2Fportal"],
            special: ["headers": ["X-Tenant": "corp"], "parameters": ["platform": "linux"]])
        let result = try enroll(bench)
        #expect(result.status == 1, "\(result.said)")
        #expect(result.said.contains("the configuration profile was not installed"), "\(result.said)")
        let seen = try events(result)
        #expect(
            seen.filter { !$0.hasPrefix("profile-") } == [
                "started", "page", "msauth://enroll", "msauth://installProfile", "second-window-opened",
                "second-window-closed",
            ], "\(result.said)")
        #expect(seen.contains("profile-not-installed"), "\(result.said)")
        let portal = mdm.requests("/portal")
        #expect(portal.map(\.target) == ["/portal?platform=linux"] && portal[0].fields["x-tenant"] == "corp")
        #expect(mdm.requests("/install").map { $0.fields["x-intune-authtoken"] } == [Self.token.1])
        #expect(mdm.requests("/profile.mobileconfig").count == 1)
        let others = mdm.requests.filter { $0.path != "/install" }
        #expect(
            others.allSatisfy {
                $0.fields["x-intune-authtoken"] == nil && ($0.path == "/portal" || $0.fields["x-tenant"] == nil)
            })
        #expect(!result.said.contains("canary"), "\(result.said)")
    }

    /// The person agrees on the terminal, but does not sign in, so nothing stays.
    @Test func aDeliveredProfileGoesWithAFailedSignIn() throws {
        let made = try TemporaryFolder("made")
        try MadeProfile.certificate("root", "/CN=Root", extensions: MadeProfile.authority, in: made)
        let file = try MadeProfile.write(
            "corp", [MadeProfile.anchor(made.file("root.pem"), "example.root")], in: made)
        let mdm = try MDMServer([
            "/portal": [.redirect(to: "msauth://installProfile", [("X-Install-Url", "@MDM@/install"), Self.token])],
            "/install": [.page("Install", "<script>location = '/profile.mobileconfig'</script>")],
            "/profile.mobileconfig": [
                MDMServer.Answer(200, type: "application/x-apple-aspen-config", TextFile.text(file))
            ],
        ])
        let bench = try bench(mdm, first: ["msauth://enroll?cpurl=@MDM@%2Fportal"])
        let terminal = try PseudoTerminal(
            [
                try Sandbox.executable, "enroll", bench.file("profile.json"), "--yes", "--user-agent", "embedded",
                "--timeout", "45",
            ],
            environment: try bench.sandbox.environment(adding: display.windowEnvironment))
        try terminal.when("Install the profile from \(mdm.host)?", type: "yes\r")
        try terminal.waits(for: "profile \"Corp\" installed")
        #expect(try bench.sandbox.succeed("profile", "list").contains("example.corp"))
        #expect(terminal.waitForExit() == 1, "\(terminal.screen)")
        #expect(terminal.screen.contains("was removed, because the sign-in has failed"), "\(terminal.screen)")
        #expect(try !bench.sandbox.succeed("profile", "list").contains("example.corp"))
    }

    /// The person agrees, the page goes on, and the sign-in succeeds with the items of the profile.
    @Test func aDeliveredProfileStaysWithTheSignIn() throws {
        let made = try TemporaryFolder("made")
        try MadeProfile.certificate("root", "/CN=Root", extensions: MadeProfile.authority, in: made)
        let file = try MadeProfile.write(
            "corp", [MadeProfile.anchor(made.file("root.pem"), "example.root")], in: made)
        let mdm = try MDMServer([
            "/portal": [.redirect(to: "msauth://installProfile", [("X-Install-Url", "@MDM@/install"), Self.token])],
            // It goes on by itself, when the profile has been delivered also on a busy machine: going on earlier would
            // cancel that.
            "/install": [
                .page(
                    "Install",
                    """
                    <script>
                    const begin = performance.now()
                    fetch('/profile.mobileconfig').then(response => response.text()).then(() => {
                        const time = performance.now() - begin
                        location = '/profile.mobileconfig'
                        setTimeout(() => { location = 'msauth://profileInstalled' }, 2000 + 10 * time)
                    })
                    </script>
                    """)
            ],
            "/profile.mobileconfig": [
                MDMServer.Answer(200, type: "application/x-apple-aspen-config", TextFile.text(file))
            ],
        ])
        let bench = try bench(mdm, first: ["msauth://enroll?cpurl=@MDM@%2Fportal"])
        let terminal = try PseudoTerminal(
            [
                try Sandbox.executable, "enroll", bench.file("profile.json"), "--yes", "--user-agent", "embedded",
            ],
            environment: try bench.sandbox.environment(adding: display.windowEnvironment))
        try terminal.when("Install the profile from \(mdm.host)?", type: "yes\r")
        #expect(terminal.waitForExit() == 0, "\(terminal.screen)")
        #expect(terminal.screen.contains("profile \"Corp\" installed"), "\(terminal.screen)")
        #expect(terminal.screen.contains("signed in as jdoe@acme.example"), "\(terminal.screen)")
        #expect(try bench.sandbox.succeed("profile", "list").contains("example.corp"))
        let anchors = try FileManager.default.contentsOfDirectory(atPath: bench.file("home/Certs/anchors"))
        let root = TextFile.text(made.file("root.pem")).trimmingCharacters(in: .whitespacesAndNewlines)
        func anchorsOfTheProfile() -> [String] {
            anchors.filter { TextFile.text(bench.file("home/Certs/anchors/\($0)")).contains(root) }
        }
        #expect(anchorsOfTheProfile().count == 1, "\(anchors)")
        #expect(try bench.status.first?["account"] as? String == "jdoe@acme.example")
        // It belongs to the sign-in.
        try bench.sandbox.succeed("unenroll", "work")
        #expect(try !bench.sandbox.succeed("profile", "list").contains("example.corp"))
        #expect(anchorsOfTheProfile().isEmpty && !terminal.screen.contains("canary"), "\(anchors)")
    }

    /// The terminal asks, and the person ends the whole sign-in.
    @Test func controlCEndsTheSignInWhileAProfileIsAskedAbout() throws {
        let made = try TemporaryFolder("made")
        try MadeProfile.certificate("root", "/CN=Root", extensions: MadeProfile.authority, in: made)
        let file = try MadeProfile.write(
            "corp", [MadeProfile.anchor(made.file("root.pem"), "example.root")], in: made)
        let mdm = try MDMServer([
            "/portal": [.redirect(to: "msauth://installProfile", [("X-Install-Url", "@MDM@/install"), Self.token])],
            "/install": [.page("Install", "<script>location = '/profile.mobileconfig'</script>")],
            "/profile.mobileconfig": [
                MDMServer.Answer(200, type: "application/x-apple-aspen-config", TextFile.text(file))
            ],
        ])
        let bench = try bench(mdm, first: ["msauth://enroll?cpurl=@MDM@%2Fportal"])
        let terminal = try PseudoTerminal(
            [
                try Sandbox.executable, "enroll", bench.file("profile.json"), "--yes", "--user-agent", "embedded",
            ],
            environment: try bench.sandbox.environment(adding: display.windowEnvironment))
        try terminal.when("Install the profile from \(mdm.host)?", type: "\u{3}")
        #expect(terminal.waitForExit() == 130, "\(terminal.screen)")
        #expect(terminal.screen.contains("the sign-in was cancelled; nothing was changed"), "\(terminal.screen)")
        #expect(try !bench.sandbox.succeed("profile", "list").contains("example.corp"))
    }

    /// WebKit's would.
    @Test func theTokenDoesNotFollowARedirect() throws {
        let mdm = try MDMServer([
            "/portal": [.redirect(to: "msauth://installProfile", [("x-install-url", "@MDM@/install"), Self.token])],
            "/install": [.redirect(to: "@MDM@/next")], "/next": [.redirect(to: "@OTHER@/record")],
            "/record": [.page("Elsewhere", "<script>location = 'msauth://profileComplete'</script>")],
        ])
        let bench = try bench(mdm, first: ["msauth://compliance?cpurl=@MDM@%2Fportal"])
        let result = try enroll(bench)
        #expect(result.status == 0, "\(result.said)")
        #expect(mdm.requests("/install").map { $0.fields["x-intune-authtoken"] } == [Self.token.1])
        #expect(mdm.requests("/next").map { $0.fields["x-intune-authtoken"] } == [nil])
        let record = mdm.requests("/record")
        #expect(!record.isEmpty && record.allSatisfy { $0.origin == "other" })
        #expect(record.allSatisfy { $0.fields["x-intune-authtoken"] == nil }, "\(record)")
    }

    /// The form that ships: other parameters, a hand-off by headers, and an end that the provider reports.
    @Test func theShippedFormEnrolsTheDevice() throws {
        let prefix = "x-ms-aswebauth-handoff-"
        let mdm = try MDMServer([
            "/enroll": [
                .page(
                    "Enrolment", "<p>A second window shows the profile.</p>",
                    [
                        ("\(prefix)url", "@MDM@/install"), ("\(prefix)purpose", "download-profile"),
                        ("\(prefix)include-headers", "true"), ("\(prefix)attach-headers", "\(prefix)token"),
                        ("\(prefix)token", "canary-handoff"),
                    ])
            ],
            "/install": [
                MDMServer.Answer.redirect(
                    to: "msauth://profile_download_complete?continueUrl=@MDM@%2Fcontinue&intuneDeviceId=device-1")
            ],
            "/continue": [.redirect(to: "msauth://enroll?intuneRedirectUrl=@MDM@%2Fagain")],
            "/again": [.redirect(to: "msauth://compliance_status?status=4")],
        ])
        let bench = try bench(
            mdm, first: ["msauth://enroll?intuneRedirectUrl=@MDM@%2Fenroll&a=b"],
            special: ["handoff_hosts": [mdm.host]])
        let result = try enroll(bench)
        #expect(result.status == 0, "\(result.said)")
        #expect(
            try events(result) == [
                "started", "page", "msauth://enroll", "second-window-opened", "second-window-closed",
                "msauth://profile_download_complete", "msauth://enroll", "msauth://compliance_status", "authorized",
                "finished", "stored",
            ], "\(result.said)")
        #expect(mdm.requests("/enroll").map(\.target) == ["/enroll?in-app=true&webauthn=1&a=b"])
        #expect(mdm.requests("/again").map(\.target) == ["/again?in-app=true&webauthn=1&intuneDeviceId=device-1"])
        #expect(mdm.requests("/install").map { $0.fields["\(prefix)token"] } == ["canary-handoff"])
        #expect(mdm.requests.filter { $0.path != "/install" }.allSatisfy { $0.fields["\(prefix)token"] == nil })
        #expect(!result.said.contains("canary"), "\(result.said)")
    }

    /// The provider wants it, and the field still goes with the first request only.
    @Test func aSecondWindowCanShareTheSessionOfTheFirst() throws {
        let prefix = "x-ms-aswebauth-handoff-"
        let mdm = try MDMServer([
            "/enroll": [
                .page(
                    "Enrolment", "",
                    [
                        ("Set-Cookie", "first=1; Secure; Path=/"), ("Set-Cookie", "gone=1; Secure; Path=/"),
                        ("\(prefix)url", "@MDM@/check"), ("\(prefix)use-ephemeral-session", "false"),
                        ("\(prefix)include-headers", "true"), ("\(prefix)attach-headers", "\(prefix)token"),
                        ("\(prefix)token", "canary-handoff"),
                    ])
            ],
            "/check": [
                .redirect(
                    to: "@MDM@/done",
                    [
                        ("Set-Cookie", "second=2; Secure; HttpOnly; Path=/"),
                        ("Set-Cookie", "gone=; Secure; Path=/; Max-Age=0"),
                    ])
            ],
            "/done": [.redirect(to: "msauth://profile_download_complete?continueUrl=@MDM@%2Fcontinue")],
            "/continue": [.redirect(to: "msauth://compliance_status?status=4")],
        ])
        let result = try enroll(
            bench(
                mdm, first: ["msauth://enroll?intuneRedirectUrl=@MDM@%2Fenroll"], special: ["handoff_hosts": [mdm.host]]
            ))
        #expect(result.status == 0, "\(result.said)")
        func cookies(_ path: String) -> [[String]] {
            mdm.requests(path).map { ($0.fields["cookie"] ?? "").components(separatedBy: "; ").sorted() }
        }
        #expect(cookies("/check") == [["first=1", "gone=1"]])
        #expect(cookies("/continue") == [["first=1", "second=2"]])
        #expect(mdm.requests("/check").map { $0.fields["\(prefix)token"] } == ["canary-handoff"])
        #expect(mdm.requests("/done").map { $0.fields["\(prefix)token"] } == [nil])
        #expect(!result.said.contains("canary"), "\(result.said)")
    }

    /// In each way that a page has.
    @Test(
        arguments: [
            "<script>location = 'TARGET'</script>",
            "<a href='TARGET'>go</a><script>document.querySelector('a').click()</script>",
            "<form method=post action='TARGET'></form><script>document.forms[0].submit()</script>",
            "<script>window.open('TARGET')</script>",
            "<meta http-equiv=refresh content='0; url=TARGET'>",
        ])
    func aPageOpensThemInEveryWay(body: String) throws {
        let target = "msauth://compliance?cpurl=@MDM@%2Fportal"
        let mdm = try MDMServer([
            "/start": [.page("Start", body.replacingOccurrences(of: "TARGET", with: target))],
            "/portal": [.redirect(to: "msauth://profileComplete")],
        ])
        let result = try enroll(bench(mdm, first: ["@MDM@/start"]))
        #expect(result.status == 0, "\(result.said)")
        #expect(mdm.requests("/portal").count == 1, "\(result.said)")
    }

    /// A frame of the page loads none, whether it is of the same origin or of another one.
    @Test func aFrameCannotOpenThem() throws {
        let mdm = try MDMServer([
            "/start": [
                .page(
                    "Start",
                    """
                    <iframe src="msauth://wpj?username=a"></iframe><iframe src="@MDM@/frame"></iframe>
                    <object data="msauth://wpj?username=c"></object><embed src="msauth://wpj?username=d">
                    <object data="@MDM@/object"></object>
                    <iframe src="@OTHER@/frame"></iframe>
                    <script>setTimeout(() => { location = 'msauth://compliance?cpurl=@MDM@%2Fportal' }, 1500)</script>
                    """)
            ],
            "/frame": [.redirect(to: "msauth://wpj?username=b")],
            "/object": [.redirect(to: "msauth://wpj?username=e")],
            "/portal": [.redirect(to: "msauth://profileComplete")],
        ])
        let result = try enroll(bench(mdm, first: ["@MDM@/start"]))
        #expect(result.status == 0, "\(result.said)")
        let seen = try events(result)
        #expect(mdm.requests("/frame").count == 2 && !seen.contains("msauth://wpj"), "\(result.said)")
    }

    /// The headers of the page's subresources do not count.
    @Test func partsOfAPageDoNotChangeItsHeaders() throws {
        let wrong = [("X-Install-Url", "@MDM@/wrong"), ("X-Intune-AuthToken", "wrong")]
        let mdm = try MDMServer([
            "/portal": [
                .page(
                    "Portal",
                    """
                    <img src="/part"><iframe src="/frame"></iframe>
                    <script>
                    onload = async () => { await fetch('/data'); location = 'msauth://installProfile' }
                    </script>
                    """, [("X-Install-Url", "@MDM@/install"), Self.token])
            ],
            "/part": [MDMServer.Answer(404, wrong)], "/frame": [.page("Frame", "", wrong)],
            "/data": [MDMServer.Answer(200, wrong, type: "text/plain", "x")],
            "/install": [.redirect(to: "msauth://profileInstalled")],
        ])
        let result = try enroll(bench(mdm, first: ["msauth://enroll?cpurl=@MDM@%2Fportal"]))
        #expect(result.status == 0, "\(result.said)")
        #expect(mdm.requests("/frame").count == 1 && mdm.requests("/data").count == 1)
        #expect(mdm.requests("/install").map { $0.fields["x-intune-authtoken"] } == [Self.token.1])
        #expect(mdm.requests("/wrong").isEmpty)
    }

    @Test(
        arguments: [
            (
                "msauth://installProfile?url=https%3A%2F%2Fevil.example%2F&requireASWebAuthenticationSession=true",
                "evil.example"
            ),
            ("msauth://enroll?cpurl=https%3A%2F%2Fevil.example%2F", "evil.example"),
            ("msauth://enroll?cpurl=http%3A%2F%2Fmdm.test.localhost%2F", "cpurl"),
            ("msauth://enroll?cpurl=@MDM@%2Fa&cpurl=@MDM@%2Fb", "more than one"),
            ("msauth://upgradeReg", "stronger registration"),
        ])
    func aHostilePageEndsTheSignIn(url: String, reason: String) throws {
        let mdm = try MDMServer([:])
        let bench = try bench(mdm, first: [url])
        let result = try enroll(bench)
        #expect(result.status == 1 && result.error.contains(reason), "\(result.said)")
        #expect(mdm.requests.isEmpty)
        #expect(try bench.status.isEmpty)
    }

    /// 64 KiB in one field: the response itself is refused, or the field is ignored; the token is not sent.
    @Test func aFieldOf64KiBDoesNotReachTheSecondWindow() throws {
        let mdm = try MDMServer([
            "/portal": [.redirect(to: "msauth://installProfile", [("X-Install-Url", "@MDM@/@LONG@"), Self.token])],
            "/install": [.redirect(to: "msauth://profileInstalled")],
        ])
        let bench = try bench(mdm, first: ["msauth://enroll?cpurl=@MDM@%2Fportal"])
        let result = try bench.run(
            ["enroll", "profile.json", "--yes", "--events", "--user-agent", "embedded", "--timeout", "15"],
            environment: display.windowEnvironment)
        #expect(result.status == 1, "\(result.said)")
        #expect(mdm.requests.map(\.path) == ["/portal"] && !result.said.contains("xxxx"), "\(result.said)")
    }

    @Test func withoutTheSwitchNothingHappens() throws {
        let mdm = try MDMServer(["/portal": [.redirect(to: "msauth://profileComplete")]])
        let enroll = "msauth://enroll?cpurl=@MDM@%2Fportal"
        let off = try bench(mdm, first: [enroll], special: nil)
        let refused = try off.run(
            ["enroll", "profile.json", "--yes", "--events", "--user-agent", "embedded", "--timeout", "10"],
            environment: display.windowEnvironment)
        #expect(refused.status == 1 && refused.output.contains("it is for device enrolment"), "\(refused.said)")
        #expect(mdm.requests.isEmpty)
        // The switch permits them, on the hosts of the sign-in only.
        let on = try bench(mdm, first: [enroll], special: nil)
        let result = try self.enroll(on, "--special-urls")
        #expect(result.status == 1 && result.error.contains("is not one of the profile's hosts"), "\(result.said)")
    }

    @Test func anotherUserAgentIsWarnedAbout() throws {
        let bench = try SignInSandbox(profile: ["special_urls": ["hosts": ["mdm.example"]]])
        let result = try bench.enroll("--user-agent", "system")
        #expect(result.status == 0 && result.error.contains("only the user agent embedded"), "\(result.said)")
    }
}
