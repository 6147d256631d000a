// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `countersign exec --sandbox` with bwrap, and `exec --as`.
@Suite(.waiting) struct ExecSandboxTests {
    private let user: Countersign
    private let origin: ChallengingOrigin
    private let url: String
    /// The working folder. The home folder itself cannot be in a sandbox.
    private let folder: String

    init() throws {
        user = try Countersign()
        origin = try .acme(.basic)
        url = "https://sandboxed.test.localhost:\(origin.port)"
        try user.enroll()
        try Data("a file\n".utf8).write(to: URL(fileURLWithPath: origin.root).appendingPathComponent("file"))
        folder = user.folder.file("project")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    /// Runs a line of sh by `exec` in ``folder``.
    private func exec(_ flags: [String], _ line: String) throws -> CommandResult {
        try exec(flags, words: ["/bin/sh", "-c", line])
    }

    private func exec(_ flags: [String], words: [String]) throws -> CommandResult {
        let arguments = ["exec", "--home", user.home] + flags + ["--"] + words
        return try Command.run(
            try Countersign.executable, arguments,
            environment: user.environment.merging(["PATH": "/usr/bin:/bin"]) { $1 }, folder: folder,
            in: user.folder)
    }

    private func status(of url: String) -> String {
        "curl -q -sS -o /dev/null -w '%{http_code} %{http_connect}\\n' \(url)/file"
    }

    @Test func listedSiteIsAnsweredAndAnotherIsRefused() throws {
        try user.allow(url)
        let other = "https://other.test.localhost:\(origin.port)"
        let plain = "http://other.test.localhost:\(origin.port)"
        let done = try exec(["--sandbox"], [url, other, plain].map { status(of: $0) }.joined(separator: "; "))
        #expect(done.output == "200 200\n000 403\n403 000\n", "\(done.said)")
        #expect(origin.log.requests.contains { $0.user == Countersign.user })
    }

    @Test func refusalNamesTheSandboxAndTheCommandThatListsTheSite() throws {
        try user.allow(url)
        let done = try exec(["--sandbox"], "curl -q -sS http://other.test.localhost:\(origin.port)/")
        #expect(done.output.contains("sandbox") && done.output.contains("countersign sites add"), "\(done.said)")
    }

    @Test func lastLinesNameTheSitesThatWereRefused() throws {
        try user.allow(url)
        let other = "https://other.test.localhost:\(origin.port)"
        let done = try exec(["--sandbox"], "\(status(of: other)); \(status(of: url)); true")
        #expect(done.status == 0, "\(done.said)")
        let lines = done.said.split(separator: "\n").filter { $0.contains("warning: https://") }
        #expect(lines.count == 1, "\(done.said)")
        #expect(lines.first?.contains("\(other): not on the list; the command runs in a sandbox") == true)
        #expect(lines.first?.contains("`countersign sites add") == true && lines.first?.contains(other) == true)
    }

    @Test func networkOfTheMachineIsNotThere() throws {
        try user.allow(url)
        let done = try exec(["--sandbox"], "curl -q -sS --noproxy '*' \(url)/ && echo reached")
        #expect(done.status != 0 && done.output.isEmpty, "\(done.said)")
        #expect(origin.log.requests.isEmpty)
    }

    @Test func homeFolderAndVaultAreNotVisible() throws {
        try user.folder.write("secret", "a secret of the person\n")
        try user.folder.write("project/file", "of the project\n")
        let line = "cat file ../secret; ls \(user.home)/vault \(user.home)/run/control.sock; echo made > made"
        let done = try exec(["--sandbox"], line)
        #expect(done.output == "of the project\n", "\(done.said)")
        #expect(user.folder.text("project/made") == "made\n", "\(done.said)")
    }

    @Test func processesOfTheMachineAreNotVisible() throws {
        let done = try exec(["--sandbox"], "test -e /proc/\(ProcessInfo.processInfo.processIdentifier) || echo gone")
        #expect(done.output == "gone\n", "\(done.said)")
    }

    @Test func homeFolderIsRefusedAsTheWorkingFolder() throws {
        let done = try user.run(["exec", "--sandbox", "--sandbox-read", user.folder.path, "--", "true"])
        #expect(done.status == 1 && done.error.contains("your home folder"), "\(done.said)")
    }

    @Test(arguments: [("exit 7", 7), ("kill -15 $$", 143)])
    func exitStatusIsTheCommands(_ line: String, _ status: Int32) throws {
        let done = try exec(["--sandbox"], line)
        #expect(done.status == status, "\(done.said)")
    }

    @Test func missingCommandIs127() throws {
        let done = try exec(["--sandbox"], words: ["no-such-command-here"])
        #expect(done.status == 127 && done.error.hasPrefix("countersign: error: "), "\(done.said)")
    }

    @Test(arguments: [true, false])
    func nameOfTheCommandIsPermittedByTheList(_ isInSandbox: Bool) throws {
        try user.allow("\(url) for=token:agent")
        let flags = isInSandbox ? ["--sandbox"] : []
        let named = try exec(flags + ["--as", "agent"], status(of: url))
        #expect(named.output == "200 200\n", "\(named.said)")
        let other = try exec(flags + ["--as", "other"], status(of: url))
        #expect(other.output != "200 200\n", "\(other.said)")
    }
}
