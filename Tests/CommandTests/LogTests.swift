// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `countersign log`.
@Suite(.waiting) struct LogTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    private static func line(
        _ site: String, _ decision: String = "intercept", status: Int = 200, _ more: String = ""
    ) -> String {
        """
        {"time":"2026-01-31T23:59:58.250Z","id":1,"pid":7,"uid":1000,"method":"GET","site":"\(site)",\
        "decision":"\(decision)"\(more),"rounds":1,"status":\(status),"bytes":9,"ms":45}

        """
    }

    private static let answered = line(
        "https://git.corp.example:443", ",\"challenge\":\"ntlm\",\"credential\":\"work\"")
    private static let unanswered = line("https://wiki.corp.example:443", status: 401, ",\"reason\":\"no credential\"")
    private static let refused = line("http://a.example:80", "refuse", status: 403, ",\"reason\":\"other user\"")

    private static func line(_ site: String, _ more: String) -> String { line(site, "intercept", status: 200, more) }

    private func file(_ lines: String...) throws -> String {
        try sandbox.folder.write("access.log", lines.joined())
    }

    private func log(_ arguments: String) throws -> CommandResult {
        try sandbox.sh("TZ=UTC-1 countersign log \(arguments)")
    }

    @Test func aLineHasTheLocalTimeTheRequestAndTheAnswerOrTheReason() throws {
        _ = try file(Self.answered, Self.unanswered, "{\"time\":\"2026-01-31T23:59:59.000Z\",\"lost\":289}\n")
        let shown = try log("access.log")
        #expect(
            shown.output == """
                2026-02-01 00:59:58  intercept  200     45 ms  GET https://git.corp.example:443  answered: ntlm, work
                2026-02-01 00:59:58  intercept  401     45 ms  GET https://wiki.corp.example:443  no credential
                2026-02-01 00:59:59  289 requests were not logged

                """, "\(shown.said)")
        #expect(shown.status == 0 && shown.error.isEmpty)
        #expect(try sandbox.sh("TZ=UTC-1 countersign log < access.log").output == shown.output)
    }

    @Test(arguments: [
        ("--site git.corp.example", ["git"]), ("--site GIT.corp.example:443", ["git"]),
        ("--site https://git.corp.example/", ["git"]), ("--site git.corp.example:444", []),
        ("--site '*.corp.example'", ["git", "wiki"]), ("--site corp.example", []),
        ("--refused", ["wiki", "a.example"]),
        ("--refused --site a.example", ["a.example"]),
    ])
    func filtersChooseLinesAndJSONPassesThemThrough(flags: String, expected: [String]) throws {
        let lines = [("git", Self.answered), ("wiki", Self.unanswered), ("a.example", Self.refused)]
        _ = try file(lines.map(\.1).joined())
        let found = try log("--json \(flags) access.log")
        let wanted = lines.filter { expected.contains($0.0) }.map(\.1).joined()
        #expect(found.status == 0 && found.output == wanted, "\(found.said)")
    }

    @Test func damagedLinesAreCountedAndTheOthersShown() throws {
        let long = String(repeating: "x", count: 600_000)
        _ = try file(
            Self.answered, "{\"time\":\"2026-01-31T2\n", "\(long)\n", "\n", "countersign: listening on 127.0.0.1:1\n",
            "{\"time\":\"2026-02-31T00:00:00.000Z\",\"lost\":1}\n", Self.unanswered, "{\"half")
        let shown = try log("access.log")
        #expect(shown.output.split(separator: "\n").count == 2, "\(shown.output)")
        #expect(shown.error == "countersign: warning: access.log: 4 lines are not entries of an access log\n")
        #expect(shown.status == 0)
    }

    /// Text from a file must not drive the terminal.
    @Test func textForTheTerminalIsEscaped() throws {
        _ = try file(Self.line("https://x\\u001b[31m.example:443", ""))
        #expect(try log("access.log").output.contains("x\\u{1B}[31m.example"))
    }

    // MARK: Following

    private func follower(_ path: String) throws -> ChildProcess {
        try ChildProcess(
            try Sandbox.executable, ["log", "--follow", "--json", path],
            environment: try sandbox.environment(), folder: sandbox.folder.path,
            capture: sandbox.folder.file("follow-\(UUID().uuidString)"))
    }

    private func append(_ text: String, to path: String) throws {
        let file = try #require(FileHandle(forWritingAtPath: path))
        try file.seekToEnd()
        try file.write(contentsOf: Data(text.utf8))
        try file.close()
    }

    private static func site(_ name: String) -> String { line("https://\(name).example:443", "") }

    /// Waits until the line of ``site(_:)`` is printed.
    private func waits(for name: String, from process: ChildProcess) throws {
        let start = try #require(Self.site(name).firstRange(of: name)).upperBound
        _ = try process.line(after: String(Self.site(name)[..<start]))
    }

    /// The writer goes on with the renamed file until it opens the new one, as between logrotate's rename and SIGHUP.
    @Test func aRenamedFileIsReadToItsEndAndItsSuccessorAfterIt() throws {
        let path = try file(Self.site("one"))
        let process = try follower(path)
        try waits(for: "one", from: process)
        #expect(rename(path, path + ".1") == 0)
        try Data().write(to: URL(fileURLWithPath: path))
        try append(Self.site("two"), to: path + ".1")
        try waits(for: "two", from: process)
        try append(Self.site("three"), to: path + ".1")
        try append(Self.site("four"), to: path)
        try waits(for: "three", from: process)
        try waits(for: "four", from: process)
    }

    @Test func aTruncatedFileIsReadFromItsStart() throws {
        let path = try file(Self.site("a-very-long-name-of-a-host"), "{\"half")
        let process = try follower(path)
        try waits(for: "a-very-long-name-of-a-host", from: process)
        try #require(truncate(path, 0) == 0)
        try append(Self.site("b"), to: path)
        try waits(for: "b", from: process)
    }

    // MARK: Wrong use

    @Test(arguments: [
        ("--follow", 64, "--follow needs a file"), ("--site 'a b' x", 64, "--site: "),
        ("nothing.log", 1, "cannot read nothing.log"), (".", 1, ". is a folder"),
    ])
    func wrongUseIsExplained(arguments: String, status: Int32, sentence: String) throws {
        let result = try log(arguments)
        #expect(result.status == status && result.error.contains("countersign: error: \(sentence)"), "\(result.said)")
        #expect(result.error.contains("countersign: hint: "), "\(result.said)")
    }
}
