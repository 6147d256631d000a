// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignEvents
import CountersignHome
import Logging

/// `--audit` and `--audit-required` of `serve`.
struct AuditOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Append a record of each use of a credential to this file, which `countersign audit verify FILE` checks.",
            valueName: "file"))
    var audit: String?

    @Flag(
        help: """
            Answer requests to listed sites with status 503 while the audit cannot be written. (default: forward them, \
            and record how many uses are missing)
            """)
    var auditRequired = false

    func validate() throws {
        guard audit != "-", audit != "" else {
            throw ValidationError("--audit needs a file that can be read again; ./- is one of that name")
        }
        guard audit != nil || !auditRequired else { throw ValidationError("--audit-required requires --audit") }
    }

    /// `report` receives a sentence when records are lost.
    func recorder(_ home: Home, report: @escaping @Sendable (String) -> Void) -> AuditRecorder? {
        audit.map { file in
            AuditRecorder(
                path: HomeFile.absolutePath(file) ?? file, home: home, isRequired: auditRequired, report: report)
        }
    }
}

/// `--log-level` and `--log-format` of `serve`.
struct LoggingOptions: ParsableArguments {
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case text, json
    }

    @Option(
        help: ArgumentHelp(
            "Log this and more on standard error: \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")).",
            valueName: "level"))
    var logLevel = Logger.Level.info

    @Option(help: ArgumentHelp("Log in text, or in JSON with one object per line.", valueName: "text|json"))
    var logFormat = Format.text

    var logger: Logger { ConsoleLogHandler.logger(logLevel, isJSON: logFormat == .json) }

    /// The same, whose messages are events, too.
    func logger(telling events: EventBoard) -> Logger {
        ConsoleLogHandler.logger(logLevel, isJSON: logFormat == .json, events: events)
    }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}
