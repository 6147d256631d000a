// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The callbacks of a page's message as questions to a person. The types and their members are those of ForgeRock's
/// authentication service: `{"type": "NameCallback", "output": [{"name": "prompt", "value": "User name"}], "input":
/// [{"name": "IDToken1", "value": ""}]}`.
package struct PageQuestions: Sendable {
    /// One callback. Texts are the page's own, and may contain unprintable characters.
    package struct Question: Equatable, Sendable {
        package enum Kind: Equatable, Sendable {
            case text
            /// Not to be shown while it is typed.
            case secret
            /// One of these, by its index.
            case choice([String])
            /// Only to be shown.
            case statement
        }

        package let type: String
        package let kind: Kind
        package let prompt: String
    }

    package enum Answer: Equatable, Sendable {
        case text(Secret)
        case choice(Int)
        /// For a statement.
        case seen
    }

    /// At most 16.
    package let questions: [Question]
    private let message: JSONValue

    /// The types of callbacks that this type knows.
    package static let types = [
        "ChoiceCallback", "ConfirmationCallback", "NameCallback", "PasswordCallback", "TextInputCallback",
        "TextOutputCallback",
    ]

    private static let limits = JSONLimits(bytes: PageMessage.maximumBytes, depth: 16)
    private static let maximumQuestions = 16
    private static let maximumChoices = 64

    /// Throws the JSON text that the page gets as its answer.
    package init(_ message: PageMessage) throws(Refusal) {
        do throws(JSONError) {
            self.message = try JSONParser.parse(Array(message.body.utf8), limits: Self.limits)
            var reader = try JSONReader(self.message, "the message", .lenient)
            var questions: [Question] = []
            let callbacks = try reader.array("callbacks")
            guard callbacks.count <= Self.maximumQuestions else {
                throw reader.invalid("callbacks", "has more than \(Self.maximumQuestions) members")
            }
            for callback in callbacks { questions.append(try Self.question(callback)) }
            self.questions = questions
        } catch {
            throw Refusal(isUnsupported: error.code == .unknownMember)
        }
    }

    /// A message that cannot be put to a person.
    package struct Refusal: Error {
        package static let unsupported = Refusal(isUnsupported: true)

        fileprivate let isUnsupported: Bool

        /// For the page: JSON text in the form of the web view's own errors.
        package var answer: String {
            isUnsupported
                ? #"{"error":"unsupportedType","message":"the message has a callback of an unsupported type"}"#
                : #"{"error":"malformed","message":"the message is not a JSON object with callbacks"}"#
        }
    }

    private static func question(_ callback: JSONValue) throws(JSONError) -> Question {
        var reader = try JSONReader(callback, "a callback", .lenient)
        let type = try reader.string("type")
        func question(_ kind: Question.Kind, _ prompt: String = "prompt") -> Question {
            var text = ""
            if case .string(let found) = output(prompt, of: callback)?.content { text = found }
            return Question(type: type, kind: kind, prompt: text)
        }
        switch type {
        case "NameCallback", "TextInputCallback": return question(.text)
        case "PasswordCallback": return question(.secret)
        case "TextOutputCallback": return question(.statement, "message")
        case "ChoiceCallback": return question(.choice(try choices("choices", of: callback)))
        case "ConfirmationCallback": return question(.choice(try choices("options", of: callback)))
        default: throw JSONError(.unknownMember, at: callback.position, "an unsupported type")
        }
    }

    private static func choices(_ name: String, of callback: JSONValue) throws(JSONError) -> [String] {
        guard case .array(let values)? = output(name, of: callback)?.content,
            (1...maximumChoices).contains(values.count)
        else {
            throw JSONError(.wrongValue, at: callback.position, "a callback has no \(name), or too many")
        }
        return values.map { if case .string(let text) = $0.content { text } else { "" } }
    }

    /// The value of the element of `output` with that name.
    private static func output(_ name: String, of callback: JSONValue) -> JSONValue? {
        guard case .array(let outputs)? = callback["output"]?.content else { return nil }
        return outputs.first { $0["name"]?.content == .string(name) }?["value"]
    }

    /// The message with the answers in place of the values of the inputs, as JSON text. One answer for each question.
    package func answered(_ answers: [Answer]) -> String {
        guard case .object(let members) = message.content else { return "{}" }
        return JSONValue(
            .object(
                members.map { member in
                    guard member.name == "callbacks", case .array(let callbacks) = member.value.content else {
                        return member
                    }
                    let answered = zip(callbacks, answers).enumerated().map { index, pair in
                        Self.answered(pair.0, pair.1, number: index + 1)
                    }
                    return JSONMember("callbacks", JSONValue(.array(answered)))
                })
        ).serialized
    }

    /// The first input has the answer. A callback without inputs gets one, `IDToken1` for the first callback.
    private static func answered(_ callback: JSONValue, _ answer: Answer, number: Int) -> JSONValue {
        let value: JSONValue
        switch answer {
        case .text(let text): value = JSONValue(.secret(text))
        case .choice(let index): value = JSONValue(.integer(Int64(index)))
        case .seen: return callback
        }
        guard case .object(var members) = callback.content else { return callback }
        var name = JSONValue(.string("IDToken\(number)"))
        var others: ArraySlice<JSONValue> = []
        if case .array(let inputs)? = callback["input"]?.content, let first = inputs.first {
            name = first["name"] ?? name
            others = inputs.dropFirst()
        }
        let input = JSONValue(.object([JSONMember("name", name), JSONMember("value", value)]))
        members.removeAll { $0.name == "input" }
        members.append(JSONMember("input", JSONValue(.array([input] + others))))
        return JSONValue(.object(members))
    }
}
