// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography

/// A secret that a program writes: the first line of its standard output. No shell is involved, and it has no input.
package struct ProgramSecret: Sendable {
    private let run: ProgramRun

    /// The prefix of an option's value that names a program.
    package static let prefix = "exec:"

    /// Whether the value of an option names a program by its absolute path.
    package static func isSource(_ text: String) -> Bool { text.hasPrefix("\(prefix)/") }

    /// The program in `exec:/path word word`, without the prefix: the words are divided by spaces.
    package static func words(_ source: String) -> [String] {
        source.dropFirst(prefix.count).split(separator: " ").map(String.init)
    }

    /// `what`: `the client secret`, for errors. What the program says on standard error is shown or, with
    /// `reportsErrors`, part of the error if it fails.
    package init(_ words: [String], what: String, reportsErrors: Bool = false) {
        run = ProgramRun(
            words, consequence: "and \(what) is the first line that it writes", reportsErrors: reportsErrors)
    }

    /// The path of the program.
    package var program: String { run.words.first ?? "" }

    /// All that the program writes. Throws as ``read()`` does.
    package func whole() throws(CountersignError) -> Secret { try run.output() }

    /// Throws `environment` for a program that fails, writes nothing, or takes longer than ten seconds. The error names
    /// it.
    package func read() throws(CountersignError) -> Secret {
        let line = try run.output().firstLine
        guard line.count > 0 else { throw run.failure("wrote no line") }
        return line
    }
}

extension Secret {
    /// The bytes before the first line ending.
    var firstLine: Secret {
        withBytes { bytes in Secret(bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }) }
    }
}
