// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignCLI

/// Every command that a message can name is one that the program understands, with all arguments that it needs.
@Suite struct HintCommandTests {
    struct Hint: Hashable, CustomTestStringConvertible {
        let place: String
        /// As in the source, with its interpolations.
        let text: String

        var testDescription: String { "\(place): \(text)" }
    }

    /// Those between backquotes in the string literals of the sources. Comments are left out.
    static func hints() -> [Hint] {
        let sources = "\(Tool.repository)/Sources"
        let files = FileManager.default.enumerator(atPath: sources)?.compactMap { $0 as? String } ?? []
        return files.filter { $0.hasSuffix(".swift") }.sorted().flatMap { file -> [Hint] in
            let code = TextFile.lines("\(sources)/\(file)")
                .filter { !$0.trimmingCharacters(in: .whitespaces).hasPrefix("//") }.joined(separator: "\n")
            // A literal that continues on the next line.
            let joined = code.replacing(#/"\s*\n\s*\+ "/#, with: "")
            return joined.matches(of: #/`(countersign [^`\n]*)`/#).map { Hint(place: file, text: String($0.1)) }
                // As CountersignError.unknown prints them.
                + joined.matches(of: #/addedBy: "([^"]*)"/#).map { Hint(place: file, text: "countersign \($0.1)") }
        }
    }

    /// Commands that help texts name as a program, not to be run as they stand.
    private static let names: Set<String> = [
        "countersign exec", "countersign sites check", "countersign route",
    ]

    /// The words of the command, with an example in place of each interpolation. One behind a letter is `value`,
    /// because it may stand for nothing.
    static func words(_ text: String, _ value: String) -> [String] {
        var plain = ""
        var rest = Substring(text)
        while let start = rest.firstRange(of: "\\(") {
            plain += rest[..<start.lowerBound]
            let isBehindWord = plain.last?.isLetter == true
            rest = rest[start.upperBound...]
            var code = ""
            var depth = 1
            while let next = rest.popFirst() {
                if next == "(" { depth += 1 } else if next == ")" { depth -= 1 }
                guard depth > 0 else { break }
                code.append(next)
            }
            plain += isBehindWord ? value : Self.example(code)
        }
        return (plain + rest).replacing("\\\"", with: "\"").split(separator: " ").dropFirst().map { word in
            switch word {
            case "URL": "https://x.example"
            case "SHA256": String(repeating: "a", count: 64)
            default: String(word)
            }
        }
    }

    /// What the interpolation of `code` may stand for: the last of the literals in it, or else what its name says.
    private static func example(_ code: String) -> String {
        if let literal = code.matches(of: #/"([^"]*)"/#).last { return String(literal.1) }
        if code.contains("principal") { return "x@X.EXAMPLE" }
        if code.contains("server") { return "https://x.example" }
        return code == "secret" ? "--user x" : "x"
    }

    @Test func theSourcesNameCommands() {
        #expect(Self.hints().count > 80)
    }

    /// Those whose first word is an interpolation are left out.
    @Test(arguments: Set(hints()).filter { !names.contains($0.text) && !$0.text.hasPrefix("countersign \\(") })
    func aNamedCommandCanBeRun(hint: Hint) throws {
        let faults = ["x", ""].compactMap { value -> String? in
            do {
                _ = try CountersignCommand.parseAsRoot(Self.words(hint.text, value))
                return nil
            } catch {
                let isHelp = CountersignCommand.exitCode(for: error).rawValue == 0
                return isHelp ? nil : CountersignCommand.message(for: error)
            }
        }
        #expect(faults.count < 2, "\(faults)")
    }
}
