// SPDX-License-Identifier: Apache-2.0

import CountersignEvents

/// Which question is on the terminal, and what a key means.
///
/// Rules: one question at a time, the oldest first. A key counts only for a question that the person can have read: not
/// if it was typed before, or less than ``minimumMilliseconds`` after. In the background, keys are those of another
/// program.
struct TerminalDialogue {
    enum Action: Equatable {
        case print(String)
        /// Each key is read at once and not echoed. Discards what was typed before.
        case readKeys
        /// The terminal is as it was before.
        case stopReading
        case answer(UInt64, QuestionAnswer)
        /// Stop the process as the terminal does it.
        case suspend
    }

    static let minimumMilliseconds: Int64 = 400
    private static let suspendKey: UInt8 = 0x1A

    private var questions: [QuestionEvent] = []
    private var shown: (id: UInt64, since: Int64)?
    private var isForeground = false
    /// The question that was answered here.
    private var answered: UInt64?

    /// Whether a question waits.
    var isBusy: Bool { !questions.isEmpty }

    /// These questions wait now, in milliseconds of a monotonic clock, and the process is in the foreground of its
    /// terminal or not.
    mutating func questionsRead(_ questions: [QuestionEvent], isForeground: Bool, at now: Int64) -> [Action] {
        self.questions = questions
        var actions: [Action] = []
        if isForeground != self.isForeground {
            self.isForeground = isForeground
            if shown != nil {
                shown = nil
                // The shell has changed the terminal's mode meanwhile; in the background it is not ours.
                actions.append(.stopReading)
            }
        }
        return actions + show(at: now)
    }

    private mutating func show(at now: Int64) -> [Action] {
        guard shown == nil, isForeground, let question = questions.first(where: { $0.id != answered }) else {
            return []
        }
        shown = (question.id, now)
        return [
            .readKeys, .print("\(question.id): \(QuestionText(question).sentence)"),
            .print("\(question.id): press a to allow it once, m to allow it for 15 minutes, d to deny it"),
        ]
    }

    /// `answer` is the word of any answer; nil without one.
    mutating func questionEnded(_ id: UInt64, answer: String?) -> [Action] {
        questions.removeAll { $0.id == id }
        if answered == id {
            answered = nil
            return []
        }
        guard shown?.id == id else { return [] }
        shown = nil
        let place = answer == nil ? "" : " elsewhere"
        return [.stopReading, .print("\(id): \(QuestionAnswer.report(answer))\(place)")]
    }

    mutating func keyPressed(_ key: UInt8, at now: Int64) -> [Action] {
        guard let shown, isForeground else { return [] }
        if key == Self.suspendKey {
            self.shown = nil
            isForeground = false
            return [.stopReading, .suspend]
        }
        guard now - shown.since >= Self.minimumMilliseconds, let answer = Self.answer(key) else { return [] }
        self.shown = nil
        answered = shown.id
        return [.stopReading, .answer(shown.id, answer)]
    }

    /// `counted`: whether the question still waited.
    mutating func answerGiven(_ id: UInt64, _ answer: QuestionAnswer, counted: Bool) -> [Action] {
        guard counted else {
            answered = nil
            return [.print("\(id): it does not wait any more")]
        }
        return [.print("\(id): \(QuestionAnswer.report(answer.rawValue))")]
    }

    private static func answer(_ key: UInt8) -> QuestionAnswer? {
        switch key {
        case UInt8(ascii: "a"): .once
        case UInt8(ascii: "m"): .quarter
        case UInt8(ascii: "d"): .deny
        default: nil
        }
    }
}
