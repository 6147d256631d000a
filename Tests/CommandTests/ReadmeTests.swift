// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Runs every command in the README in order, in a new home. Scripts/test checks `Scripts/run` and its output, because
/// that builds.
@Suite(.waiting) struct ReadmeTests {
    /// A command and the output lines that the README shows.
    private struct Step {
        let command: String
        var shown: [String] = []
    }

    private static func steps() throws -> [Step] {
        let text = try String(contentsOfFile: "\(Tool.repository)/README.md", encoding: .utf8)
        var steps: [Step] = []
        var isConsole = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                isConsole = line == "```console"
            } else if isConsole, line.hasPrefix("$ ") {
                steps.append(Step(command: String(line.dropFirst(2))))
            } else if isConsole, !line.isEmpty, !steps.isEmpty {
                steps[steps.count - 1].shown.append(String(line))
            }
        }
        return steps
    }

    @Test func everyCommandInTheReadmeRuns() throws {
        let sandbox = try Sandbox()
        let pki = "\(Tool.repository)/Certs/dev/pki"
        try FileManager.default.copyItem(atPath: "\(pki)/client-a.p12", toPath: sandbox.folder.file("laptop.p12"))
        _ = try sandbox.folder.write("p12-password.txt", "fixture\n")
        _ = try sandbox.folder.write("password.txt", "a password of the person's\n")
        let steps = try Self.steps().filter { $0.command != "Scripts/run" }
        #expect(steps.count >= 10)
        for step in steps {
            let result = try sandbox.sh(step.command)
            #expect(result.status == 0, "\(step.command)\n\(result.said)")
            var rest = result.output.split(separator: "\n").map(String.init)[...]
            for line in step.shown {
                let found = rest.firstIndex(of: line)
                #expect(found != nil, "\(step.command) does not say \"\(line)\":\n\(result.said)")
                if let found { rest = rest[(found + 1)...] }
            }
        }
    }

    @Test func everyMentionedCommandExists() throws {
        let sandbox = try Sandbox()
        for command in [
            "serve", "exec", "env", "demo", "explain", "sites", "credential", "certificate", "ca", "trust", "vault",
        ] {
            #expect(try sandbox.countersign(command, "--help").status == 0, "\(command)")
        }
    }
}
