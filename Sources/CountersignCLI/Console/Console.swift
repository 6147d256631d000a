// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import FoundationEssentials
import Glibc
import Synchronization

/// Results go to standard output; errors, warnings and hints go to standard error.
enum Console {
    /// Writes `text` for people to standard output, unbuffered and safe for a terminal.
    static func result(_ text: String) {
        write(text, to: STDOUT_FILENO)
    }

    /// Writes text of our own that a program reads, or that has colours, to standard output.
    static func result(unchanged text: String) {
        write(Array(text.utf8), to: STDOUT_FILENO)
    }

    /// Writes `value` to standard output as JSON with sorted keys.
    static func result(json value: some Encodable) throws {
        result(try json(value))
    }

    /// `value` as JSON with sorted keys, and a line break at the end.
    static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return PrintableText.escapedJSON(String(decoding: try encoder.encode(value), as: UTF8.self)) + "\n"
    }

    /// Writes `countersign: error: …` and the diagnostic's hint to standard error.
    static func error(_ diagnostic: Diagnostic) {
        log("error", diagnostic.message)
        if let hint = diagnostic.hint { log("hint", hint) }
    }

    /// `value` as JSON on one line, with sorted keys and a line break at the end.
    static func jsonLine(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return PrintableText.escapedJSON(String(decoding: try encoder.encode(value), as: UTF8.self)) + "\n"
    }

    static func warning(_ message: String, hint: String? = nil) {
        log("warning", message)
        if let hint { log("hint", hint) }
    }

    /// Writes `countersign: KIND: …` to standard error for each line of `message`.
    static func log(_ kind: String, _ message: String) {
        for line in message.split(separator: "\n") {
            write("countersign: \(kind): \(printable(PrintedCommand.complete(line)))\n", to: STDERR_FILENO)
        }
    }

    /// For one line of text that is measured or framed before it is written. Text from a server or a file must not
    /// drive the terminal, or look like another text.
    static func printable(_ line: some StringProtocol) -> String { PrintableText.escaped(line) }

    /// Whether output was lost. The program then fails, after it has done its work.
    static var hasLostOutput: Bool { lostOutput.load(ordering: .relaxed) }

    private static let lostOutput = Atomic(false)

    /// Reports the first loss of output. A reader that has closed its end wants no more of it.
    private static func noteLoss(_ reason: Int32) {
        guard reason != EPIPE, !lostOutput.exchange(true, ordering: .relaxed) else { return }
        error(
            Diagnostic(
                "cannot write to standard output: \(String(cString: strerror(reason)))",
                hint: SystemFault.remedy(for: reason)))
    }

    /// Text for people, safe for a terminal.
    static func write(_ text: String, to descriptor: Int32) {
        write(Array(PrintableText.escaped(text, keepsLines: true).utf8), to: descriptor)
    }

    static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                if descriptor == STDOUT_FILENO { noteLoss(errno) }
                return
            }
            rest = rest.dropFirst(count)
        }
    }
}

/// A date in UTC, `YYYY-MM-DD`.
enum Day {
    static let seconds: Int64 = 86_400

    /// `seconds` since 1970.
    static func text(_ seconds: Int64) -> String {
        String(WallClock.rfc3339(seconds).prefix { $0 != "T" })
    }

    /// `12 days left`, or hours if there are fewer than 48, or `expired 2026-01-01`.
    static func left(until notAfter: Int64, now: Int64) -> String {
        if notAfter < now { return "expired \(text(notAfter))" }
        return "\(span(notAfter - now, days: notAfter / seconds - now / seconds)) left"
    }

    /// `valid until 2026-01-01`, or `valid for 24 hours` if that is less than two days.
    static func validity(until notAfter: Int64, now: Int64) -> String {
        guard (0..<2 * seconds).contains(notAfter - now) else { return "valid until \(text(notAfter))" }
        return "valid for \(span(notAfter - now, days: 0))"
    }

    private static func span(_ length: Int64, days: Int64) -> String {
        guard length < 2 * seconds else { return "\(days) days" }
        let hours = length / 3600
        return hours == 0 ? "less than 1 hour" : "\(hours) \(hours == 1 ? "hour" : "hours")"
    }
}
