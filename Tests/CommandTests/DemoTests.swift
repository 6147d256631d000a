// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The demo in a home that already has entries.
@Suite(.waiting) struct DemoTests {
    @Test func demoDoesNotReplaceAnExistingCredential() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("credential", "set", "demo", "--user", "jdoe", "--password-stdin", input: "canary\n")
        let listed = try sandbox.succeed("credential", "list")
        let refused = try sandbox.countersign("demo")
        #expect(
            refused.status == 1 && refused.error.contains("an entry named \"demo\""), "\(refused.said)")
        #expect(try sandbox.succeed("credential", "list") == listed)
    }

    @Test func demoDoesNotEndASignInOfThePerson() throws {
        let bench = try SignInSandbox()
        let enrolled = try bench.enroll("--name", "demo-sign-in")
        #expect(enrolled.status == 0, "\(enrolled.said)")
        let refused = try bench.sandbox.countersign("demo")
        #expect(refused.status == 1 && refused.error.contains("\"demo-sign-in\""), "\(refused.said)")
        #expect(try bench.status.count == 1)
    }

    @Test func demoFitsATerminalOf80ColumnsAnd24Lines() throws {
        let sandbox = try Sandbox()
        let home = "/tmp/\(UUID().uuidString.prefix(8))"
        defer { try? FileManager.default.removeItem(atPath: home) }
        let demo = try ChildProcess(
            try Sandbox.executable, ["demo", "--listen", "127.0.0.1:0", "--home", home],
            environment: try sandbox.environment(), capture: sandbox.folder.file("demo"))
        let isShown: Bool? = poll { demo.output.contains("demo https://token.") ? true : nil }
        try #require(isShown == true, "\(demo.output)\(demo.errorOutput)")
        let lines = demo.output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 24 && lines.allSatisfy { $0.count <= 80 }, "\(demo.output)")
        #expect(!demo.output.contains("\u{1B}"))
        #expect(lines.contains("  ntlm       200  NTLM, as DEMO\\demo"), "\(demo.output)")
        #expect(demo.output.contains("  untrusted  ---  curl: (60)"))
        // The printed commands work.
        let tried = demo.output.split(separator: "\n").filter { $0.hasPrefix("  ca=") || $0.hasPrefix("  demo") }
        let result = try sandbox.sh(tried.joined(separator: "\n"))
        #expect(result.output.contains("welcome: a client certificate, as CN=demo"), "\(result.said)")
        demo.send(SIGINT)
        #expect(demo.waitForExit() == 0)
    }

    /// A newcomer pastes the last two commands.
    @Test func thePersonSignsInAtTheDemosProvider() throws {
        let sandbox = try Sandbox()
        let browser = try sandbox.folder.write(
            program: "browser",
            "#!/bin/sh\nexec '\(try Tool.python())' '\(Tool.server("form_browser.py"))' \"$1\" > seen 2>&1\n")
        let demo = try ChildProcess(
            try Sandbox.executable, ["demo", "--listen", "127.0.0.1:0"], environment: try sandbox.environment(),
            capture: sandbox.folder.file("demo"))
        let isShown: Bool? = poll { demo.output.contains("demo https://token.") ? true : nil }
        try #require(isShown == true, "\(demo.output)\(demo.errorOutput)")
        let lines = demo.output.split(separator: "\n").map { $0.drop { $0 == " " } }
        let set = lines.filter { $0.hasPrefix("ca=") || $0.hasPrefix("demo()") }.joined(separator: "\n")
        let token = try #require(lines.first { $0.hasPrefix("demo https://token.") })
        let enroll = try #require(lines.first { $0.hasPrefix("countersign enroll ") })
        let signedIn = try sandbox.sh("BROWSER=\(browser) \(enroll) --yes")
        #expect(signedIn.output.contains("signed in as demo"), "\(signedIn.said)\(sandbox.folder.text("seen"))")
        // The running proxy learns of the new site within a second or two.
        var said = ""
        let welcome: Bool? = try poll {
            said = try sandbox.sh("\(set)\n\(token)").said
            return said.contains("welcome: a token of the provider, as demo") ? true : nil
        }
        #expect(welcome == true, "\(said)\(demo.errorOutput)")
        #expect(try sandbox.sh("countersign status").output.contains("\ndemo-sign-in "))
        demo.send(SIGINT)
        #expect(demo.waitForExit() == 0, "\(demo.errorOutput)")
        #expect(try !sandbox.sh("countersign status").output.contains("demo-sign-in"))
        #expect(try sandbox.succeed("credential", "list", "--no-header").isEmpty)
        for name in ["demo-profile.json", "AllowedSites/signed-in.demo-sign-in.sites"] {
            #expect(!FileManager.default.fileExists(atPath: "\(sandbox.home)/\(name)"))
        }
    }

    @Test func demoUsesColoursOnATerminal() throws {
        let sandbox = try Sandbox()
        for (variables, isColoured) in [(["TERM": "xterm"], true), (["TERM": "xterm", "NO_COLOR": "1"], false)] {
            let terminal = try PseudoTerminal(
                [try Sandbox.executable, "demo", "--listen", "127.0.0.1:0"],
                environment: try sandbox.environment(adding: variables))
            try terminal.waits(for: "Ctrl-C")
            #expect(terminal.screen.contains("\u{1B}[32m200\u{1B}[0m") == isColoured, "\(terminal.screen)")
            try terminal.when("demo https://token.", type: "\u{3}")
            #expect(terminal.waitForExit() == 0)
        }
    }
}
