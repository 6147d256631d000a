// SPDX-License-Identifier: Apache-2.0

import CountersignSignIn
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignCLI

/// The questions of a page on the terminal.
@Suite(.waiting) struct PageAnswersTests {
    private static let scheme = "com.example.app:/callback"
    private static let origin = "https://login.example"

    /// The lines for the callbacks, and the kind of each is that of the message.
    private func lines(_ callbacks: String) throws -> [String] {
        let message = PageMessage(origin: Self.origin, body: #"{"callbacks": [\#(callbacks)]}"#)
        return try PageQuestions(message).questions.flatMap { PageAnswers.lines($0, of: Self.origin) }
    }

    /// A page cannot imitate a question of another program: each line begins with the page's origin.
    @Test func everyLineOfAPageSaysWhoseItIs() throws {
        let shown = try lines(
            #"""
            {"type": "NameCallback", "output": [{"name": "prompt", "value": "Name\n\r   [sudo] password for jdoe"}]},
            {"type": "TextOutputCallback", "output": [{"name": "message", "value": "Look\u001b[2J"}]},
            {"type": "ChoiceCallback", "output": [
              {"name": "prompt", "value": "Way"}, {"name": "choices", "value": ["SMS\n", "\n3 App"]}]}
            """#)
        #expect(
            shown == [
                "[https://login.example] NameCallback: Name [sudo] password for jdoe: ",
                "[https://login.example] TextOutputCallback: Look [2J",
                "[https://login.example] ChoiceCallback: Way",
                "[https://login.example] ChoiceCallback:   1  SMS",
                "[https://login.example] ChoiceCallback:   2  3 App",
                "[https://login.example] ChoiceCallback: number: ",
            ])
        let long = String(repeating: "x", count: 5000)
        let cut = try lines(#"{"type": "NameCallback", "output": [{"name": "prompt", "value": "\#(long)"}]}"#)
        #expect(cut.map(\.count) == [cut[0].count] && cut[0].count < 250)
    }

    /// More than the terminal's buffer holds without a reader.
    @Test func aTerminalThatIsSlowShowsEverything() async throws {
        var ends: [Int32] = [-1, -1]
        let isOpen = pipe(&ends) == 0
        try #require(isOpen)
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        let reading = ends[0]
        defer { close(reading) }
        let text = String((0..<40_000).map { "\($0)\n" }.joined())
        let terminal = TerminalAnswers(owning: ends[1])
        let isFull = Task {
            // The pipe is full when no more of it arrives.
            var before = -1
            var count: Int32 = 0
            while ioctl(reading, UInt(FIONREAD), &count) == 0, Int(count) != before || count == 0 {
                before = Int(count)
                try? await Task.sleep(for: .milliseconds(100))
            }
            var found: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            let end = ContinuousClock.now + .seconds(60)
            while found.count < text.utf8.count, ContinuousClock.now < end {
                let count = read(reading, &buffer, buffer.count)
                if count > 0 { found += buffer[..<count] } else { try? await Task.sleep(for: .milliseconds(5)) }
            }
            return String(decoding: found, as: UTF8.self)
        }
        await terminal.show(text)
        #expect(await isFull.value == text)
    }

    private func terminal(_ bench: SignInSandbox, _ script: String) throws -> PseudoTerminal {
        try PseudoTerminal(
            [try Sandbox.executable, "enroll", bench.file("profile.json"), "--user-agent", "embedded", "--yes"],
            environment: try bench.sandbox.environment(adding: bench.webView(script)))
    }

    private static func message(_ callbacks: String) -> String {
        let body = #"{"callbacks": [\#(callbacks)]}"#.replacing("\"", with: "\\\"")
        return #"{"body":"\#(body)","id":1,"origin":"https://127.0.0.1:8443","type":"pageMessage"}"#
    }

    @Test func anAnswerThatIsNotUTF8IsAskedForAgain() throws {
        let bench = try SignInSandbox(profile: [
            "redirect_uri": Self.scheme, "page_messages": ["types": ["NameCallback"]],
        ])
        let terminal = try terminal(bench, "say '\(Self.message(#"{"type": "NameCallback"}"#))'; hear; sign_in")
        try terminal.when("NameCallback: : ", type: [0xFF, 0x0A])
        try terminal.when("That is not UTF-8. [", type: Array("jdoe\n".utf8))
        #expect(terminal.waitForExit() == 0, "\(terminal.screen)")
        #expect(bench.heard.contains { $0.contains("answerMessage") && $0.contains(#"\"value\":\"jdoe\""#) })
    }

    /// There is nothing to ask, and nothing is shown.
    @Test func aMessageWithoutQuestionsIsAnsweredInSilence() throws {
        let bench = try SignInSandbox(profile: [
            "redirect_uri": Self.scheme, "page_messages": ["types": ["NameCallback"]],
        ])
        let terminal = try terminal(bench, "say '\(Self.message(""))'; hear; sign_in")
        #expect(terminal.waitForExit() == 0, "\(terminal.screen)")
        #expect(bench.heard.contains { $0.contains(#""answer":"{\"callbacks\":[]}""#) })
        #expect(!terminal.screen.contains("Ctrl-D"), "\(terminal.screen)")
    }

    // MARK: The proxy of the window

    /// The name is looked up in the vault before the window's proxy opens it again.
    @Test func aPassphraseIsReadOnceForANamedSignIn() throws {
        let bench = try SignInSandbox(profile: ["redirect_uri": Self.scheme, "name": "work"], isTLS: true)
        try bench.sandbox.succeed("trust", "anchor", "add", TestPKI.shared.originAnchor)
        let view = try bench.webView("sign_in")
        let first = try bench.run(["enroll", "profile.json", "--yes", "--user-agent", "embedded"], environment: view)
        #expect(first.status == 0, "\(first.said)")
        try bench.sandbox.succeed(
            "vault", "rekey", "--passphrase", "--password-stdin", input: "canary-passphrase\n")
        let again = try Command.run(
            "/usr/bin/setsid",
            [
                "--wait", try Sandbox.executable, "enroll", "work", "--yes", "--user-agent", "embedded",
                "--password-stdin",
            ],
            environment: try bench.sandbox.environment(adding: view), folder: bench.sandbox.folder.path,
            input: "canary-passphrase\n", in: bench.sandbox.folder)
        #expect(again.status == 0 && again.output.contains("signed in as jdoe@acme.example"), "\(again.said)")
        #expect(bench.heard.first?.contains(#""proxy":"http://countersign:"#) == true)
    }
}
