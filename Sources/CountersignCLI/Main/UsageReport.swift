// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography

/// A usage error in this program's form: the fault first, as in every other error, then the remedy.
struct UsageReport {
    /// The error.
    let message: String
    /// Lines that help.
    let hints: [String]

    /// `arguments` are those of the command line.
    init(_ error: any Error, _ arguments: [String]) {
        if let unknown = UnknownCommand.first(in: arguments) {
            message = unknown.sentence
            hints = ["`\(unknown.path) --help` lists the commands"]
            return
        }
        if let misplaced = MisplacedOption(in: arguments) {
            message = misplaced.sentence
            hints = [misplaced.hint]
            return
        }
        var message = CountersignCommand.message(for: error)
        if let first = message.first, message.dropFirst().first?.isUppercase != true {
            message.replaceSubrange(...message.startIndex, with: first.lowercased())
        }
        if message.hasSuffix(".") { message.removeLast() }
        self.message = message
        let lines = CountersignCommand.fullMessage(for: error).split(separator: "\n")
        let usage = lines.first { $0.hasPrefix("Usage:") }.map { Self.shortened($0.dropFirst("Usage: ".count)) }
        let help = lines.first { $0.contains("--help") }.map { $0.trimming(" .") }
        hints = [
            usage.map { "usage: \($0)" }, help.map { $0.prefix(1).lowercased() + $0.dropFirst() },
        ].compactMap(\.self)
    }

    /// For `countersign help WORD…` if the words name no command.
    init?(unknownHelp arguments: [String]) {
        guard arguments.first == "help", let unknown = UnknownCommand.first(in: Array(arguments.dropFirst())) else {
            return nil
        }
        (message, hints) = (unknown.sentence, ["`\(unknown.path) --help` lists the commands"])
    }

    func write() {
        Console.log("error", message)
        for hint in hints { Console.log("hint", hint) }
    }

    /// `countersign explain [--home <dir>] [--json] <url>` as `countersign explain [options] <url>`.
    static func shortened(_ usage: some StringProtocol) -> String {
        var words: [Substring] = []
        var hasOptions = false
        for word in Self.words(of: Substring(usage)) {
            guard word.hasPrefix("[-") || word == "[<options>]" else {
                words.append(word)
                continue
            }
            if !hasOptions { words.append("[options]") }
            hasOptions = true
        }
        return words.joined(separator: " ")
    }

    /// The words of a usage line. A part in brackets is one word.
    private static func words(of usage: Substring) -> [Substring] {
        var words: [Substring] = []
        var depth = 0
        var start = usage.startIndex
        for index in usage.indices {
            switch usage[index] {
            case "[": depth += 1
            case "]": depth -= 1
            case " " where depth == 0:
                if start < index { words.append(usage[start..<index]) }
                start = usage.index(after: index)
            default: break
            }
        }
        if start < usage.endIndex { words.append(usage[start...]) }
        return words
    }
}

/// A word on the command line in the place of a command.
struct UnknownCommand {
    /// `countersign`, or a command that has commands of its own.
    let path: String
    /// `there is no command "serv"; did you mean serve?`.
    let sentence: String

    /// Nil if all commands are known.
    static func first(in arguments: [String]) -> UnknownCommand? {
        var command: any ParsableCommand.Type = CountersignCommand.self
        var path: [String] = []
        for word in arguments {
            let known = command.configuration.subcommands
            let names = known.map { $0.configuration.commandName ?? "" }
            if let index = names.firstIndex(of: word) {
                command = known[index]
                path.append(word)
                continue
            }
            guard !known.isEmpty, !word.hasPrefix("-"), word != "help" else { return nil }
            let meant = SpellingHint.closest(to: word, among: names)
            // The word may be an argument of the command that is meant without its name.
            if meant == nil, command.configuration.defaultSubcommand != nil { return nil }
            return UnknownCommand(word, below: path, meant: meant)
        }
        return nil
    }

    private init(_ word: String, below path: [String], meant: String?) {
        self.path = (["countersign"] + path).joined(separator: " ")
        let unknown = (path + [word]).joined(separator: " ")
        let suggestion = meant.map { "; did you mean \((path + [$0]).joined(separator: " "))?" } ?? ""
        sentence = "there is no command \"\(unknown)\"" + suggestion
    }
}

/// An option before the command.
struct MisplacedOption {
    /// `--home comes after the command`, or `unknown option '--hom'` if it is not an option of the command.
    let sentence: String
    /// The command line in the right order, or the command that lists the options.
    let hint: String

    /// Nil if the arguments do not begin with an option, or contain no command.
    init?(in arguments: [String]) {
        guard let option = arguments.first, option.hasPrefix("-") else { return nil }
        let names = CountersignCommand.configuration.subcommands.map { $0.configuration.commandName }
        // The value of an option may be called like a command.
        let start = option == "--home" ? 2 : 1
        guard let command = arguments.indices.dropFirst(start).first(where: { names.contains(arguments[$0]) }) else {
            return nil
        }
        var end = command
        var type: any ParsableCommand.Type = CountersignCommand.self
        while end < arguments.count,
            let next = type.configuration.subcommands.first(where: { $0.configuration.commandName == arguments[end] })
        {
            type = next
            end += 1
        }
        let known = (try? CommandOptions(of: type).names) ?? []
        let given = arguments[..<command].filter { $0.hasPrefix("-") }.map { String($0.prefix { $0 != "=" }) }
        if let unknown = given.first(where: { !known.contains($0) }) {
            let meant = SpellingHint.closest(to: unknown, among: known)
            sentence = "unknown option '\(unknown)'" + (meant.map { "; did you mean \($0)?" } ?? "")
            hint = "`countersign \(arguments[command..<end].joined(separator: " ")) --help` lists the options"
            return
        }
        let words = arguments[command..<end] + arguments[..<command] + arguments[end...]
        sentence = "\(option.prefix { $0 != "=" }) comes after the command"
        hint = "`countersign \(words.map(Self.quoted).joined(separator: " "))`"
    }

    /// ``ShellWord`` also quotes a word that begins with a hyphen, which is an option here.
    private static func quoted(_ word: String) -> String {
        let name = word.drop { $0 == "-" }
        return ShellWord.quoted(String(name)) == name ? word : ShellWord.quoted(word)
    }
}
