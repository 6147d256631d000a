// SPDX-License-Identifier: Apache-2.0

/// Makes text of a page, or of the program that shows it, safe for a terminal and for a person's eye.
package enum PageText {
    /// On one line: each run of white space is one space, and characters that are invisible, control a terminal or
    /// change the direction of the text are left out. A longer text is cut at `limit` characters.
    package static func printable(_ text: String, limit: Int = 200) -> String {
        var line = String.UnicodeScalarView()
        var isSpace = true
        for scalar in text.unicodeScalars {
            let isBlank = isBlank(scalar)
            guard isBlank || isVisible(scalar) else { continue }
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

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        guard !scalar.properties.isDefaultIgnorableCodePoint else { return false }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        default: true
        }
    }
}
