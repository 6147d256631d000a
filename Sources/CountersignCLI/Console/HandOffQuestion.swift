// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Asks at the terminal whether a page may hand a URL to another program, such as a wallet.
enum HandOffQuestion {
    /// Anything but `y` or `yes` is a no, and so is a missing terminal.
    static func isAgreed(to url: String) async -> Bool {
        guard let terminal = TerminalAnswers() else { return false }
        return await isAgreed(to: url, at: terminal)
    }

    static func isAgreed(to url: String, at terminal: TerminalAnswers) async -> Bool {
        await terminal.show("The page wants to open another program with \(PrintableText.line(url, limit: 200))\n")
        let line = await terminal.line(after: "Open it? [y/N] ")
        return ["y", "yes"].contains(line?.utf8Text?.lowercased())
    }
}
