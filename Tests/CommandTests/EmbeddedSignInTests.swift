// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `countersign enroll --user-agent embedded` with the real web view, on a virtual display. One at a time, because each
/// window needs up to five processes.
@Suite(.waiting, .serialized) struct EmbeddedSignInTests {
    private static let scheme = "com.example.app:/callback"
    private let display: VirtualDisplay

    init() throws { display = try VirtualDisplay() }

    private func environment(_ own: [String: String] = [:]) throws -> [String: String] {
        try display.windowEnvironment.merging(own) { _, new in new }
    }

    private func enroll(_ bench: SignInSandbox, _ flags: String...) throws -> CommandResult {
        try bench.run(
            ["enroll", "profile.json", "--yes", "--user-agent", "embedded"] + flags, environment: environment())
    }

    private func events(_ result: CommandResult) throws -> [[String: String]] {
        try result.output.split(separator: "\n").map { line in
            try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String] ?? [:]
        }
    }

    @Test(arguments: [scheme, "https://app.example/callback", "http://127.0.0.1/callback"])
    func theWindowSignsInWithEveryKindOfRedirect(uri: String) throws {
        let bench = try SignInSandbox(profile: ["redirect_uri": uri])
        let result = try enroll(bench, "--events")
        #expect(result.status == 0, "\(result.said)")
        let events = try events(result)
        #expect(
            events.compactMap { $0["event"] }.filter { !$0.hasPrefix("load-") } == [
                "started", "page", "authorized", "finished", "stored",
            ], "\(result.said)")
        #expect(events.contains(["event": "load-started", "url": "\(bench.provider.issuer)/authorize"]))
        #expect(try bench.status.first?["account"] as? String == "jdoe@acme.example")
        #expect(!result.said.contains("canary") && !result.error.contains("code="), "\(result.said)")
    }

    @Test func noProgramStaysOnTheDisplay() throws {
        let result = try enroll(SignInSandbox(profile: ["redirect_uri": Self.scheme]))
        #expect(result.status == 0, "\(result.said)")
        #expect(poll { display.programs.isEmpty ? true : nil } == true, "\(display.programs)")
    }

    /// The window's requests go through a proxy of the command's own, which answers the challenge.
    @Test func aSignInPageBehindBasicIsShownWithoutAPrompt() throws {
        let bench = try SignInSandbox(
            ["basic": "jdoe:secret-basic"], profile: ["redirect_uri": Self.scheme], isTLS: true)
        try bench.sandbox.succeed("trust", "anchor", "add", TestPKI.shared.originAnchor)
        try bench.sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "secret-basic\n")
        try bench.sandbox.succeed("sites", "add", bench.provider.issuer, "answer=basic")
        let result = try enroll(bench)
        #expect(result.status == 0 && result.output.contains("signed in as jdoe@acme.example"), "\(result.said)")
        let pages = bench.provider.requests.filter { $0.hasPrefix("GET /authorize") }
        #expect(pages == ["GET /authorize 401", "GET /authorize 302"])
        #expect(!result.said.contains("secret-basic"), "\(result.said)")
    }

    /// The window shows the server's response without authentication, and does not ask for a password.
    @Test func aSignInPageOfAnUnlistedSiteIsNotAnswered() throws {
        let bench = try SignInSandbox(
            ["basic": "jdoe:secret-basic"], profile: ["redirect_uri": Self.scheme], isTLS: true)
        try bench.sandbox.succeed("trust", "anchor", "add", TestPKI.shared.originAnchor)
        try bench.sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "secret-basic\n")
        let result = try enroll(bench, "--timeout", "20", "--events")
        #expect(result.status == 1 && result.error.contains("nobody has signed in within 20 seconds"), "\(result.said)")
        #expect(try events(result).contains { $0["event"] == "load-finished" }, "\(result.said)")
        #expect(bench.provider.requests.filter { $0.hasPrefix("GET /authorize") } == ["GET /authorize 401"])
    }

    /// A running server has the vault open: it stores the window's cookies, and its proxy adds them.
    @Test func theSessionIsSharedThroughARunningServer() throws {
        let session: [String: any Sendable] = [
            "group": "corp", "host": "provider.test.localhost", "cookies": ["sid"],
        ]
        let bench = try SignInSandbox(
            ["session": "sid", "typed": "hunter2"], profile: ["redirect_uri": Self.scheme, "session": session],
            isTLS: true)
        try bench.sandbox.succeed("trust", "anchor", "add", TestPKI.shared.originAnchor)
        let server = try bench.serveWithPassphrase()
        defer { server.send(SIGTERM) }
        for _ in 1...2 {
            let result = try enroll(bench)
            #expect(result.status == 0, "\(result.said)")
            #expect(bench.provider.requests.count { $0.hasPrefix("POST /password") } == 1, "\(result.said)")
        }
        #expect(try bench.sandbox.succeed("session", "list").contains("corp"))
        #expect(!server.errorOutput.contains("canary"), "\(server.errorOutput)")
        // Without the server, the vault needs its passphrase.
        server.send(SIGTERM)
        #expect(server.waitForExit() == 0)
        #expect(try enroll(bench).error.contains("the vault needs its passphrase"))
    }

    @Test func aNavigationToAnotherHostIsRefusedAndReported() throws {
        let page = """
            <script>
            setTimeout(() => { location = 'https://evil.example/?secret' }, 100);
            setTimeout(() => { location = 'REDIRECT' }, 1000);
            </script>
            """
        let bench = try SignInSandbox(["page": page], profile: ["redirect_uri": Self.scheme])
        let result = try enroll(bench, "--events")
        #expect(result.status == 0, "\(result.said)")
        #expect(
            try events(result).contains([
                "event": "navigation-refused", "url": "https://evil.example/",
                "reason": "it is not one of the profile's hosts",
            ]), "\(result.said)")
    }

    /// The proxy cannot reach the page's server; the window and the end of the sign-in say so.
    @Test func aPageThatCannotBeReachedIsReported() throws {
        let port = try Loopback.freePorts(1)[0]
        let page = "https://provider.test.localhost:\(port)/next"
        let bench = try SignInSandbox(
            ["page": "<script>location = '\(page)?secret'</script>"],
            profile: ["redirect_uri": Self.scheme, "navigation_hosts": ["provider.test.localhost:\(port)"]],
            isTLS: true)
        try bench.sandbox.succeed("trust", "anchor", "add", TestPKI.shared.originAnchor)
        let result = try enroll(bench, "--timeout", "15", "--events")
        let reason = "provider.test.localhost:\(port): connection refused"
        #expect(
            try events(result).contains(["event": "load-failed", "url": page, "reason": reason]), "\(result.said)")
        #expect(result.status == 1 && result.error.contains("before that, \(page) could not be loaded: \(reason)"))
    }

    @Test func theEndNamesTheOptionForARefusedSpecialURL() throws {
        let bench = try SignInSandbox(
            ["page": "<script>location = 'msauth://enroll?cpurl=https://mdm.example/'</script>"],
            profile: ["redirect_uri": Self.scheme])
        let result = try enroll(bench, "--timeout", "8")
        let last = result.error.components(separatedBy: "error: ").last ?? ""
        #expect(
            result.status == 1 && last.contains("msauth://enroll") && last.contains("--special-urls"), "\(result.said)")
    }

    @Test func aRedirectOfAnotherSignInIsIgnored() throws {
        let page = """
            <script>
            setTimeout(() => { location = '\(Self.scheme)?code=evil&state=evil' }, 100);
            setTimeout(() => { location = 'REDIRECT' }, 1000);
            </script>
            """
        let bench = try SignInSandbox(["page": page], profile: ["redirect_uri": Self.scheme])
        let result = try enroll(bench)
        #expect(result.status == 0 && result.error.contains("does not belong to this sign-in"), "\(result.said)")
    }

    @Test func theEndOfTheSignInHasItsOwnSentence() throws {
        let bench = try SignInSandbox(["page": "<h1>Sign in</h1>"], profile: ["redirect_uri": Self.scheme])
        let late = try enroll(bench, "--timeout", "3")
        #expect(late.status == 1 && late.error.contains("nobody has signed in within 3 seconds"), "\(late.said)")
        for (end, status, sentence) in [
            ("window", Int32(1), "the window was closed before the sign-in was complete; nothing was changed"),
            ("interrupt", 130, "the sign-in was cancelled; nothing was changed"),
        ] {
            let child = try ChildProcess(
                try Sandbox.executable, ["enroll", "profile.json", "--yes", "--user-agent", "embedded", "--events"],
                environment: try bench.sandbox.environment(adding: environment()), folder: bench.sandbox.folder.path,
                capture: bench.file(end))
            let isShown = poll { child.output.contains("load-finished") ? true : nil }
            #expect(isShown == true, "\(child.output)\(child.errorOutput)")
            if end == "window" {
                let closer = try Command.run(
                    "/usr/bin/python3",
                    ["\(Tool.repository)/WebView/Tests/WebViewTests/Servers/close_window.py", "Sign in at 127.0.0.1"],
                    environment: ["DISPLAY": display.name], in: bench.sandbox.folder)
                #expect(closer.status == 0, "\(closer.said)")
            } else {
                child.send(SIGINT)
            }
            #expect(child.waitForExit() == status, "\(child.errorOutput)")
            #expect(child.errorOutput.contains(sentence), "\(child.errorOutput)")
        }
        #expect(try bench.status.isEmpty)
    }

    // MARK: Page messages

    /// Asks for a name, a password and a choice, and goes on if the answer is right.
    private static let question = """
        <script>
        const callbacks = [
          {type: 'NameCallback', output: [{name: 'prompt', value: 'User\\u001b[31m name'}],
           input: [{name: 'IDToken1', value: ''}]},
          {type: 'PasswordCallback', output: [{name: 'prompt', value: 'Password'}], input: []}];
        addEventListener('load', async () => {
          const answer = JSON.parse(await window.webkit.messageHandlers.callback.postMessage(
            JSON.stringify({authId: 'x', callbacks})));
          const typed = (answer.callbacks || []).map(callback => callback.input[0].value).join();
          if (typed == 'jdoe,secret-typed') location = 'REDIRECT';
        });
        </script>
        """

    private func terminal(_ bench: SignInSandbox) throws -> PseudoTerminal {
        try PseudoTerminal(
            [try Sandbox.executable, "enroll", bench.file("profile.json"), "--user-agent", "embedded", "--yes"],
            environment: try bench.sandbox.environment(adding: environment()))
    }

    @Test func thePersonAnswersThePagesQuestions() throws {
        let bench = try SignInSandbox(
            ["page": Self.question],
            profile: [
                "redirect_uri": Self.scheme, "page_messages": ["types": ["NameCallback", "PasswordCallback"]],
            ])
        let terminal = try terminal(bench)
        try terminal.when("NameCallback: User [31m name: ", type: "jdoe\n")
        try terminal.waits(for: "PasswordCallback: Password: ")
        #expect(!terminal.echoes)
        try terminal.when("PasswordCallback: Password: ", type: "secret-typed\n")
        #expect(terminal.waitForExit() == 0, "\(terminal.screen)")
        #expect(!terminal.screen.contains("secret-typed"), "\(terminal.screen)")
    }

    @Test func aQuestionThatIsNotAnsweredEndsTheSignIn() throws {
        let bench = try SignInSandbox(
            ["page": Self.question],
            profile: [
                "redirect_uri": Self.scheme, "page_messages": ["types": ["NameCallback", "PasswordCallback"]],
            ])
        let terminal = try terminal(bench)
        try terminal.when("NameCallback: ", type: "\u{4}")
        #expect(terminal.waitForExit() == 1, "\(terminal.screen)")
        #expect(terminal.screen.contains("the sign-in was cancelled"), "\(terminal.screen)")
        let alone = try enroll(bench)
        #expect(alone.status == 1 && alone.error.contains("there is no terminal to answer it"), "\(alone.said)")
    }

    /// A page that the profile does not permit to ask, or a type that it does not name, does not reach the person.
    @Test func messagesNeedTheProfilesPermission() throws {
        let page = """
            <script>
            addEventListener('load', async () => {
              const handler = window.webkit?.messageHandlers?.callback;
              const answer = handler ? await handler.postMessage(JSON.stringify({callbacks: [{type: 'X'}]})) : 'none';
              if (answer.includes('EXPECTED')) location = 'REDIRECT';
            });
            </script>
            """
        let rules: [String: any Sendable] = ["page_messages": ["types": ["NameCallback"]]]
        for (profile, expected) in [([:], "none"), (rules, "unsupportedType")] as [([String: any Sendable], String)] {
            let bench = try SignInSandbox(
                ["page": page.replacing("EXPECTED", with: expected)],
                profile: profile.merging(["redirect_uri": Self.scheme]) { _, new in new })
            let result = try enroll(bench)
            #expect(result.status == 0, "\(result.said)")
        }
    }
}
