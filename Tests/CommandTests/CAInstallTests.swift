// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `ca install`, `ca uninstall` and `ca rotate` on a terminal.
@Suite(.waiting) struct CAInstallTests {
    private let sandbox: Sandbox
    private let database: String

    init() throws {
        sandbox = try Sandbox()
        database = "sql:\(sandbox.folder.file(".pki/nssdb"))"
        let made = try sandbox.sh("mkdir -p .pki/nssdb; certutil -N --empty-password -d \(database)")
        guard made.status == 0 else { throw HarnessError(made.said) }
    }

    private func start(_ arguments: String...) throws -> PseudoTerminal {
        try PseudoTerminal([try Sandbox.executable] + arguments, environment: try sandbox.environment())
    }

    private func isInstalled() throws -> Bool {
        try sandbox.sh("certutil -L -d \(database)").output.contains("\ncountersign-")
    }

    @Test(arguments: ["y\r", "Yes\r"])
    func installProceedsAfterYes(_ answer: String) throws {
        let terminal = try start("ca", "install", "--store", "nss")
        try terminal.when("Install it? [y/N] ", type: answer)
        #expect(terminal.waitForExit() == 0, "\(terminal.screen)")
        #expect(terminal.screen.hasSuffix("nssdb: installed\r\n"))
        #expect(try isInstalled())
        let again = try start("ca", "uninstall", "--store", "nss")
        try again.when("Remove it? [y/N] ", type: answer)
        #expect(again.waitForExit() == 0, "\(again.screen)")
        #expect(try !isInstalled())
    }

    @Test(arguments: ["\r", "n\r", "yesterday\r", "\u{4}"])
    func installStopsAfterAnyOtherAnswer(_ answer: String) throws {
        let terminal = try start("ca", "install", "--store", "nss")
        try terminal.when("Install it? [y/N] ", type: answer)
        #expect(terminal.waitForExit() == 1)
        #expect(
            terminal.screen.hasSuffix("countersign: error: not confirmed; nothing was written\r\n"),
            "\(terminal.screen)")
        #expect(try !isInstalled())
    }

    @Test
    func declinedRotationKeepsTheRoot() throws {
        let root = try sandbox.succeed("ca", "export")
        let terminal = try start("ca", "rotate")
        try terminal.when("Create a new interception CA? [y/N] ", type: "n\r")
        #expect(terminal.waitForExit() == 1)
        #expect(try sandbox.succeed("ca", "export") == root)
        let wanted = try start("ca", "rotate")
        try wanted.when("Create a new interception CA? [y/N] ", type: "y\r")
        #expect(wanted.waitForExit() == 0)
        #expect(try sandbox.succeed("ca", "export") != root)
    }
}
