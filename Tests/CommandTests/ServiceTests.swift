// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `countersign service`, with a stand-in for `systemctl` that records its arguments.
@Suite(.waiting) struct ServiceTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        let folder = sandbox.folder.file("bin")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for name in ["systemctl", "journalctl"] {
            let script = """
                #!/bin/sh
                echo "\(name) $*" >> "$HOME/calls"
                if [ -f "$HOME/no-bus" ]; then echo 'Failed to connect to bus: No medium found' >&2; exit 1; fi
                if [ -f "$HOME/$3" ]; then echo "$3 fails" >&2; exit 3; fi

                """
            _ = FileManager.default.createFile(
                atPath: "\(folder)/\(name)", contents: Data(script.utf8), attributes: [.posixPermissions: 0o755])
        }
    }

    private var unit: String { sandbox.folder.file(".config/systemd/user/countersign.service") }

    private func service(_ arguments: String) throws -> CommandResult {
        try sandbox.sh("PATH=\"$HOME/bin:$PATH\" countersign service \(arguments)")
    }

    private var calls: [String] { TextFile.lines(sandbox.folder.file("calls")).filter { !$0.contains("show-env") } }

    @Test func installWritesTheUnitForThisProgramAndHomeAndUninstallRemovesIt() throws {
        let installed = try service("install")
        #expect(installed.status == 0, "\(installed.said)")
        let lines = TextFile.lines(unit)
        let executable = URL(fileURLWithPath: try Sandbox.executable).resolvingSymlinksInPath().path
        #expect(lines.contains("ExecStart=\(executable) serve --home \(sandbox.home)"))
        #expect(lines.contains("EnvironmentFile=-\(sandbox.home)/serve.env"))
        #expect(calls == ["systemctl --user daemon-reload", "systemctl --user enable countersign.service"])
        #expect(try service("install").status == 0)

        let removed = try service("uninstall")
        #expect(removed.status == 0 && !FileManager.default.fileExists(atPath: unit), "\(removed.said)")
        #expect(
            calls.suffix(2) == ["systemctl --user disable --now countersign.service", "systemctl --user daemon-reload"])
    }

    /// The rest of the unit is that of the package.
    @Test func theUnitHasTheTextOfTheOneInScripts() throws {
        try #require(try service("install").status == 0)
        func rest(_ path: String) -> [String] {
            TextFile.lines(path).filter {
                !$0.hasPrefix("ExecStart=") && !$0.hasPrefix("EnvironmentFile=") && !$0.hasPrefix("#")
            }
        }
        #expect(rest(unit) == rest("\(Tool.repository)/Scripts/countersign.service") && !rest(unit).isEmpty)
    }

    @Test func systemdAcceptsTheUnitWithAHomeThatNeedsQuotes() throws {
        let home = sandbox.folder.file("a %h $HOME \"b\"")
        try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true)
        let installed = try service("install --home '\(home)'")
        #expect(installed.status == 0, "\(installed.said)")
        let checked = try Command.run(try Tool.path("systemd-analyze"), ["--user", "verify", unit], in: sandbox.folder)
        #expect(!checked.error.contains("countersign.service"), "\(checked.said)")
        #expect(
            TextFile.lines(unit).contains {
                $0.hasPrefix("ExecStart=")
                    && $0.hasSuffix(" serve --home \"\(sandbox.folder.path)/a %%h $$HOME \\\"b\\\"\"")
            })
    }

    @Test func aDryRunShowsTheFileAndTheCommandsAndDoesNothing() throws {
        try FileManager.default.createDirectory(atPath: sandbox.home, withIntermediateDirectories: true)
        let shown = try service("install --dry-run --parent system")
        #expect(shown.status == 0 && shown.output.contains("\(unit):\n# Written by"), "\(shown.said)")
        #expect(shown.output.contains("COUNTERSIGN_PARENT=\"system\""))
        #expect(
            shown.output.hasSuffix("systemctl --user daemon-reload\nsystemctl --user enable countersign.service\n"))
        for verb in ["start", "stop"] {
            let run = try service("\(verb) --dry-run")
            #expect(run.output == "systemctl --user \(verb) countersign.service\n", "\(run.said)")
        }
        #expect(!FileManager.default.fileExists(atPath: sandbox.folder.file("calls")))
        #expect(!FileManager.default.fileExists(atPath: unit))
    }

    @Test func theOptionsOfServeGetIntoItsFileOnlyOnce() throws {
        let written = try service("install --parent http://p.corp.example:8080 --no-proxy 10.0.0.0/8")
        #expect(written.status == 0, "\(written.said)")
        let lines = TextFile.lines("\(sandbox.home)/serve.env").filter { $0.hasPrefix("COUNTERSIGN_") }
        #expect(
            lines == ["COUNTERSIGN_PARENT=\"http://p.corp.example:8080\"", "COUNTERSIGN_NO_PROXY=\"10.0.0.0/8\""])
        let other = try service("install --parent direct")
        #expect(other.status == 1 && other.error.contains("serve.env is there already"), "\(other.said)")
        #expect(try service("install --parent direct --replace").status == 0)
    }

    @Test func theOtherCommandsCallSystemd() throws {
        #expect(try service("start").status == 0)
        #expect(try service("stop").status == 0)
        #expect(try service("status").status == 0)
        #expect(try service("logs --lines 5 --follow").status == 0)
        #expect(
            calls == [
                "systemctl --user start countersign.service", "systemctl --user stop countersign.service",
                "systemctl --user --no-pager status countersign.service",
                "journalctl --user --no-pager --unit countersign.service --lines 5 --follow",
            ])
        try Data().write(to: URL(fileURLWithPath: sandbox.folder.file("status")))
        #expect(try service("status").status == 1)
    }

    // MARK: Wrong use

    @Test func withoutAnInstanceOfSystemdNothingIsWritten() throws {
        try Data().write(to: URL(fileURLWithPath: sandbox.folder.file("no-bus")))
        for verb in ["install", "start", "stop"] {
            let result = try service(verb)
            #expect(result.status == 1 && result.error.contains("Failed to connect to bus"), "\(result.said)")
            #expect(result.error.contains("hint: there is no systemd for your user here"), "\(result.said)")
        }
        #expect(!FileManager.default.fileExists(atPath: unit))
    }

    @Test func aUnitOfSomebodyElseIsKept() throws {
        try #require(try service("install").status == 0)
        try Data("[Service]\nExecStart=/bin/true\n".utf8).write(to: URL(fileURLWithPath: unit))
        for verb in ["install", "uninstall"] {
            let result = try service(verb)
            #expect(result.status == 1 && result.error.contains("countersign: hint: "), "\(result.said)")
        }
        #expect(TextFile.lines(unit).first == "[Service]")
    }

    /// What a person has changed is kept; another place of the program, or another home, is no such change.
    @Test func aUnitThatAPersonHasChangedIsReplacedOnlyWithAFlag() throws {
        try #require(try service("install").status == 0)
        let written = TextFile.text(unit)
        try Data((written + "Nice=5\n").utf8).write(to: URL(fileURLWithPath: unit))
        let refused = try service("install")
        #expect(refused.status == 1 && refused.error.contains("nothing was written"), "\(refused.said)")
        #expect(refused.error.contains("pass --replace") && TextFile.lines(unit).contains("Nice=5"))
        #expect(try service("install --replace").status == 0 && TextFile.text(unit) == written)

        let moved = written.split(separator: "\n", omittingEmptySubsequences: false).map {
            $0.hasPrefix("ExecStart=") ? "ExecStart=/opt/old/countersign serve" : String($0)
        }.joined(separator: "\n")
        try #require(moved != written)
        try Data(moved.utf8).write(to: URL(fileURLWithPath: unit))
        #expect(try service("install").status == 0 && TextFile.text(unit) == written)
    }

    @Test(arguments: [
        ("install --parent proxy", 1, "unknown parent"), ("install --home nowhere --dry-run", 1, "there is no home"),
        ("uninstall", 1, "there is no unit"), ("logs --lines x", 64, "--lines"), ("logs --lines -1", 64, "--lines"),
        ("strat", 64, "did you mean service start?"), ("start now", 64, "unexpected argument"),
    ])
    func wrongUseIsExplained(arguments: String, status: Int32, sentence: String) throws {
        let result = try service(arguments)
        #expect(result.status == status && result.error.contains(sentence), "\(result.said)")
        #expect(result.error.contains("countersign: hint: "), "\(result.said)")
    }
}
