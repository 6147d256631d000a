// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignCLI

/// `countersign setup`.
@Suite(.waiting) struct SetupTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    private func survey(_ change: (inout SetupSurvey) -> Void) -> SetupSurvey {
        var survey = SetupSurvey()
        change(&survey)
        return survey
    }

    private func commands(_ survey: SetupSurvey, _ isYes: (String) -> Bool = { _ in true }) -> [String] {
        SetupPlan(survey, asks: isYes).steps.map { $0.arguments.joined(separator: " ") }
    }

    @Test func eachYesIsACommandAndANoIsNone() {
        let all = survey {
            $0.file = "/etc/cntlm.conf"
            $0.stores = ["system", "nss"]
            $0.hasSystemd = true
        }
        let steps = ["migrate /etc/cntlm.conf", "ca install --yes", "service install", "service start"]
        #expect(commands(all) == steps)
        #expect(commands(all) { !$0.contains("cntlm") } == Array(steps[1...]))
        #expect(commands(all) { !$0.contains("system, nss") } == [steps[0]] + steps[2...])
        #expect(commands(all) { !$0.contains("login") } == Array(steps[..<2]))
        #expect(commands(all) { _ in false }.isEmpty)
    }

    @Test func theProxyOfTheDesktopOrTheVariablesGetsIntoTheService() {
        let desktop = survey {
            $0.desktop = "http://p.corp.example:8080"
            $0.hasSystemd = true
        }
        #expect(commands(desktop).first == "service install --parent system")
        let variables = survey {
            $0.variables = ("http://p.corp.example:8080", ".corp.example")
            $0.hasSystemd = true
        }
        #expect(
            commands(variables).first
                == "service install --parent http://p.corp.example:8080 --no-proxy .corp.example")
        let alone = SetupPlan(survey { $0.desktop = "http://p.corp.example:8080" }, asks: { _ in true })
        #expect(alone.steps.isEmpty)
        #expect(alone.remarks.last == "the proxy runs with: countersign serve --parent system")
        let file = SetupPlan(survey { $0.file = "/etc/cntlm.conf" }, asks: { _ in true })
        #expect(file.remarks.last == "the proxy runs with: set -a; . serve.env; set +a; countersign serve")
    }

    /// A folder with `systemctl` that does nothing, a trust store of nobody, and cntlm's settings.
    private func prepare() throws {
        for folder in ["bin", ".config"] {
            try FileManager.default.createDirectory(
                atPath: sandbox.folder.file(folder), withIntermediateDirectories: true)
        }
        _ = FileManager.default.createFile(
            atPath: sandbox.folder.file("bin/systemctl"), contents: Data("#!/bin/sh\n".utf8),
            attributes: [.posixPermissions: 0o755])
        _ = try sandbox.folder.write(".config/cntlm.conf", "Proxy 10.0.0.41:8080\n")
    }

    private func setup(_ arguments: String) throws -> CommandResult {
        try sandbox.sh("PATH=\"$HOME/bin:$PATH\" countersign setup \(arguments)")
    }

    @Test func aDryRunPrintsTheCommandsAndWritesNothing() throws {
        try prepare()
        let shown = try setup("--dry-run")
        #expect(shown.status == 0, "\(shown.said)")
        #expect(shown.output.contains("$ countersign migrate \(sandbox.folder.path)/.config/cntlm.conf\n"))
        #expect(shown.output.contains("$ countersign service install\n"), "\(shown.said)")
        #expect(!FileManager.default.fileExists(atPath: "\(sandbox.home)/serve.env"))
        #expect(!FileManager.default.fileExists(atPath: sandbox.folder.file(".config/systemd")))
    }

    @Test func withoutATerminalItSaysWhatToType() throws {
        try prepare()
        let shown = try setup("")
        #expect(shown.status == 1 && shown.error.contains("there is no terminal to ask"), "\(shown.said)")
        #expect(shown.error.contains("pass --yes") && shown.error.contains("countersign service install"))
        #expect(!FileManager.default.fileExists(atPath: "\(sandbox.home)/serve.env"))
    }

    /// The answers are typed; no trust store is changed.
    @Test func theAnswersOfThePersonDecide() throws {
        try prepare()
        var environment = try sandbox.environment()
        environment["PATH"] = "\(sandbox.folder.file("bin")):\(environment["PATH"] ?? "")"
        let terminal = try PseudoTerminal([try Sandbox.executable, "setup"], environment: environment, columns: 200)
        try terminal.when("cntlm.conf? [y/N] ", type: "y\r")
        if terminal.screen.contains("no trust store") == false {
            try terminal.when(")? [y/N] ", type: "n\r")
        }
        try terminal.when("login? [y/N] ", type: "y\r")
        #expect(terminal.waitForExit() == 0, "\(terminal.screen)")
        #expect(TextFile.lines("\(sandbox.home)/serve.env").contains("COUNTERSIGN_PARENT=\"http://10.0.0.41:8080\""))
        let unit = TextFile.text(sandbox.folder.file(".config/systemd/user/countersign.service"))
        #expect(unit.contains(" serve --home \(sandbox.home)"), "\(terminal.screen)")
    }
}
