// SPDX-License-Identifier: Apache-2.0

import Logging

/// Writes the library's log to standard error in the form of the program's own messages: `countersign: warning: …`, and
/// `countersign: hint: …` for the metadata key `hint`.
struct ConsoleLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .info

    /// A logger that drops messages below `level`.
    static func logger(_ level: Logger.Level = .info) -> Logger {
        Logger(label: "countersign") { _ in ConsoleLogHandler(logLevel: level) }
    }

    subscript(metadataKey key: String) -> Logger.MetadataValue? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let kind =
            switch event.level {
            case .trace, .debug, .info, .notice: "info"
            case .warning: "warning"
            case .error, .critical: "error"
            }
        Console.log(kind, "\(event.message)")
        if let hint = event.metadata?["hint"] ?? metadata["hint"] { Console.log("hint", "\(hint)") }
    }
}
