// SPDX-License-Identifier: Apache-2.0

/// Names of links to the executable that stand for one of its commands: those that other programs look for.
enum HelperNames {
    private static let commands: [String: [String]] = [
        "git-credential-countersign": ["token", "git"],
        "docker-credential-countersign": ["token", "docker"],
    ]

    /// The arguments of the command, without the program's name, from those of the process.
    static func arguments(_ words: [String]) -> [String] {
        let name = words.first?.split(separator: "/").last.map(String.init) ?? ""
        return (commands[name] ?? []) + words.dropFirst()
    }
}
