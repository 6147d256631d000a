// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A text file of commands and their expected output.
///
/// A line that starts with `$ ` is a command for sh. The lines after it are its standard output, lines with `! ` its
/// standard error, and lines with `< ` its standard input; `=> 1` is its exit status if that is not 0. `{*}` matches
/// any text within a line, a line `{...}` any number of lines, and `{folder}` the test's folder. Lines that start with
/// `#`, outside of output, are comments.
struct Transcript: Sendable, CustomStringConvertible {
    struct Step: Sendable {
        let line: Int
        let command: String
        var input = ""
        var output: [String] = []
        var error: [String] = []
        var status: Int32 = 0
    }

    let name: String
    private(set) var steps: [Step] = []

    var description: String { name }

    init(name: String, text: String) {
        self.name = name
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if line.hasPrefix("$ ") {
                steps.append(Step(line: index + 1, command: String(line.dropFirst(2))))
            } else if line.hasPrefix("# ") || steps.isEmpty {
                continue
            } else if line.hasPrefix("< ") {
                steps[steps.count - 1].input += line.dropFirst(2) + "\n"
            } else if line.hasPrefix("! ") {
                steps[steps.count - 1].error.append(String(line.dropFirst(2)))
            } else if line.hasPrefix("=> "), let status = Int32(line.dropFirst(3)) {
                steps[steps.count - 1].status = status
            } else {
                steps[steps.count - 1].output.append(String(line))
            }
        }
        for index in steps.indices {
            while steps[index].output.last == "" { steps[index].output.removeLast() }
        }
    }

    /// All files in Transcripts.
    static let all: [Transcript] = {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Transcripts")
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".txt") }.sorted().compactMap { file in
            guard let text = try? String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8) else {
                return nil
            }
            return Transcript(name: String(file.dropLast(4)), text: text)
        }
    }()

    // MARK: Comparison

    /// Whether `actual` matches the pattern `expected`.
    static func matches(_ expected: ArraySlice<String>, _ actual: ArraySlice<String>) -> Bool {
        guard let pattern = expected.first else { return actual.isEmpty }
        if pattern == "{...}" {
            return (actual.startIndex...actual.endIndex).contains { matches(expected.dropFirst(), actual[$0...]) }
        }
        guard let line = actual.first, matches(pattern[...], line[...]) else { return false }
        return matches(expected.dropFirst(), actual.dropFirst())
    }

    private static func matches(_ pattern: Substring, _ line: Substring) -> Bool {
        guard let wildcard = pattern.range(of: "{*}") else { return pattern == line }
        guard line.hasPrefix(pattern[..<wildcard.lowerBound]) else { return false }
        let rest = line.dropFirst(pattern[..<wildcard.lowerBound].count)
        let behind = pattern[wildcard.upperBound...]
        return (0...rest.count).contains { matches(behind, rest.dropFirst($0)) }
    }
}
