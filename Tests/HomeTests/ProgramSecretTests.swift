// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignTestOrigin
import Testing

@testable import CountersignHome

/// Secrets that programs write.
@Suite struct ProgramSecretTests {
    private func failure(_ body: () throws(CountersignError) -> Void) -> CountersignError? {
        do throws(CountersignError) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    private func detail(of program: String, reportsErrors: Bool = true) -> String {
        let secret = ProgramSecret(
            ProgramSecret.words("exec:\(program)"), what: "the password", reportsErrors: reportsErrors)
        return failure { () throws(CountersignError) in _ = try secret.read() }?.detail ?? ""
    }

    @Test func theSecretIsTheFirstLine() throws {
        let folder = try TemporaryFolder()
        for (text, secret) in [("one\\ntwo\\n", "one"), ("one\\r\\n", "one"), ("one", "one"), ("a b\\n", "a b")] {
            let program = try folder.write(program: "teller", "#!/bin/sh\nprintf '\(text)'\n")
            #expect(try ProgramSecret([program], what: "it").read() == Secret(utf8: secret))
        }
    }

    @Test func wordsAreArgumentsAndNoShellExpandsThem() throws {
        let words = ProgramSecret.words("exec:/bin/echo $HOME  `id` *")
        #expect(words == ["/bin/echo", "$HOME", "`id`", "*"])
        #expect(try ProgramSecret(words, what: "it").read() == Secret(utf8: "$HOME `id` *"))
        #expect(ProgramSecret.isSource("exec:/bin/echo") && !ProgramSecret.isSource("exec:echo"))
    }

    @Test func aProgramThatWritesNoSecretIsNamed() throws {
        let folder = try TemporaryFolder()
        let silent = try folder.write(program: "silent", "#!/bin/sh\necho\n")
        #expect(detail(of: silent).hasPrefix("\(silent) wrote no line, and the password is the first line"))
        #expect(detail(of: "/bin/false").contains("/bin/false ended with status 1, and the password"))
        #expect(detail(of: "/nonexistent/x").contains("cannot run /nonexistent/x: No such file or directory"))
        #expect(detail(of: "/usr/bin/yes").contains("wrote more than 16384 bytes"))
    }

    /// With the last line that it has written on standard error, and not with the secret.
    @Test func theReasonOfAProgramIsPartOfTheError() throws {
        let folder = try TemporaryFolder()
        let text = "#!/bin/sh\necho canary\necho earlier >&2\nprintf 'the store is \\033locked\\n' >&2\nexit 3\n"
        let program = try folder.write(program: "locked", text)
        let detail = detail(of: program)
        #expect(detail.contains("ended with status 3 (the store is "), "\(detail)")
        #expect(detail.contains("locked)") && !detail.contains("earlier") && !detail.contains("\u{1B}"), "\(detail)")
        #expect(!detail.contains("canary"))
    }

    @Test func aSlowProgramIsEnded() throws {
        let run = ProgramRun(["/bin/sleep", "600"], consequence: "so", reportsErrors: true)
        let error = failure { () throws(CountersignError) in _ = try run.output(until: .milliseconds(200)) }
        #expect(error?.detail == "/bin/sleep did not end within 0 seconds, so")
    }

    /// Such as an agent that a password store starts.
    @Test func aProcessThatIsLeftBehindIsNotAwaited() throws {
        let folder = try TemporaryFolder()
        let program = try folder.write(program: "agent", "#!/bin/sh\nsleep 600 >/dev/null &\necho $!\n")
        let run = ProgramRun([program], consequence: "so", reportsErrors: true)
        let process = try run.output(until: .seconds(60)).firstLine.utf8Text ?? ""
        _ = try Command.run("/bin/sh", ["-c", "kill \(process)"], in: folder)
        #expect(!process.isEmpty)
    }

    @Test func theInputIsThatOfTheProgram() throws {
        let run = ProgramRun(["/bin/cat"], consequence: "so")
        let long = Secret([UInt8](repeating: 7, count: ProgramRun.maximumBytes))
        #expect(try run.output(input: long) == long)
        #expect(try run.output().count == 0)
    }
}
