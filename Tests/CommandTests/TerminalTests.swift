// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Prompts and `exec` on a terminal.
@Suite(.waiting) struct TerminalTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    private func start(_ arguments: String...) throws -> PseudoTerminal {
        try PseudoTerminal([try Sandbox.executable] + arguments, environment: try sandbox.environment())
    }

    @Test
    func passwordIsPromptedTwiceWithoutEcho() throws {
        let terminal = try start("credential", "set", "--user", "jdoe")
        try terminal.waits(for: "The password of jdoe: ")
        // Checked before typing, because the settings are restored afterwards.
        #expect(!terminal.echoes)
        try terminal.when("The password of jdoe: ", type: "canary-one\r")
        try terminal.when("Again: ", type: "canary-one\r")
        #expect(terminal.waitForExit() == 0)
        #expect(terminal.echoes)
        #expect(terminal.screen == "The password of jdoe: \r\nAgain: \r\ncredential \"enrollment\" stored for jdoe\r\n")
    }

    @Test
    func differentPasswordsAreRejected() throws {
        let terminal = try start("credential", "set", "--user", "jdoe")
        try terminal.when("The password of jdoe: ", type: "canary-one\r")
        try terminal.when("Again: ", type: "canary-two\r")
        #expect(terminal.waitForExit() == 1)
        #expect(
            terminal.screen.hasSuffix(
                "countersign: error: the two entries do not match\r\n"
                    + "countersign: hint: run the command again, and type the same twice\r\n"))
        #expect(try sandbox.succeed("credential", "list").isEmpty)
    }

    @Test
    func editingKeysWork() throws {
        let terminal = try start("credential", "set", "--user", "jdoe")
        try terminal.when("The password of jdoe: ", type: "wrong\u{15}pässx\u{7F}\u{7F}\u{7F}\u{7F}q\r")
        try terminal.when("Again: ", type: "pq\r")
        #expect(terminal.waitForExit() == 0, "\(terminal.screen)")
    }

    @Test
    func controlCAtAPromptRestoresTheTerminal() throws {
        let terminal = try start("credential", "set", "--user", "jdoe")
        try terminal.when("The password of jdoe: ", type: "canary\u{3}")
        #expect(terminal.waitForExit() == 128 + SIGINT)
        #expect(terminal.echoes)
        #expect(!terminal.screen.contains("canary"))
    }

    @Test
    func vaultPassphraseIsPrompted() throws {
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary\n")
        let rekey = try start("vault", "rekey", "--passphrase")
        try rekey.when("The new passphrase: ", type: "canary-passphrase\r")
        try rekey.when("Again: ", type: "canary-passphrase\r")
        #expect(rekey.waitForExit() == 0)
        let list = try start("credential", "list")
        try list.when("The vault's passphrase: ", type: "canary-passphrase\r")
        #expect(list.waitForExit() == 0)
        let table = "NAME        KIND      USER  BLOCKED\r\nenrollment  password  jdoe  no\r\n"
        #expect(list.screen == "The vault's passphrase: \r\n\(table)")
    }

    @Test
    func aWrongPassphraseIsAskedForAgain() throws {
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary\n")
        try sandbox.succeed("vault", "rekey", "--passphrase", "--password-stdin", input: "canary-passphrase\n")
        let list = try start("credential", "list", "--no-header")
        try list.when("The vault's passphrase: ", type: "wrong\r")
        try list.when("That is not the vault's passphrase. Try again: ", type: "canary-passphrase\r")
        #expect(list.waitForExit() == 0)
        #expect(list.screen.hasSuffix("again: \r\nenrollment  password  jdoe  no\r\n"), "\(list.screen)")
        // Three attempts are enough.
        let stubborn = try start("exec", "--", "true")
        try stubborn.when("The vault's passphrase: ", type: "wrong\r")
        try stubborn.when("Try again: ", type: "wrong\r")
        try stubborn.when("Try again: \r\nThat is not the vault's passphrase. Try again: ", type: "wrong\r")
        #expect(stubborn.waitForExit() == 1)
        #expect(stubborn.screen.contains("the passphrase does not open the vault"), "\(stubborn.screen)")
    }

    @Test
    func unlockAsksAgainToo() throws {
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary\n")
        try sandbox.succeed("vault", "rekey", "--passphrase", "--password-stdin", input: "canary-passphrase\n")
        let server = try sandbox.serve()
        let unlock = try start("vault", "unlock")
        try unlock.when("The vault's passphrase: ", type: "wrong\r")
        try unlock.when("Try again: ", type: "canary-passphrase\r")
        #expect(unlock.waitForExit() == 0, "\(unlock.screen)")
        #expect(try sandbox.succeed("vault", "status").contains("process \(server.pid), open"))
    }

    @Test(arguments: [
        ("canary-one", "it has fewer than 12 characters"), ("canary-long-enough", nil),
        ("abababababababab", "it repeats a few characters"), ("12345678901234567890", "it has only digits"),
    ])
    func aWeakPassphraseGetsARemark(_ passphrase: String, _ remark: String?) throws {
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary\n")
        let result = try sandbox.countersign(
            "vault", "rekey", "--passphrase", "--password-stdin", input: "\(passphrase)\n")
        #expect(result.status == 0)
        let first = result.error.split(separator: "\n").first.map(String.init)
        #expect(first == remark.map { "countersign: warning: this passphrase is weak: \($0)" }, "\(result.said)")
    }

    @Test
    func filePasswordIsPrompted() throws {
        let terminal = try start(
            "certificate", "import", "\(Tool.repository)/Certs/dev/pki/client-a.p12", "--name", "laptop")
        try terminal.when("client-a.p12: ", type: "fixture\r")
        #expect(terminal.waitForExit() == 0)
        #expect(!terminal.screen.contains("fixture"))
    }

    @Test
    func controlCReachesOnlyTheCommand() throws {
        let terminal = try start(
            "exec", "--", "/bin/bash", "-c", "trap 'echo caught' INT; echo ready; read line; exit 5")
        try terminal.when("ready", type: "\u{3}")
        try terminal.when("caught", type: "line\r")
        #expect(terminal.waitForExit() == 5)
    }

    /// The terminal signals the whole foreground process group. A command that has left it must not receive Control-C
    /// from us.
    @Test
    func terminalSignalIsNotForwarded() throws {
        let script = "trap 'echo caught' INT; echo ready; read line; echo $line; exit 5"
        let terminal = try start("exec", "--", "/usr/bin/setsid", "/bin/bash", "-c", script)
        try terminal.when("ready", type: "\u{3}")
        try terminal.when("^C", type: "line\r")
        #expect(terminal.waitForExit() == 5)
        #expect(!terminal.screen.contains("caught"), "\(terminal.screen)")
    }
}
