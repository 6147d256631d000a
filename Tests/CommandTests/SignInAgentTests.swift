// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// The ways in which a person gets to the provider's pages and back.
@Suite(.waiting) struct SignInAgentTests {
    /// Chromium without a display.
    private static let chromium = "#!/bin/sh\nexec /usr/bin/chromium --headless --no-sandbox --disable-gpu \"$@\"\n"

    private func write(program name: String, _ text: String, in bench: SignInSandbox) throws -> String {
        try bench.sandbox.folder.write(program: "bin/\(name)", text)
    }

    @Test func chromiumSignsInAndShowsThatItsWindowCanBeClosed() throws {
        let bench = try SignInSandbox()
        let browser = try write(program: "browser", Self.chromium, in: bench)
        let page = bench.file("page")
        let script = "#!/bin/sh\nexec \(browser) --dump-dom --user-data-dir=\(bench.file("user")) \"$1\" > \(page)\n"
        let result = try bench.enroll(environment: ["BROWSER": try write(program: "dump", script, in: bench)])
        #expect(result.status == 0, "\(result.said)")
        let shown = poll { TextFile.text(page).contains("You can close this window") ? true : nil }
        #expect(shown == true, "\(TextFile.text(page))")
    }

    @Test func aPrivateWindowHasAProfileThatIsDeleted() throws {
        let bench = try SignInSandbox()
        let path = try write(
            program: "chromium", "#!/bin/sh\necho \"$@\" > \(bench.file("words"))\n" + Self.chromium.dropFirst(10),
            in: bench)
        let temporary = bench.file("temporary")
        try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: false)
        let folder = (path as NSString).deletingLastPathComponent
        let result = try bench.enroll(
            "--user-agent", "system-private", environment: ["PATH": "\(folder):/usr/bin:/bin", "TMPDIR": temporary])
        #expect(result.status == 0, "\(result.said)")
        let words = TextFile.text(bench.file("words"))
        #expect(words.contains("--incognito") && words.contains("--user-data-dir=\(temporary)/"), "\(words)")
        let left = try FileManager.default.contentsOfDirectory(atPath: temporary)
            .filter { $0.hasPrefix("countersign-browser-") }
        #expect(left.isEmpty)
    }

    /// The next command is tried if one fails, as `xdg-open` does without a browser.
    @Test func aBrowserThatFailsIsFollowedByTheNext() throws {
        let bench = try SignInSandbox()
        let failing = try write(program: "failing", "#!/bin/sh\nexit 3\n", in: bench)
        let result = try bench.enroll(environment: ["BROWSER": "\(failing):\(bench.file("browser")) %s"])
        #expect(result.status == 0, "\(result.said)")
        #expect(TextFile.lines(bench.file("browser.arguments")).first == "1")
    }

    @Test func theAddressMayBePasted() throws {
        let bench = try SignInSandbox(browser: "#!/bin/sh\nexit 0\n")
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "enroll", bench.file("profile.json")],
            environment: try bench.sandbox.environment(adding: bench.environment))
        try terminal.when("Sign in? [y/N] ", type: "y\n")
        try terminal.waits(for: "paste the address")
        let lines = terminal.screen.split(whereSeparator: \.isNewline)
        let page = try #require(lines.first { $0.hasPrefix("\(bench.provider.issuer)/authorize?") })
        let location = try Command.run(
            Tool.path("curl"), ["-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{redirect_url}", String(page)],
            in: bench.sandbox.folder
        ).output
        try terminal.when("paste the address", type: "https://evil.example/?code=x\n")
        try terminal.when("the URL is not one of", type: "\(location)\n")
        #expect(terminal.waitForExit() == 0, "\(terminal.screen)")
        #expect(terminal.screen.contains("signed in as jdoe@acme.example"))
    }

    /// No browser shows the response that led to it, so nothing says that it comes from the organisation.
    @Test func aSpecialURLThatIsPastedIsNotFollowed() throws {
        let bench = try SignInSandbox(
            ["first": ["msauth://enroll?cpurl=https://mdm.example/"]],
            profile: ["special_urls": ["hosts": ["mdm.example"]]], browser: "#!/bin/sh\nexit 0\n")
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "enroll", bench.file("profile.json"), "--yes", "--user-agent", "system"],
            environment: try bench.sandbox.environment(adding: bench.environment))
        try terminal.waits(for: "paste the address")
        #expect(terminal.screen.contains("only the user agent embedded"), "\(terminal.screen)")
        let lines = terminal.screen.split(whereSeparator: \.isNewline)
        let page = try #require(lines.first { $0.hasPrefix("\(bench.provider.issuer)/authorize?") })
        func location() throws -> String {
            try Command.run(
                Tool.path("curl"),
                ["-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%header{location}", String(page)],
                in: bench.sandbox.folder
            ).output
        }
        let special = try location()
        #expect(special == "msauth://enroll?cpurl=https://mdm.example/")
        try terminal.when("paste the address", type: "\(special)\n")
        try terminal.when("the URL is not one of", type: "\(try location())\n")
        #expect(terminal.waitForExit() == 0, "\(terminal.screen)")
        #expect(terminal.screen.contains("signed in as jdoe@acme.example"))
    }

    @Test func aPersonMayDecline() throws {
        let bench = try SignInSandbox()
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "enroll", bench.file("profile.json")],
            environment: try bench.sandbox.environment(adding: bench.environment))
        try terminal.when("Sign in? [y/N] ", type: "n\n")
        #expect(terminal.waitForExit() == 1 && bench.provider.requests.isEmpty, "\(terminal.screen)")
    }

    /// The address is visible in the list of processes, so it names the account and has no token.
    @Test func thePageForSigningOutIsOpenedIfThePersonAgrees() throws {
        let bench = try SignInSandbox()
        #expect(try bench.enroll().status == 0)
        try bench.write(browser: "#!/bin/sh\nexec curl -sS --noproxy '*' -o /dev/null \"$1\"\n")
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "unenroll"],
            environment: try bench.sandbox.environment(adding: bench.environment))
        try terminal.when("to sign out? [y/N] ", type: "y\n")
        #expect(terminal.waitForExit() == 0, "\(terminal.screen)")
        let isOpened = poll { bench.provider.requests.contains("GET /logout 200") ? true : nil }
        #expect(isOpened == true, "\(terminal.screen)")
        let log = TextFile.lines(bench.provider.log).last ?? ""
        #expect(log.contains("\"client_id\", \"logout_hint\"]"), "\(log)")
    }

    /// The user agent that was used counts, not the one of the profile or of this machine.
    @Test(
        arguments: [
            ("embedded", "device", "your browser is still signed in"), ("embedded", "system", "your browser is still"),
            ("system", "system-private", nil),
        ] as [(String, String, String?)])
    func signingOutIsAboutTheBrowserThatWasUsed(named: String, used: String, message: String?) throws {
        let bench = try SignInSandbox(profile: ["user_agent": named])
        let script = "#!/bin/sh\nfor url in \"$@\"; do :; done\nexec '\(bench.file("browser"))' \"$url\"\n"
        _ = try write(program: "chromium", script, in: bench)
        let path = ["PATH": "\(bench.file("bin")):/usr/bin:/bin"]
        let enrolled = try bench.enroll("--user-agent", used, environment: path)
        #expect(enrolled.status == 0, "\(enrolled.said)")
        let result = try bench.run(["unenroll"])
        #expect(result.status == 0, "\(result.said)")
        if let message {
            #expect(result.error.contains(message) && result.error.contains("/logout?"), "\(result.said)")
        } else {
            #expect(!result.error.contains("signed in") && !result.error.contains("/logout"), "\(result.said)")
        }
    }

    /// As after a sign-in with an earlier version.
    @Test func aBrowserThatIsNotKnownMayStillBeSignedIn() throws {
        let bench = try SignInSandbox(profile: ["user_agent": "embedded"])
        #expect(try bench.enroll("--user-agent", "system").status == 0)
        let vault = try SealedVault(home: bench.sandbox.home).open { throw HarnessError("there is a passphrase") }
        try vault.update { contents in
            guard var record = contents.signIns["127.0.0.1"] else { return }
            #expect(record.userAgent == "system")
            record.userAgent = ""
            try contents.updateSignIn(record)
        }
        let result = try bench.run(["unenroll"])
        #expect(result.status == 0 && result.error.contains("your browser may still be signed in"), "\(result.said)")
    }

    @Test(arguments: [(["--no-sign-out"], nil), ([], "n\n")] as [([String], String?)])
    func theBrowserStaysSignedInIfThePersonWants(flags: [String], answer: String?) throws {
        let bench = try SignInSandbox()
        #expect(try bench.enroll().status == 0)
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "unenroll"] + flags,
            environment: try bench.sandbox.environment(adding: bench.environment))
        if let answer { try terminal.when("to sign out? [y/N] ", type: answer) }
        #expect(terminal.waitForExit() == 0 && !terminal.screen.contains("/logout?"), "\(terminal.screen)")
        #expect(!bench.provider.requests.contains { $0.contains("/logout") })
    }

    @Test func ctrlCAtThePromptEndsTheCommand() throws {
        let bench = try SignInSandbox()
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "enroll", bench.file("profile.json")],
            environment: try bench.sandbox.environment(adding: bench.environment))
        try terminal.when("Sign in? [y/N] ", type: "\u{3}")
        #expect(terminal.waitForExit() == 130 && bench.provider.requests.isEmpty, "\(terminal.screen)")
    }
}
