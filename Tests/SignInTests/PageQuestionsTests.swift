// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Testing

@testable import CountersignSignIn

@Suite struct PageQuestionsTests {
    private func questions(_ body: String) throws(PageQuestions.Refusal) -> PageQuestions {
        try PageQuestions(PageMessage(origin: "https://login.example", body: body))
    }

    private static func choice(_ count: Int) -> String {
        let choices = Array(repeating: "1", count: count).joined(separator: ",")
        return #"{"callbacks": [{"type": "ChoiceCallback", "output": [{"name": "choices", "value": [\#(choices)]}]}]}"#
    }

    private static func names(_ count: Int) -> String {
        #"{"callbacks": [\#(Array(repeating: #"{"type": "NameCallback"}"#, count: count).joined(separator: ","))]}"#
    }

    @Test func aMessageMayHaveAsManyQuestionsAsFitAScreen() throws {
        #expect(try questions(Self.choice(64)).questions.count == 1)
        #expect(try questions(Self.names(16)).questions.count == 16)
    }

    @Test func theAnswersTakeThePlaceOfTheInputs() throws {
        let found = try questions(
            """
            {"authId": "x", "callbacks": [
              {"type": "NameCallback", "output": [{"name": "prompt", "value": "User name"}],
               "input": [{"name": "IDToken1", "value": ""}, {"name": "other", "value": 1}]},
              {"type": "PasswordCallback", "output": [{"name": "prompt", "value": "Password"}], "input": []},
              {"type": "ChoiceCallback", "input": [{"name": "IDToken3", "value": 0}],
               "output": [{"name": "prompt", "value": "Way"}, {"name": "choices", "value": ["SMS", "App"]}]},
              {"type": "TextOutputCallback", "output": [{"name": "message", "value": "Look"}]},
              {"type": "TextInputCallback"}]}
            """)
        #expect(found.questions.map(\.kind) == [.text, .secret, .choice(["SMS", "App"]), .statement, .text])
        #expect(found.questions.map(\.prompt) == ["User name", "Password", "Way", "Look", ""])
        let answered = found.answered([
            .text(Secret(utf8: "jdoe\"")), .text(Secret(utf8: "p")), .choice(1), .seen, .text(Secret(utf8: "")),
        ])
        let expected =
            #"{"authId":"x","callbacks":[{"type":"NameCallback","output":[{"name":"prompt","value":"User name"}],"#
            + #""input":[{"name":"IDToken1","value":"jdoe\""},{"name":"other","value":1}]},"#
            + #"{"type":"PasswordCallback","output":[{"name":"prompt","value":"Password"}],"#
            + #""input":[{"name":"IDToken2","value":"p"}]},"#
            + #"{"type":"ChoiceCallback","output":[{"name":"prompt","value":"Way"},"#
            + #"{"name":"choices","value":["SMS","App"]}],"input":[{"name":"IDToken3","value":1}]},"#
            + #"{"type":"TextOutputCallback","output":[{"name":"message","value":"Look"}]},"#
            + #"{"type":"TextInputCallback","input":[{"name":"IDToken5","value":""}]}]}"#
        #expect(answered == expected)
    }

    @Test(arguments: [
        (#"{"callbacks": [{"type": "NameCallback"}, {"type": "DeviceCallback"}]}"#, "unsupportedType"),
        ("[]", "malformed"), ("{}", "malformed"), (#"{"callbacks": [1]}"#, "malformed"),
        (#"{"callbacks": [{"type": "ChoiceCallback"}]}"#, "malformed"),
        (#"{"callbacks": [{"type": "ChoiceCallback", "output": [{"name": "choices", "value": []}]}]}"#, "malformed"),
        (choice(65), "malformed"), (names(17), "malformed"),
    ])
    func aMessageThatCannotBeAskedIsAnsweredWithAnError(body: String, code: String) throws {
        let refusal = try #require(throws: PageQuestions.Refusal.self) { try questions(body) }
        #expect(refusal.answer.hasPrefix("{\"error\":\"\(code)\""))
    }
}
