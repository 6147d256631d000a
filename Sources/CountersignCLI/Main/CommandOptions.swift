// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials

/// The options and flags of one command, from the argument parser's description of it.
struct CommandOptions {
    struct Option {
        /// Without the dashes; nil if it has only a short name.
        let longName: String?
        /// As on the command line: `--home`, `-h`.
        let names: [String]
        /// False for a flag.
        let hasValue: Bool
    }

    let all: [Option]

    /// The names of all options, as on the command line.
    var names: [String] { all.flatMap(\.names) }

    init(of command: any ParsableCommand.Type) throws {
        let tool = try JSONDecoder().decode(Tool.self, from: Data(command._dumpHelp().utf8))
        all = (tool.command.arguments ?? []).compactMap { argument in
            guard argument.kind != "positional", let names = argument.names else { return nil }
            return Option(
                longName: names.first { $0.kind == "long" }?.name,
                names: names.map { ($0.kind == "long" ? "--" : "-") + $0.name }, hasValue: argument.kind == "option")
        }
    }

    // MARK: The description, in JSON

    private struct Tool: Decodable {
        let command: Command
    }

    private struct Command: Decodable {
        let arguments: [Argument]?
    }

    private struct Argument: Decodable {
        struct Name: Decodable {
            let kind: String
            let name: String
        }

        let kind: String
        let names: [Name]?
    }
}
