// SPDX-License-Identifier: Apache-2.0

import Countersign
import FoundationEssentials
import Glibc

/// Where results go, and where talk goes.
enum Console {
    /// To standard output, as it stands and at once.
    static func result(_ text: String) {
        write(text, to: STDOUT_FILENO)
    }

    /// `value` as JSON on standard output, keys in order.
    static func result(json value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        result(String(decoding: try encoder.encode(value), as: UTF8.self) + "\n")
    }

    /// `countersign: error: …` and the hint behind it, on standard error.
    static func error(_ diagnostic: Diagnostic) {
        talk("error", diagnostic.message)
        if let hint = diagnostic.hint { talk("hint", hint) }
    }

    static func warning(_ message: String, hint: String? = nil) {
        talk("warning", message)
        if let hint { talk("hint", hint) }
    }

    /// One line a line of `message`, with what might drive a terminal made visible.
    static func talk(_ kind: String, _ message: String) {
        for line in message.split(separator: "\n") {
            write("countersign: \(kind): \(printable(line))\n", to: STDERR_FILENO)
        }
    }

    /// With control characters made visible.
    static func printable(_ line: some StringProtocol) -> String {
        var text = String.UnicodeScalarView()
        for scalar in line.unicodeScalars {
            if scalar.properties.generalCategory == .control {
                text.append(contentsOf: "\\u{\(String(scalar.value, radix: 16, uppercase: true))}".unicodeScalars)
            } else {
                text.append(scalar)
            }
        }
        return String(text)
    }

    static func write(_ text: String, to descriptor: Int32) {
        write(Array(text.utf8), to: descriptor)
    }

    static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            // A reader that has gone wants no more.
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
