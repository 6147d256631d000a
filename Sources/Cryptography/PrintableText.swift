// SPDX-License-Identifier: Apache-2.0

/// Makes text from a server, a file or another program safe for people: for the terminal, for error messages and for
/// logs. Only ``isVisible(_:)`` decides which characters may be shown unchanged.
package enum PrintableText {
    /// Whether the character looks like itself. Those that control a terminal, are invisible, end a line or change the
    /// direction of the text are not: the categories Cc, Cf, Zl and Zp, and the properties Bidi_Control and
    /// Default_Ignorable_Code_Point of Unicode, which variation selectors, tags and fillers have.
    package static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return (0x20...0x7E).contains(scalar.value) }
        let properties = scalar.properties
        guard !properties.isDefaultIgnorableCodePoint, !properties.isBidiControl else { return false }
        return switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: false
        default: true
        }
    }

    /// With each character that is not visible as `\u{202E}`. `keepsLines`: line breaks stay.
    package static func escaped(_ text: some StringProtocol, keepsLines: Bool = false) -> String {
        // Most texts are ASCII.
        guard !text.utf8.allSatisfy({ (0x20...0x7E).contains($0) || (keepsLines && $0 == 0x0A) }) else {
            return String(text)
        }
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if isVisible(scalar) || (keepsLines && scalar == "\n") {
                result.append(scalar)
            } else {
                result.append(contentsOf: "\\u{\(String(scalar.value, radix: 16, uppercase: true))}".unicodeScalars)
            }
        }
        return String(result)
    }

    /// JSON text with the same values (RFC 8259 §7), in which each character that is not visible is escaped. White
    /// space between the values stays.
    package static func escapedJSON(_ json: String) -> String {
        guard !json.utf8.allSatisfy({ $0 < 0x7F }) else { return json }
        var result = String.UnicodeScalarView()
        for scalar in json.unicodeScalars {
            if scalar == "\n" {
                result.append(scalar)
            } else {
                result.append(contentsOf: escapedJSON(scalar).unicodeScalars)
            }
        }
        return String(result)
    }

    /// The character, or `\u202e` if it is not visible.
    package static func escapedJSON(_ scalar: Unicode.Scalar) -> String {
        guard !isVisible(scalar) else { return String(Character(scalar)) }
        return Character(scalar).utf16.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }

    /// On one line: each run of white space is one space, and invisible characters are removed, with those that no font
    /// has. A longer text is cut at `limit` characters.
    package static func line(_ text: String, limit: Int) -> String {
        var line = String.UnicodeScalarView()
        var isSpace = true
        for scalar in text.unicodeScalars {
            let isBlank = isBlank(scalar)
            guard isBlank || (isVisible(scalar) && !isUnknown(scalar)) else { continue }
            if isBlank, isSpace { continue }
            guard line.count < limit else { return String(line) + "…" }
            line.append(isBlank ? " " : scalar)
            isSpace = isBlank
        }
        if line.last == " " { line.removeLast() }
        return String(line)
    }

    /// Also the control characters, which separate words as often as not, and U+2800, a pattern without dots.
    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar.properties.generalCategory == .control || scalar.value == 0x2800
    }

    private static func isUnknown(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .privateUse, .unassigned: true
        default: false
        }
    }

    /// The maximum length, in characters.
    package static let limit = 60

    /// In quotes, truncated to ``limit`` characters, with a dot for each byte that is not printable ASCII.
    package static func quote(_ text: some StringProtocol) -> String { quote(Array(text.utf8)) }

    /// In quotes, truncated to ``limit`` bytes, with a dot for each byte that is not printable ASCII and one space for
    /// each run of white space.
    package static func quote(_ bytes: [UInt8]) -> String { "\"\(plain(bytes))\"" }

    /// In quotes, truncated to 80 characters, with all but printable ASCII as `\u{201C}`, so that a host or a word that
    /// only looks like another one is seen to differ.
    package static func quoteASCII(_ text: some StringProtocol) -> String {
        var quoted = ""
        for (index, scalar) in text.unicodeScalars.enumerated() {
            guard index < 80 else { return "\"\(quoted)...\"" }
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case " "..."~": quoted.unicodeScalars.append(scalar)
            default: quoted += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            }
        }
        return "\"\(quoted)\""
    }

    /// With a dot for each byte that is not printable ASCII, and without the quotes.
    package static func plain(_ text: some StringProtocol) -> String { plain(Array(text.utf8)) }

    /// Without quotes and with a higher limit, for messages of libcurl and of servers.
    package static func longer(_ text: String) -> String { plain(Array(text.utf8), limit: 200) }

    private static func plain(_ bytes: [UInt8], limit: Int = limit) -> String {
        var text = ""
        var isSpace = true
        for byte in bytes {
            guard text.utf8.count < limit else { return text + "..." }
            let isBlank = byte == 0x20 || (0x09...0x0D).contains(byte)
            if isBlank {
                if !isSpace { text += " " }
            } else {
                text.unicodeScalars.append(
                    (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "\"") ? Unicode.Scalar(byte) : ".")
            }
            isSpace = isBlank
        }
        return text
    }
}
