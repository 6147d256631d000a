// SPDX-License-Identifier: Apache-2.0

import Testing
import WebViewProtocol

struct CommandTests {
    @Test func everyCommandIsReadAsItWasWritten() throws {
        var open = OpenRequest(
            url: "https://login.example/", redirectURIs: ["com.example.app:/cb"],
            allowedOrigins: ["https://login.example"], timeLimit: .seconds(600))
        let small = Command.open(open)
        open.headers = ["X-One": "1"]
        open.cookies = [Cookie(name: "a", value: "b", domain: "login.example", expires: 1_800_000_000)]
        open.captureCookies = CookieSelection(host: "login.example", names: ["a"])
        open.proxy = "http://u:p@127.0.0.1:3128"
        open.dataFolder = "/tmp/x"
        open.title = "Sign in"
        open.userAgent = "Agent/1"
        open.pageMessages = PageMessageRules(origins: ["https://login.example"], types: ["NameCallback"])
        open.specialURLs = true
        let commands: [Command] = [
            small, .open(open), .load(PageRequest(url: "https://login.example/2", headers: ["A": "b"])),
            .load(PageRequest(url: "https://login.example/2")), .answerMessage(id: 7, answer: #"{"a":1}"#), .cancel,
            .close, .snapshot(file: "/tmp/a.png"), .pressButton,
        ]
        for command in commands { #expect(try Command(line: try command.line) == command) }
    }

    @Test(arguments: [
        ("", "a line is not JSON, or has a number out of range"),
        ("{", "a line is not JSON, or has a number out of range"),
        ("[]", "a line is not a JSON object"),
        (#""open""#, "a line is not a JSON object"),
        ("{}", "the member 'type' is missing"),
        (#"{"type":"secret"}"#, "the member 'type' has an unknown value"),
        (#"{"type":1}"#, "the member 'type' has the wrong type"),
        (#"{"type":"close","secret":1}"#, "unknown member 'secret'"),
        (#"{"type":"cancel","p@ss":1}"#, "unknown member '?'"),
        (#"{"type":"open"}"#, "the member 'url' is missing"),
        (#"{"type":"open","url":1}"#, "the member 'url' has the wrong type"),
        (
            #"{"type":"open","url":"","redirectURIs":[],"allowedOrigins":[],"timeLimitSeconds":1.5}"#,
            "a line is not JSON, or has a number out of range"
        ),
        (
            #"{"type":"open","url":"","redirectURIs":[],"allowedOrigins":[],"timeLimitSeconds":1,"#
                + #""cookies":[{"name":"a","value":"secret","extra":1}]}"#, "unknown member 'extra'"
        ),
        (
            #"{"type":"open","url":"","redirectURIs":[],"allowedOrigins":[],"timeLimitSeconds":1,"#
                + #""cookies":[{"name":"a","value":["secret"]}]}"#, "the member 'cookies.0.value' has the wrong type"
        ),
        (#"{"type":"answerMessage","id":"1","answer":""}"#, "the member 'id' has the wrong type"),
    ])
    func aMalformedCommandIsNamedWithoutItsValues(line: String, sentence: String) {
        #expect(throws: ProtocolError(sentence)) { try Command(line: Array(line.utf8)) }
    }

    @Test func bytesThatAreNotUTF8AreNotACommand() {
        #expect(throws: ProtocolError.self) { try Command(line: Array(#"{"type":"close"#.utf8) + [0xff, 0x22, 0x7d]) }
    }

    @Test func everyEventIsReadAsItWasWritten() throws {
        let events: [Event] = [
            .ready(protocolVersion: 1, webKit: "2.50.6"), .loadStarted(url: "https://a/"),
            .loadFinished(url: "https://a/"), .loadFailed(url: "https://a/", code: .certificate, message: "m"),
            .redirect(url: "a:/b?c"), .navigationRefused(url: "https://b/", why: .newWindow),
            .cookies([Cookie(name: "a", value: "b", domain: "c")]),
            .pageMessage(id: 1, origin: "https://a", body: "{}"), .specialURL(url: "msauth://x"),
            .snapshot(file: "/f"), .closed(.timeLimit),
            .failed(code: .noDisplay, sentence: "s", remedy: "r"),
        ]
        for event in events { #expect(try Event(line: try event.line) == event) }
    }

    @Test func linesAreCutWhereverTheBytesAreCut() throws {
        let text = Array("{\"a\":1}\n\n{\"b\":2}\nrest".utf8)
        let expected = ["{\"a\":1}", "", "{\"b\":2}"].map { Array($0.utf8) }
        for cut in 0...text.count {
            var splitter = LineSplitter()
            #expect(try splitter.split(text[..<cut]) + splitter.split(text[cut...]) == expected)
        }
    }

    @Test func aLineOfTheLargestSizeIsRead() throws {
        let line = [UInt8](repeating: 0x61, count: Limits.lineBytes)
        var splitter = LineSplitter()
        #expect(try splitter.split(line + [0x0a]) == [line])
        #expect(throws: ProtocolError("a line is longer than 131072 bytes")) { try splitter.split(line + [0x61]) }
    }
}
