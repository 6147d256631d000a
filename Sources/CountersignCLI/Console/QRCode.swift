// SPDX-License-Identifier: Apache-2.0

import CountersignCQRCode
import Glibc

/// A QR code (ISO/IEC 18004) as text for a terminal.
struct QRCode {
    /// Lines of half blocks, two rows of modules each, with the quiet zone. Black on white, regardless of the
    /// terminal's colours.
    let lines: [String]
    /// How many columns a line takes.
    let columns: Int

    /// The empty modules that a reader needs on each side (ISO/IEC 18004 §6.3.8).
    private static let quietZone = 4

    /// Nil if libqrencode (Debian: `libqrencode4`) is not installed, or the text is too long for a QR code.
    init?(_ text: String) {
        guard let code = csn_QRcode_encode(text) else { return nil }
        defer { csn_QRcode_free(code) }
        let width = Int(code.pointee.width)
        guard width > 0, let data = code.pointee.data else { return nil }
        func isDark(_ row: Int, _ column: Int) -> Bool {
            let (row, column) = (row - Self.quietZone, column - Self.quietZone)
            return (0..<width).contains(row) && (0..<width).contains(column) && data[row * width + column] & 1 == 1
        }
        let columns = width + 2 * Self.quietZone
        self.columns = columns
        lines = stride(from: 0, to: columns, by: 2).map { row in
            let blocks = (0..<columns).map { column in
                switch (isDark(row, column), isDark(row + 1, column)) {
                case (true, true): "█"
                case (true, false): "▀"
                case (false, true): "▄"
                case (false, false): " "
                }
            }
            return "\u{1B}[30;107m\(blocks.joined())\u{1B}[0m"
        }
    }

    /// Whether standard error is a terminal that can show the code: it is wide enough, has colours and uses UTF-8.
    func fitsTerminal(_ environment: [String: String]) -> Bool {
        guard isatty(STDERR_FILENO) == 1, !["", "dumb"].contains(environment["TERM", default: ""]),
            Self.usesUTF8(environment)
        else { return false }
        var size = winsize()
        return ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && Int(size.ws_col) >= columns
    }

    /// The locale's character set, by the first variable that is set (setlocale(3)).
    private static func usesUTF8(_ environment: [String: String]) -> Bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        return locale.lowercased().hasSuffix("utf-8") || locale.lowercased().hasSuffix("utf8")
    }
}
