// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignSignIn

/// Asks the person at the terminal the questions of a page's message.
enum PageAnswers {
    /// How much of a page's text is shown.
    private static let shownCharacters = 1000
    /// How often a choice is asked for.
    private static let attempts = 3

    /// The answer for the page; nil if the person cancels, or there is no terminal.
    static func answer(_ message: PageMessage) async -> String? {
        let questions: PageQuestions
        do throws(PageQuestions.Refusal) {
            questions = try PageQuestions(message)
        } catch {
            return error.answer
        }
        guard let terminal = TerminalAnswers() else {
            Console.warning("the page asks a question, and there is no terminal to answer it")
            return nil
        }
        terminal.show("The page of \(shown(message.origin)) asks; Ctrl-D cancels the sign-in.\n")
        var answers: [PageQuestions.Answer] = []
        for question in questions.questions {
            guard let answer = await answer(question, terminal) else { return nil }
            answers.append(answer)
        }
        return questions.answered(answers)
    }

    private static func answer(
        _ question: PageQuestions.Question, _ terminal: TerminalAnswers
    ) async -> PageQuestions.Answer? {
        let prompt = "\(shown(question.type)): \(shown(question.prompt))"
        switch question.kind {
        case .text: return await terminal.line(after: "\(prompt): ").map { .text($0) }
        case .secret: return await terminal.line(after: "\(prompt): ", echoes: false).map { .text($0) }
        case .statement:
            terminal.show("\(prompt)\n")
            return .seen
        case .choice(let options):
            let list = options.enumerated().map { "  \($0 + 1)  \(shown($1))\n" }.joined()
            for _ in 0..<attempts {
                guard let line = await terminal.line(after: "\(prompt)\n\(list)Number: ") else { return nil }
                guard let number = line.utf8Text.flatMap(Int.init), options.indices.contains(number - 1) else {
                    continue
                }
                return .choice(number - 1)
            }
            return nil
        }
    }

    /// Text of a page without characters that control the terminal or the direction of the text.
    static func shown(_ text: String) -> String {
        let scalars = text.unicodeScalars.filter {
            switch $0.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: false
            default: true
            }
        }
        return String(String.UnicodeScalarView(scalars.prefix(shownCharacters)))
    }
}
