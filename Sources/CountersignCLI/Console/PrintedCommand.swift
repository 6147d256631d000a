// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import FoundationEssentials
import Synchronization

/// Commands in messages: `` `countersign credential list` `` for the home of the command that prints it.
enum PrintedCommand {
    private static let home = Mutex<String?>(nil)
    private static let program = Mutex<(any ParsableCommand.Type)?>(nil)

    /// The command with all others below it, which knows where a command's arguments begin. Nothing is completed before
    /// it is set. It is not named here because each of the commands prints others.
    static func use(program command: any ParsableCommand.Type) { program.withLock { $0 = command } }

    /// The home that printed commands name; nil if they use it by default.
    static func use(home path: String?) {
        let folder = FileManager.default.currentDirectoryPath
        home.withLock { $0 = path.map { $0.hasPrefix("/") ? $0 : "\(folder)/\($0)" } }
    }

    /// `text` with `--home` in each command that it contains.
    static func complete(_ text: some StringProtocol) -> String {
        guard let path = home.withLock({ $0 }) else { return String(text) }
        return complete(text, home: path)
    }

    /// A command begins with "`countersign " and ends with the next backquote.
    static func complete(_ text: some StringProtocol, home path: String) -> String {
        let pieces = text.split(separator: "`", omittingEmptySubsequences: false)
        return pieces.enumerated().map { index, piece in
            // A piece between two backquotes has an odd index, and another one follows.
            guard index % 2 == 1, index + 1 < pieces.count else { return String(piece) }
            return command(Substring(piece), home: path)
        }.joined(separator: "`")
    }

    private static func command(_ text: Substring, home path: String) -> String {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.first == "countersign", !words.contains("--home"), !words.contains("--help"),
            var command = program.withLock({ $0 })
        else { return String(text) }
        var depth = 1
        while depth < words.count,
            let next = command.configuration.subcommands.first(where: {
                $0.configuration.commandName.map { $0 == words[depth] } == true
            })
        {
            command = next
            depth += 1
        }
        let configuration = command.configuration
        guard configuration.subcommands.isEmpty || configuration.defaultSubcommand != nil else { return String(text) }
        return (words[..<depth] + ["--home", Substring(ShellWord.quoted(path))] + words[depth...])
            .joined(separator: " ")
    }
}
