// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import FoundationEssentials

/// `COUNTERSIGN_<FLAG>`: a flag of the command that is run, taken from the environment where the arguments do not have it.
///
/// `COUNTERSIGN_ACCESS_LOG=-` stands for `--access-log -`; a flag without a value is set by `yes`, `true` or `1`.
struct EnvironmentFlags {
    /// By flag name, without the dashes.
    private let values: [String: String]

    private static let prefix = "COUNTERSIGN_"

    /// `COUNTERSIGN_HOME` is left to ``Home``.
    init(_ environment: [String: String]) {
        var values: [String: String] = [:]
        for (name, value) in environment where name.hasPrefix(Self.prefix) && name != "COUNTERSIGN_HOME" {
            let flag = name.dropFirst(Self.prefix.count).lowercased().replacing("_", with: "-")
            values[flag] = value
        }
        self.values = values
    }

    /// `arguments` with the variables that the named command knows put in behind its name.
    func inserted(into arguments: [String], of root: any ParsableCommand.Type) throws -> [String] {
        guard !values.isEmpty else { return arguments }
        var command = root
        var depth = 0
        while depth < arguments.count,
            let next = command.configuration.subcommands.first(where: {
                $0.configuration.commandName == arguments[depth]
            })
        {
            command = next
            depth += 1
        }
        let given = arguments[depth...].prefix { $0 != "--" }
        var inserted: [String] = []
        // Of this command alone: to describe all of them takes longer than all else that is done before one runs.
        for argument in try Self.flags(of: command) {
            guard let flag = argument.names?.first(where: { $0.kind == "long" })?.name, let value = values[flag],
                !given.contains(where: { $0 == "--\(flag)" || $0.hasPrefix("--\(flag)=") })
            else { continue }
            switch argument.kind {
            case "option": inserted.append("--\(flag)=\(value)")
            case "flag":
                if try Self.isSet(value, flag) { inserted.append("--\(flag)") }
            default: continue
            }
        }
        return Array(arguments[..<depth]) + inserted + Array(arguments[depth...])
    }

    private static func flags(of command: any ParsableCommand.Type) throws -> [Argument] {
        try JSONDecoder().decode(Tool.self, from: Data(command._dumpHelp().utf8)).command.arguments ?? []
    }

    private static func isSet(_ value: String, _ flag: String) throws -> Bool {
        switch value.lowercased() {
        case "yes", "true", "1": return true
        case "no", "false", "0", "": return false
        default:
            let name = prefix + flag.uppercased().replacing("-", with: "_")
            throw ValidationError("\(name) is \(value.debugDescription), where yes or no is expected")
        }
    }

    // MARK: The argument parser's description of a command

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
