// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CountersignSitePolicy

@Suite struct SpellingTests {
    @Test(arguments: [
        ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("answer", "answer", 0), ("awnser", "answer", 2),
        ("kitten", "sitting", 3),
        ("flaw", "lawn", 2), ("spm", "spn", 1),
    ])
    func editsAreCounted(word: String, other: String, count: Int) {
        #expect(Spelling.edits(from: word, to: other) == count)
        #expect(Spelling.edits(from: other, to: word) == count)
    }

    @Test func twoEditsAreAHintAndThreeAreNot() {
        #expect(Spelling.hint(for: "antswerr", among: ["answer", "spn"]) == "did you mean \"answer\"?")
        #expect(Spelling.hint(for: "aantswerr", among: ["answer", "spn"]) == "known are answer, spn")
        #expect(Spelling.hint(for: "xxn", among: ["answer", "spn"]) == "did you mean \"spn\"?")
        #expect(Spelling.hint(for: "xxx", among: ["answer", "spn"]) == "known are answer, spn")
        #expect(Spelling.hint(for: String(repeating: "a", count: 100_000), among: ["answer"]) == "known are answer")
    }
}
