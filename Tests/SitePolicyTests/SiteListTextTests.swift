// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignSitePolicy

@Suite struct SiteListTextTests {
    static let text = "\u{FEFF}# work\r\n\r\n  https://a.example\tanswer=basic # mine\r\n# https://a.example\nb.example"

    @Test(arguments: [
        ("", "x.example\n"), ("\u{FEFF}", "\u{FEFF}x.example\n"), ("a.example", "a.example\nx.example\n"),
        ("a.example\n", "a.example\nx.example\n"), ("a.example\r\n", "a.example\r\nx.example\r\n"),
        ("# a\r\nb", "# a\r\nb\r\nx.example\r\n"), ("\n", "\nx.example\n"),
    ])
    func anAddedLineComesLast(text: String, result: String) {
        #expect(Array(SiteListText.add("x.example", to: text).utf8) == Array(result.utf8))
    }

    @Test(arguments: [
        ("https://a.example", "\u{FEFF}# work\r\n\r\n# https://a.example\nb.example"),
        ("A.EXAMPLE.:443", "\u{FEFF}# work\r\n\r\n# https://a.example\nb.example"),
        ("b.example", "\u{FEFF}# work\r\n\r\n  https://a.example\tanswer=basic # mine\r\n# https://a.example\n"),
    ])
    func removingTakesTheLineAndNothingElse(pattern: String, result: String) throws {
        let removed = SiteListText.remove(try .init(parsing: pattern), from: Self.text)
        #expect(removed.map { Array($0.utf8) } == Array(result.utf8))
    }

    @Test(arguments: ["http://a.example", "https://a.example:8443", "*.a.example", "c.example", "work"])
    func onlyListedSitesAreRemoved(_ pattern: String) throws {
        #expect(SiteListText.remove(try .init(parsing: pattern), from: Self.text) == nil)
    }

    @Test func theFirstLineAfterAMarkAndEverySpellingAreRemoved() throws {
        let pattern = try SiteListText.Subject(parsing: "a.example")
        #expect(
            SiteListText.remove(pattern, from: "\u{FEFF}a.example\nb\nhttps://A.example x=y\n*\n") == "\u{FEFF}b\n*\n")
        #expect(SiteListText.remove(pattern, from: "a.example") == "")
    }

    @Test func addingAndRemovingALineRestoresTheText() throws {
        let text = Self.text + "\r\n"
        let added = SiteListText.add("*.new.example answer=ntlm", to: text)
        let removed = SiteListText.remove(try .init(parsing: "*.new.example"), from: added)
        #expect(removed.map { Array($0.utf8) } == Array(text.utf8))
    }
}
