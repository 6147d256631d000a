// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignCryptography

@Suite struct SpellingHintTests {
    @Test(arguments: [
        ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("answer", "answer", 0), ("awnser", "answer", 2),
        ("kitten", "sitting", 3),
        ("flaw", "lawn", 2), ("spm", "spn", 1), ("sevre", "serve", 1), ("list", "test", 2),
    ])
    func editsAreCounted(word: String, other: String, count: Int) {
        #expect(SpellingHint.edits(from: word, to: other) == count)
        #expect(SpellingHint.edits(from: other, to: word) == count)
    }

    @Test(arguments: [
        ("cert", "certificate"), ("ca", "ca"), ("sevre", "serve"), ("trsut", "trust"), ("list", nil), ("c", nil),
        ("ex", nil),
    ])
    func theOnlyWordWithThisBeginningIsMeant(word: String, meant: String?) {
        let known = ["certificate", "ca", "serve", "trust", "test", "exec", "explain"]
        #expect(SpellingHint.closest(to: word, among: known) == meant)
    }

    @Test func twoEditsGiveAHintAndThreeDoNot() {
        #expect(SpellingHint.text(for: "antswerr", among: ["answer", "spn"]) == "did you mean \"answer\"?")
        #expect(SpellingHint.text(for: "aantswerr", among: ["answer", "spn"]) == "known words: answer, spn")
        #expect(SpellingHint.text(for: "xxn", among: ["answer", "spn"]) == "known words: answer, spn")
        #expect(SpellingHint.text(for: "xxx", among: ["answer", "spn"]) == "known words: answer, spn")
        #expect(
            SpellingHint.text(for: String(repeating: "a", count: 100_000), among: ["answer"]) == "known words: answer")
    }
}
