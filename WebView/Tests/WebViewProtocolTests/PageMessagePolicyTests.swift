// SPDX-License-Identifier: Apache-2.0

import Testing
import WebViewProtocol

struct PageMessagePolicyTests {
    let policy: PageMessagePolicy

    init() throws {
        var request = SignInTests.request
        request.pageMessages = PageMessageRules(origins: ["https://login.example"], types: ["NameCallback"])
        policy = try #require(try SignIn(request).pageMessages)
    }

    private func decide(_ body: String, origin: String = "https://login.example", waiting: Int = 0) -> String {
        let escaped = body.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        switch policy.decide(#"{"origin":"\#(origin)","body":"\#(escaped)"}"#, waiting: waiting) {
        case .deliver(let origin, let body): return "\(origin) \(body)"
        case .answer(let text): return String(text.split(separator: "\"")[3])
        }
    }

    static let good = #"{"authId":"x","callbacks":[{"type":"NameCallback","input":[],"output":[]}]}"#

    @Test func aMessageOfAKnownTypeIsDelivered() {
        #expect(decide(Self.good) == "https://login.example " + Self.good)
        #expect(decide(#"{"callbacks":[]}"#) == #"https://login.example {"callbacks":[]}"#)
    }

    @Test(arguments: [
        (#"{"callbacks":[{"type":"Other"}]}"#, "unsupportedType"),
        (#"{"callbacks":[{"type":"NameCallback"},{"type":"Other"}]}"#, "unsupportedType"),
        (#"{"callbacks":[{"kind":"NameCallback"}]}"#, "malformed"),
        (#"{"callbacks":{}}"#, "malformed"),
        (#"{}"#, "malformed"),
        ("text", "malformed"),
        ("", "malformed"),
    ])
    func anotherMessageIsAnsweredWithAnError(body: String, error: String) {
        #expect(decide(body) == error)
    }

    @Test(arguments: ["https://evil.example", "https://idp.corp.example:8443", "null", "", "http://login.example"])
    func anotherOriginMayNotPost(origin: String) {
        #expect(decide(Self.good, origin: origin) == "origin")
    }

    @Test func theSizeAndTheNumberAreLimited() {
        let end = #"","callbacks":[]}"#
        let padding = String(repeating: "a", count: Limits.pageMessageBytes - 6 - end.utf8.count)
        #expect(decide("{\"a\":\"" + padding + end).hasPrefix("https://login.example "))
        #expect(decide("{\"a\":\"a" + padding + end) == "tooLarge")
        #expect(decide(Self.good, waiting: 15).hasPrefix("https://login.example "))
        #expect(decide(Self.good, waiting: 16) == "tooMany")
    }

    @Test func anAnswerIsJSON() throws {
        for text in [#"{"a":[1]}"#, "null", "\"text\"", "1"] { try PageMessagePolicy.checkAnswer(text) }
        for text in ["", "{", "text", "\"" + String(repeating: "a", count: Limits.pageMessageBytes) + "\""] {
            #expect(throws: ProtocolError.self) { try PageMessagePolicy.checkAnswer(text) }
        }
    }
}
