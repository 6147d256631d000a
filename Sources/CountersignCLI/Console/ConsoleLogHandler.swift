// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignEvents
import CountersignJSON
import Glibc
import Logging

/// Writes the library's log to standard error in the form of the program's own messages: `countersign: warning: …`, and
/// `countersign: hint: …` for the metadata key `hint`; or as JSON, one object per line.
struct ConsoleLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .info
    var isJSON = false
    /// Gets each message as an event, too.
    var events: EventBoard?

    /// A logger that drops messages below `level`.
    static func logger(
        _ level: Logger.Level = .info, isJSON: Bool = false, events: EventBoard? = nil
    ) -> Logger {
        Logger(label: "countersign") { _ in ConsoleLogHandler(logLevel: level, isJSON: isJSON, events: events) }
    }

    subscript(metadataKey key: String) -> Logger.MetadataValue? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let hint = (event.metadata?["hint"] ?? metadata["hint"]).map { "\($0)" }
        events?.tell(.notice(level: event.level.rawValue, message: "\(event.message)", hint: hint))
        guard !isJSON else { return writeJSON(event, hint) }
        let kind =
            switch event.level {
            case .trace, .debug, .info, .notice: "info"
            case .warning: "warning"
            case .error, .critical: "error"
            }
        Console.log(kind, "\(event.message)")
        if let hint { Console.log("hint", hint) }
    }

    private func writeJSON(_ event: LogEvent, _ hint: String?) {
        var line = JSONObject()
        line.add("time", Timestamp(WallClock.now()).text)
        line.add("level", event.level.rawValue)
        line.add("message", "\(event.message)")
        line.add("hint", ifAny: hint)
        Console.write(line.utf8 + [UInt8(ascii: "\n")], to: STDERR_FILENO)
    }
}
