// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

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
        if let implied = command.configuration.defaultSubcommand { command = implied }
        let given = arguments[depth...].prefix { $0 != "--" }
        var inserted: [String] = []
        // Only this command: describing all of them takes longer than the rest of the start-up.
        for option in try CommandOptions(of: command).all {
            guard let flag = option.longName, let value = values[flag],
                !given.contains(where: { $0 == "--\(flag)" || $0.hasPrefix("--\(flag)=") })
            else { continue }
            if option.hasValue {
                inserted.append("--\(flag)=\(value)")
            } else if try Self.isSet(value, flag) {
                inserted.append("--\(flag)")
            }
        }
        return Array(arguments[..<depth]) + inserted + Array(arguments[depth...])
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
}
