// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The demo in a home that already has entries.
struct DemoTests {
    @Test func demoDoesNotReplaceAnExistingCredential() throws {
        let sandbox = try Sandbox()
        try sandbox.succeed("credential", "set", "demo", "--user", "jdoe", "--password-stdin", input: "canary\n")
        let listed = try sandbox.succeed("credential", "list")
        let refused = try sandbox.countersign("demo")
        #expect(
            refused.status == 1 && refused.error.contains("an entry named \"demo\""), "\(refused.said)")
        #expect(try sandbox.succeed("credential", "list") == listed)
    }

    @Test func demoFitsATerminalOf80ColumnsAnd24Lines() throws {
        let sandbox = try Sandbox()
        let home = "/tmp/\(UUID().uuidString.prefix(8))"
        defer { try? FileManager.default.removeItem(atPath: home) }
        let demo = try ChildProcess(
            try Sandbox.executable, ["demo", "--listen", "127.0.0.1:0", "--home", home],
            environment: try sandbox.environment(), capture: sandbox.folder.file("demo"))
        let isShown: Bool? = poll(seconds: 30) { demo.output.contains("demo -k https://") ? true : nil }
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
        #expect(demo.waitForExit(seconds: 15) == 0)
    }

    @Test func demoUsesColoursOnATerminal() throws {
        let sandbox = try Sandbox()
        for (variables, isColoured) in [(["TERM": "xterm"], true), (["TERM": "xterm", "NO_COLOR": "1"], false)] {
            let terminal = try PseudoTerminal(
                [try Sandbox.executable, "demo", "--listen", "127.0.0.1:0"],
                environment: try sandbox.environment(adding: variables))
            try terminal.waits(for: "Ctrl-C")
            #expect(terminal.screen.contains("\u{1B}[32m200\u{1B}[0m") == isColoured, "\(terminal.screen)")
            try terminal.when("demo -k", type: "\u{3}")
            #expect(terminal.waitForExit() == 0)
        }
    }
}
