// SPDX-License-Identifier: Apache-2.0

import Logging

/// What the library tells its operator, in the form of the program's own talk: `countersign: warning: …`, and
/// `countersign: hint: …` for metadata of that name.
struct ConsoleLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .info

    /// A logger that writes to standard error what is `level` or graver.
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
        Console.talk(kind, "\(event.message)")
        if let hint = event.metadata?["hint"] ?? metadata["hint"] { Console.talk("hint", "\(hint)") }
    }
}
