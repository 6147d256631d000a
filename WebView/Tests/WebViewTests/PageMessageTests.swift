// SPDX-License-Identifier: Apache-2.0

import Testing
import WebViewProtocol

extension WebView {
    struct PageMessageTests {
        let server = PageServer.shared
        static let body = #"{"authId":"secret","callbacks":[{"type":"NameCallback","input":[],"output":[]}]}"#

        private func open(_ path: String, isEnabled: Bool = true) throws -> WebViewProcess {
            try WebViewProcess.open(path) { request in
                request.allowedOrigins.append(PageServer.shared.second)
                guard isEnabled else { return }
                request.pageMessages = PageMessageRules(origins: [PageServer.shared.first], types: ["NameCallback"])
            }
        }

        @Test func thePageReceivesTheAnswer() throws {
            let mark = server.mark
            let view = try open("/message?body=\(Self.body.encoded)")
            try view.waitFor(.pageMessage(id: 1, origin: server.first, body: Self.body))
            view.send(.answerMessage(id: 1, answer: #"{"name":"secret ü"}"#))
            #expect(server.answer(since: mark) == #"{"name":"secret ü"}"#)
            view.close()
        }

        @Test func anUnknownTypeIsAnsweredWithAnError() throws {
            let mark = server.mark
            let view = try open("/message?body=\(#"{"callbacks":[{"type":"Other"}]}"#.encoded)")
            let answer = try #require(server.answer(since: mark))
            #expect(answer.hasPrefix(#"{"error":"unsupportedType""#))
            view.close()
            #expect(!view.events.contains { if case .pageMessage = $0 { true } else { false } })
        }

        @Test func aFrameHasNoHandler() throws {
            let mark = server.mark
            let view = try open("/handler-in-frame")
            #expect(server.answer(since: mark) == "undefined")
            view.close()
        }

        @Test func anotherOriginHasNoHandler() throws {
            let view = try open("/")
            try view.loaded()
            let mark = server.mark
            view.send(.load(PageRequest(url: server.second + "/handler")))
            #expect(server.answer(since: mark) == "undefined")
            view.close()
        }

        @Test func aPermittedPageHasAHandler() throws {
            let mark = server.mark
            let view = try open("/handler")
            #expect(server.answer(since: mark) == "object")
            view.close()
        }

        @Test func messagesAreOffByDefault() throws {
            let mark = server.mark
            let view = try open("/handler", isEnabled: false)
            #expect(server.answer(since: mark) == "undefined")
            view.close()
        }

        @Test func anAnswerToAPageThatIsGoneIsIgnored() throws {
            let view = try open("/message?body=\(Self.body.encoded)")
            try view.waitFor(.pageMessage(id: 1, origin: server.first, body: Self.body))
            try view.loaded()
            view.send(.load(PageRequest(url: server.first + "/")))
            try view.loaded(server.first + "/")
            view.send(.answerMessage(id: 1, answer: "{}"))
            view.close()
            #expect(view.events.count { $0 == .pageMessagesGone } == 1)
        }

        @Test func anAnswerToNoMessageIsAnError() throws {
            let view = try open("/")
            try view.loaded()
            view.send(.answerMessage(id: 1, answer: "{}"))
            #expect(try view.failed() == .protocolError)
        }
    }
}
