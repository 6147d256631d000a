// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignDeviceManagement
import CountersignJSON
import CountersignTestOrigin
import Testing

@testable import CountersignSignIn

/// `Tests/Fixtures/webview` has lines that the web view's own tests read too, so that both ends speak the same
/// protocol.
@Suite struct WebViewLinesTests {
    private static func lines(_ name: String) -> [String] {
        TextFile.lines("\(Tool.repository)/Tests/Fixtures/webview/\(name)")
    }

    private static let page = "https://login.example/"

    private static let events: [WebViewEvent] = {
        let plain: [WebViewEvent] = [
            .ready(protocolVersion: 1), .loadStarted(url: page + "authorize"), .loadFinished(url: page + "authorize"),
            .loadFailed(url: page, code: .certificate, message: "Unacceptable TLS certificate"),
            .loadFailed(url: page, code: .network, message: "Could not connect"),
            .loadFailed(url: page, code: .proxy, message: "login.example:443: connection refused"),
            .loadFailed(url: page, code: .stopped, message: "Load request cancelled"),
            .loadFailed(url: page, code: .other, message: "Grüße \"\\\n"),
            .redirect(url: "com.example.app:/callback?code=abc&state=xyz#top"),
            .navigationRefused(url: "https://evil.example/", why: .origin),
            .navigationRefused(url: "http://login.example/", why: .insecure),
            .navigationRefused(url: "tel:", why: .scheme),
            .navigationRefused(url: "msauth://enroll", why: .specialURL),
            .navigationRefused(url: page + "help", why: .newWindow), .navigationRefused(url: page, why: .userName),
            .navigationRefused(url: page + "file", why: .download), .navigationRefused(url: "", why: .malformed),
            .cookies([]),
            .cookies([
                cookie("SID", "s1", expires: 1_900_000_000, sameSite: .none),
                cookie("KEY", "", domain: ".example", path: "/a", isSecure: false, isHTTPOnly: false, sameSite: .lax),
                cookie("STRICT", "s3", sameSite: .strict),
            ]),
            .session([cookie("SID", "s1", sameSite: .lax)], omitted: 2),
            .pageMessage(
                id: 7, origin: "https://login.example", body: #"{"callbacks":[{"type":"NameCallback"}]}"#),
            .pageMessagesGone, .specialURL(url: "msauth://enroll?cpurl=https://portal.example/"),
            .deviceChallenge(url: "urn:http-auth:PKeyAuth?nonce=n&Context=c"),
            .profile(url: "https://mdm.example/profile", content: Secret(utf8: "PHBsaXN0Lz4=")),
        ]
        return plain + WebViewEvent.ClosedReason.allCases.map { .closed($0) }
            + WebViewEvent.FailureCode.allCases.map { .failed(code: $0, sentence: "s", remedy: "r") }
    }()

    private static func cookie(
        _ name: String, _ value: String, domain: String = "login.example", path: String = "/", expires: Int64? = nil,
        isSecure: Bool = true, isHTTPOnly: Bool = true, sameSite: WebViewCookie.SameSite
    ) -> WebViewCookie {
        WebViewCookie(
            name: name, value: Secret(utf8: value), domain: domain, path: path, expires: expires, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, sameSite: sameSite)
    }

    @Test func theEventsAreReadAsTheWebViewWritesThem() throws {
        #expect(try Self.lines("events.jsonl").map { try WebViewEvent(Array($0.utf8)) } == Self.events)
    }

    @Test func theCommandsAreWrittenAsTheWebViewReadsThem() {
        let small = WebViewOpening(
            url: Self.page + "authorize?state=xyz", redirectURIs: ["com.example.app:/callback"],
            allowedOrigins: ["https://login.example"], timeLimitSeconds: 600)
        var large = small
        large.redirectURIs = ["http://127.0.0.1:49152/"]
        large.allowedOrigins.append("https://mfa.example:8443")
        large.title = "Sign in at login.example"
        large.proxy = Secret(utf8: "http://countersign:secret@127.0.0.1:3128")
        large.cookies = [
            Self.cookie("SID", "s\"1", expires: 1_900_000_000, sameSite: .strict),
            Self.cookie("KEY", "", path: "/a", isSecure: false, isHTTPOnly: false, sameSite: .lax),
        ]
        large.captureCookies = WebViewCookieSelection(host: "login.example", names: ["SID", "KEY"])
        large.pageMessages = PageMessageRules(origins: ["https://login.example"], types: ["NameCallback"])
        (large.reportsSession, large.specialURLs, large.announcesDevice) = (true, true, true)
        large.profileFolder = "/run/user/1000/profiles"
        let commands: [WebViewCommand] = [
            .open(small), .open(large), .answerMessage(id: 7, answer: #"{"callbacks":[]}"#),
            .load(url: Self.page + "next", headers: []),
            .load(url: Self.page + "install", headers: [AdditionalHeader("X-Token", "secret")]),
            .reportSession, .addCookies([Self.cookie("SID", "s1", expires: 1, sameSite: .lax)]),
            .showMessage("The profile was installed."), .close, .cancel,
        ]
        #expect(commands.map { $0.line.utf8Text ?? "" } == Self.lines("commands.jsonl").map { $0 + "\n" })
    }

    @Test(arguments: [
        "", "[]", "{", #"{"type":"other"}"#, #"{"type":"ready","protocolVersion":"1","webKit":"2"}"#,
        #"{"type":"loadStarted"}"#, #"{"type":"loadStarted","url":"a","extra":1}"#,
        #"{"type":"loadStarted","url":"a","url":"b"}"#, #"{"type":"closed","reason":"secret"}"#,
        #"{"type":"cookies","cookies":[{"name":"a","value":"secret"}]}"#,
    ])
    func aLineThatIsNoEventIsRefusedWithoutItsValues(line: String) throws {
        let error = try #require(throws: JSONError.self) { try WebViewEvent(Array(line.utf8)) }
        #expect(!error.detail.contains("secret"))
    }

    /// 64 cookies of the largest size, with every byte escaped.
    @Test func theLargestCookiesFitIntoALine() throws {
        let value = String(repeating: "\\u0022", count: 4096)
        let cookie = #"{"domain":"d","httpOnly":true,"name":"n","path":"/","sameSite":"lax","secure":true,"value":""#
        let cookies = Array(repeating: cookie + value + "\"}", count: 64).joined(separator: ",")
        let line = Array("{\"cookies\":[\(cookies)],\"type\":\"cookies\"}".utf8)
        guard case .cookies(let read) = try WebViewEvent(line) else {
            Issue.record("the line has no cookies")
            return
        }
        #expect(read.count == 64 && read.allSatisfy { $0.value.count == 4096 })
    }
}
