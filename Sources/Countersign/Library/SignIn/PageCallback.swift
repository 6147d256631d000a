// SPDX-License-Identifier: Apache-2.0

import CountersignSignIn

/// A question of the provider's page in an `embedded` window: one callback of a message that the page has posted with
/// `window.webkit.messageHandlers.callback`. Its members are those of ForgeRock's authentication service.
public struct PageCallback: Equatable, Sendable {
    /// The kind of answer that the page expects.
    public enum Kind: Equatable, Sendable {
        /// A text that may be shown while it is typed.
        case text
        /// A text that may not be shown.
        case secret
        /// One of these texts of the page.
        case choice([String])
        /// No answer: a text to show.
        case statement
    }

    /// `https://host[:port]` of the page, as the web view knows it.
    public let origin: String
    /// Such as `NameCallback`.
    public let type: String
    /// The kind of answer that the page expects.
    public let kind: Kind
    /// The page's own words, which may be anything: show them as the page's.
    public let prompt: String

    /// Creates a callback, for the tests of a program.
    public init(origin: String, type: String, kind: Kind, prompt: String) {
        self.origin = origin
        self.type = type
        self.kind = kind
        self.prompt = prompt
    }

    /// The answer to a callback.
    public enum Answer: Sendable {
        /// For `text` and `secret`.
        case text(Password)
        /// For `choice`: an index of its texts.
        case choice(Int)
        /// For `statement`: the person has seen it.
        case seen
    }

    /// Answers callbacks of one type; nil cancels the sign-in. Its task is cancelled if the page goes.
    public typealias Handler = @Sendable (PageCallback) async -> Answer?
}

/// Answers the messages of a page with a program's handlers.
struct PageCallbackHandlers: Sendable {
    let handlers: [String: PageCallback.Handler]

    /// JSON text for the page; nil to cancel the sign-in. A message with a callback that no handler is for is refused
    /// as a whole, and the page may go on without an answer.
    func answer(_ message: PageMessage) async -> String? {
        let questions: PageQuestions
        do throws(PageQuestions.Refusal) {
            questions = try PageQuestions(message)
        } catch {
            return error.answer
        }
        let chosen = questions.questions.compactMap { handlers[$0.type] }
        guard chosen.count == questions.questions.count else { return PageQuestions.Refusal.unsupported.answer }
        var answers: [PageQuestions.Answer] = []
        for (question, handler) in zip(questions.questions, chosen) {
            let callback = PageCallback(question, of: message.origin)
            guard let answer = await handler(callback), let usable = callback.checked(answer) else { return nil }
            answers.append(usable)
        }
        return questions.answered(answers)
    }
}

extension PageCallback {
    fileprivate init(_ question: PageQuestions.Question, of origin: String) {
        self.origin = origin
        type = question.type
        prompt = question.prompt
        kind =
            switch question.kind {
            case .text: .text
            case .secret: .secret
            case .choice(let texts): .choice(texts)
            case .statement: .statement
            }
    }

    /// Nil for an answer of another kind than the question's, or an index that does not exist.
    fileprivate func checked(_ answer: Answer) -> PageQuestions.Answer? {
        switch (kind, answer) {
        case (.text, .text(let text)), (.secret, .text(let text)): .text(text.secret)
        case (.choice(let texts), .choice(let index)) where texts.indices.contains(index): .choice(index)
        case (.statement, .seen): .seen
        default: nil
        }
    }
}
