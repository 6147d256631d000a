// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FoundationEssentials

/// `COUNTERSIGN_<FLAG>`: a flag from the environment, used if the command line does not contain it.
///
/// `COUNTERSIGN_ACCESS_LOG=-` means `--access-log -`; `yes`, `true` or `1` set a flag that has no value.
struct EnvironmentFlags {
    /// The keys are flag names without the dashes.
    private let values: [String: String]

    private static let prefix = "COUNTERSIGN_"

    /// Skips `COUNTERSIGN_HOME`, which ``Home`` reads.
    init(_ environment: [String: String]) {
        var values: [String: String] = [:]
        for (name, value) in environment where name.hasPrefix(Self.prefix) && name != "COUNTERSIGN_HOME" {
            let flag = name.dropFirst(Self.prefix.count).lowercased().replacing("_", with: "-")
            values[flag] = value
        }
        self.values = values
    }

    /// `arguments` with the variables that the named command supports inserted after its name.
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
        // Only this command: describing all of them takes longer than the rest of the start-up.
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
            throw ValidationError("\(name) is \(value.debugDescription); expected yes or no")
        }
    }

    // MARK: The argument parser's description of a command, as JSON

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
