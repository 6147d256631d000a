// SPDX-License-Identifier: Apache-2.0

import CountersignSignIn
import Testing

/// Texts of pages on a terminal.
@Suite struct PageTextTests {
    @Test(arguments: [
        ("User name", "User name"), ("Grüße, 山田", "Grüße, 山田"), ("", ""),
        ("  a \t\r\n\u{B}\u{2028}  b\u{A0}\u{3000} ", "a b"),
        // A new line made of blanks, which the terminal would wrap.
        (String(repeating: " ", count: 500) + "Password:", "Password:"),
        (String(repeating: "\u{2800}", count: 500) + "Password:", "Password:"),
        ("a\u{1B}[31mb\u{7}", "a [31mb"),
        // Invisible, or another direction.
        ("a\u{200B}b\u{202E}c\u{3164}d\u{115F}e\u{AD}f\u{FEFF}g\u{E000}h", "abcdefgh"),
    ])
    func onlyVisibleTextIsShownOnOneLine(text: String, shown: String) {
        #expect(PageText.printable(text) == shown)
    }

    @Test func aLongTextIsCut() {
        #expect(PageText.printable(String(repeating: "a", count: 200)) == String(repeating: "a", count: 200))
        #expect(PageText.printable(String(repeating: "a", count: 201)) == String(repeating: "a", count: 200) + "…")
        #expect(PageText.printable("abc", limit: 2) == "ab…")
    }
}
