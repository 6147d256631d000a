// SPDX-License-Identifier: Apache-2.0

import CountersignEvents
import Testing

@testable import CountersignNotifications

@Suite struct TerminalDialogueTests {
    private typealias Action = TerminalDialogue.Action

    private static func shown(_ id: UInt64) -> [Action] {
        [
            .readKeys,
            .print(
                "\(id): /usr/bin/git wants to send POST to https://git.corp.example:443 with \"work\", 41 s left"),
            .print("\(id): press a to allow it once, m to allow it for 15 minutes, d to deny it"),
        ]
    }

    private static func asking(_ ids: UInt64...) -> TerminalDialogue {
        var dialogue = TerminalDialogue()
        _ = dialogue.questionsRead(ids.map { .made($0) }, isForeground: true, at: 0)
        return dialogue
    }

    private static func key(_ key: Character) -> UInt8 { key.asciiValue ?? 0 }

    @Test func questionsAreAskedOneAfterAnother() {
        var dialogue = TerminalDialogue()
        let both = [QuestionEvent.made(1), .made(2)]
        #expect(dialogue.questionsRead(both, isForeground: true, at: 0) == Self.shown(1))
        #expect(dialogue.questionsRead(both, isForeground: true, at: 9) == [])
        #expect(dialogue.keyPressed(Self.key("a"), at: 1000) == [.stopReading, .answer(1, .once)])
        #expect(dialogue.answerGiven(1, .once, counted: true) == [.print("1: permitted once")])
        // Whichever comes first: the report of the end, or the questions without it.
        #expect(dialogue.questionsRead(both, isForeground: true, at: 1001) == Self.shown(2))
        #expect(dialogue.questionEnded(1, answer: "once") == [])
        #expect(dialogue.keyPressed(Self.key("d"), at: 1002) == [], "a key that was pressed twice")
        #expect(dialogue.keyPressed(Self.key("d"), at: 1401) == [.stopReading, .answer(2, .deny)])
    }

    @Test(arguments: [(Character("a"), QuestionAnswer.once), ("m", .quarter), ("d", .deny)])
    func aKeyIsAnAnswer(key: Character, answer: QuestionAnswer) {
        var dialogue = Self.asking(4)
        #expect(dialogue.keyPressed(Self.key("x"), at: 500) == [])
        #expect(dialogue.keyPressed(Self.key("\r"), at: 500) == [])
        #expect(dialogue.keyPressed(Self.key(key), at: 399) == [], "before the question can be read")
        #expect(dialogue.keyPressed(Self.key(key), at: 400) == [.stopReading, .answer(4, answer)])
        #expect(dialogue.keyPressed(Self.key(key), at: 401) == [])
    }

    @Test(arguments: [
        ("once", "permitted once elsewhere"), ("15-minutes", "permitted for 15 minutes elsewhere"),
        ("always", "permitted until the proxy ends elsewhere"), ("deny", "refused elsewhere"),
        (
            nil, "not answered: its time is over, its client has gone, the list has changed, or the proxy has restarted"
        ),
    ])
    func aQuestionThatIsAnsweredElsewhereSaysSo(answer: String?, text: String) {
        var dialogue = Self.asking(4, 5)
        #expect(dialogue.questionEnded(5, answer: answer) == [], "it was not shown")
        #expect(dialogue.questionEnded(4, answer: answer) == [.stopReading, .print("4: \(text)")])
        #expect(!dialogue.isBusy)
    }

    @Test func anAnswerThatIsTooLateSaysSo() {
        var dialogue = Self.asking(4)
        _ = dialogue.keyPressed(Self.key("a"), at: 500)
        #expect(dialogue.answerGiven(4, .once, counted: false) == [.print("4: it does not wait any more")])
    }

    @Test func theBackgroundIsNeverAsked() {
        var dialogue = TerminalDialogue()
        #expect(dialogue.questionsRead([.made(1)], isForeground: false, at: 0) == [])
        #expect(dialogue.keyPressed(Self.key("a"), at: 500) == [])
        #expect(dialogue.questionsRead([.made(1)], isForeground: true, at: 600) == Self.shown(1))
        #expect(dialogue.questionsRead([.made(1)], isForeground: false, at: 1600) == [.stopReading])
        #expect(dialogue.keyPressed(Self.key("a"), at: 2600) == [])
        #expect(dialogue.questionsRead([.made(1)], isForeground: true, at: 3000) == Self.shown(1))
        #expect(dialogue.keyPressed(Self.key("a"), at: 3100) == [])
    }

    @Test func controlZStopsTheProcessWithTheFormerMode() {
        var dialogue = Self.asking(1)
        #expect(dialogue.keyPressed(0x1A, at: 1) == [.stopReading, .suspend])
        #expect(dialogue.questionsRead([.made(1)], isForeground: true, at: 600) == Self.shown(1))
    }

    @Test func theEndOfAQuestionMayBeReportedAfterItIsGone() {
        var dialogue = Self.asking(1)
        #expect(dialogue.questionsRead([], isForeground: true, at: 5) == [])
        #expect(dialogue.questionEnded(1, answer: "deny") == [.stopReading, .print("1: refused elsewhere")])
    }
}
