// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignSignIn

/// Asks the person at the terminal the questions of a page's message.
enum PageAnswers {
    /// How often to ask a question after unusable answers.
    private static let attempts = 3

    /// Says before the sign-in which questions of the pages this command cannot put to a person.
    static func warn(of types: [String]) {
        let unknown = types.filter { !PageQuestions.types.contains($0) }
        guard !unknown.isEmpty else { return }
        Console.warning(
            "the profile permits questions of the type \(PageText.printable(unknown.joined(separator: ", "))), "
                + "which this command cannot answer: a page that needs the answer does not go on",
            hint: "if that happens, use --user-agent system")
    }

    /// The answer for the page; nil if the person cancels, or there is no terminal.
    static func answer(_ message: PageMessage) async -> String? {
        let questions: PageQuestions
        do throws(PageQuestions.Refusal) {
            questions = try PageQuestions(message)
        } catch {
            return error.answer
        }
        guard !questions.questions.isEmpty else { return questions.answered([]) }
        guard let terminal = TerminalAnswers() else {
            Console.warning("the page asks a question, and there is no terminal to answer it")
            return nil
        }
        let origin = PageText.printable(message.origin)
        await terminal.show("The page of \(origin) asks; Ctrl-D cancels the sign-in.\n")
        var answers: [PageQuestions.Answer] = []
        for question in questions.questions {
            guard let answer = await answer(question, of: origin, terminal) else { return nil }
            answers.append(answer)
        }
        return questions.answered(answers)
    }

    private static func answer(
        _ question: PageQuestions.Question, of origin: String, _ terminal: TerminalAnswers
    ) async -> PageQuestions.Answer? {
        let lines = lines(question, of: origin)
        for text in lines.dropLast() { await terminal.show("\(text)\n") }
        let prompt = lines.last ?? ""
        switch question.kind {
        case .statement:
            await terminal.show("\(prompt)\n")
            return .seen
        case .text, .secret:
            for _ in 0..<attempts {
                guard let line = await terminal.line(after: prompt, echoes: question.kind == .text) else { return nil }
                if line.utf8Text != nil { return .text(line) }
                await terminal.show("That is not UTF-8. ")
            }
            return nil
        case .choice(let options):
            for _ in 0..<attempts {
                guard let line = await terminal.line(after: prompt) else { return nil }
                if let number = line.utf8Text.flatMap(Int.init), options.indices.contains(number - 1) {
                    return .choice(number - 1)
                }
                await terminal.show("That is none of the numbers. ")
            }
            return nil
        }
    }

    /// The lines for the terminal, the prompt last. The page's texts are never at the beginning of a line, so that they
    /// cannot look like a question of this program or of another one.
    static func lines(_ question: PageQuestions.Question, of origin: String) -> [String] {
        let mark = "[\(origin)] \(PageText.printable(question.type)): "
        let text = mark + PageText.printable(question.prompt)
        switch question.kind {
        case .statement: return [text]
        case .text, .secret: return ["\(text): "]
        case .choice(let options):
            let choices = options.enumerated().map { "\(mark)  \($0 + 1)  \(PageText.printable($1))" }
            return [text] + choices + ["\(mark)number: "]
        }
    }
}
