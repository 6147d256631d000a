// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignCryptography
import CountersignHome
import Glibc

/// `countersign log`.
struct LogCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "Show the access log of `countersign serve` in lines for people.",
        discussion: """
            Prints a line for each request: the local time, the decision, the status, the duration, the request, and \
            with which scheme and credential a challenge was answered, or why not.

            With --follow, waits for more lines, also after logrotate has renamed or truncated the file. Lines that \
            are not entries of an access log are left out, and their number is reported on standard error.

            EXAMPLES:
              countersign log ~/countersign.log
              countersign log --follow --site '*.corp.example' ~/countersign.log
              countersign log --refused --json ~/countersign.log | jq -r .reason | sort | uniq -c
              countersign serve --access-log - | countersign log
            """)

    @OptionGroup var chosen: LogFilterOptions

    @Flag(name: [.long, .customShort("f")], help: "Wait for more lines.")
    var follow = false

    @Flag(help: "Print the matching lines as they are, in JSON.")
    var json = false

    @Argument(help: ArgumentHelp("The access log; - is standard input. (default: -)", valueName: "file"))
    var file = "-"

    func validate() throws {
        guard !follow || file != "-" else {
            throw ValidationError("--follow needs a file; standard input is read to its end without it")
        }
    }

    func run() throws {
        guard file != "-" || isatty(STDIN_FILENO) == 0 else {
            throw CountersignError(
                .environment, "standard input is a terminal, which has no access log",
                hint: "name the file of `countersign serve --access-log FILE`: `countersign log FILE`")
        }
        var printer = LogPrinter(filter: try chosen.filter(), isJSON: json, name: file == "-" ? "standard input" : file)
        let source = file == "-" ? LogSource() : try LogSource(path: file)
        var lines = LogLines()
        while LogPrinter.hasReader {
            let bytes = try source.next()
            if !bytes.isEmpty {
                printer.print(lines.lines(in: bytes))
                continue
            }
            guard follow else { break }
            printer.reportDamage()
            switch source.followChange() {
            case .none: usleep(200_000)
            case .replaced: printer.print(lines.end())
            // The start of the unfinished line is gone.
            case .truncated: _ = lines.end()
            }
        }
        printer.print(lines.end())
        printer.reportDamage()
    }
}

/// Prints the lines of an access log, and counts those that are none.
struct LogPrinter {
    let filter: LogFilter
    let isJSON: Bool
    /// Of the log, for messages.
    let name: String
    private static let ownLine = Array("countersign: ".utf8)

    private var damaged = 0
    private var reported = 0

    init(filter: LogFilter, isJSON: Bool, name: String) {
        self.filter = filter
        self.isJSON = isJSON
        self.name = name
    }

    mutating func print(_ lines: [[UInt8]?]) {
        var text = ""
        for line in lines {
            guard let line, let entry = LogEntry(line) else {
                // An empty line is no loss, and `serve` writes its addresses to the same standard output.
                if line.map({ !$0.isEmpty && !$0.starts(with: Self.ownLine) }) ?? true { damaged += 1 }
                continue
            }
            guard filter.matches(entry) else { continue }
            if isJSON {
                text += PrintableText.escapedJSON(String(decoding: line, as: UTF8.self)) + "\n"
            } else {
                text += Console.printable(entry.text) + "\n"
            }
        }
        if !text.isEmpty { Console.result(unchanged: text) }
    }

    /// Reports the damaged lines since the last report.
    mutating func reportDamage() {
        let count = damaged - reported
        guard count > 0 else { return }
        reported = damaged
        Console.warning(
            "\(name): \(count) \(count == 1 ? "line is not an entry" : "lines are not entries") of an access log")
    }

    /// Whether somebody still reads standard output.
    static var hasReader: Bool {
        var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return poll(&output, 1, 0) <= 0 || output.revents & Int16(POLLERR) == 0
    }
}
