// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import WebViewProtocol

/// `Tests/Fixtures/webview` has lines of the protocol. The tests of the program at the other end can read them too, so
/// that both ends speak the same protocol.
struct SharedLinesTests {
    private static func lines(_ name: String) throws -> [String] {
        let root = (0..<4).reduce(URL(fileURLWithPath: #filePath)) { url, _ in url.deletingLastPathComponent() }
        let file = root.appendingPathComponent("Tests/Fixtures/webview/\(name)")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    private static let page = "https://login.example/"

    /// Every event but `snapshot`, with every word that it can have.
    static let events: [Event] = {
        var events: [Event] = [
            .ready(protocolVersion: 1, webKit: "2.50.6"), .loadStarted(url: page + "authorize"),
            .loadFinished(url: page + "authorize"),
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
                Cookie(name: "SID", value: "s1", domain: "login.example", expires: 1_900_000_000, sameSite: .none),
                Cookie(
                    name: "KEY", value: "", domain: ".example", path: "/a", secure: false, httpOnly: false,
                    sameSite: .lax),
                Cookie(name: "STRICT", value: "s3", domain: "login.example", sameSite: .strict),
            ]),
            .session(
                [Cookie(name: "SID", value: "s1", domain: "login.example", sameSite: .lax)], omitted: 2),
            .pageMessage(
                id: 7, origin: "https://login.example", body: #"{"callbacks":[{"type":"NameCallback"}]}"#),
            .pageMessagesGone, .specialURL(url: "msauth://enroll?cpurl=https://portal.example/"),
            .deviceChallenge(url: "urn:http-auth:PKeyAuth?nonce=n&Context=c"),
            .profile(url: "https://mdm.example/profile", content: "PHBsaXN0Lz4="),
        ]
        for reason in [ClosedReason.close, .cancel, .window, .page, .timeLimit, .inputEnded] {
            events.append(.closed(reason))
        }
        let codes: [FailureCode] = [
            .noDisplay, .noBubblewrap, .noUserNamespaces, .noTrustStore, .noCABundle, .protocolError, .dataFolder,
            .cookies, .webProcess,
        ]
        return events + codes.map { .failed(code: $0, sentence: "s", remedy: "r") }
    }()

    @Test func theEventsAreWrittenAsTheLinesSay() throws {
        let lines = try Self.lines("events.jsonl")
        #expect(try Self.events.map { String(decoding: try $0.line, as: UTF8.self) } == lines)
        #expect(lines.filter { $0.contains("navigationRefused") }.count == Refusal.allCases.count)
    }

    static let commands: [Command] = {
        let small = OpenRequest(
            url: page + "authorize?state=xyz", redirectURIs: ["com.example.app:/callback"],
            allowedOrigins: ["https://login.example"], timeLimit: .seconds(600))
        var large = small
        large.redirectURIs = ["http://127.0.0.1:49152/"]
        large.allowedOrigins.append("https://mfa.example:8443")
        large.title = "Sign in at login.example"
        large.proxy = "http://countersign:secret@127.0.0.1:3128"
        large.cookies = [
            Cookie(
                name: "SID", value: "s\"1", domain: "login.example", expires: 1_900_000_000, sameSite: .strict),
            Cookie(name: "KEY", value: "", domain: "login.example", path: "/a", secure: false, httpOnly: false),
        ]
        large.captureCookies = CookieSelection(host: "login.example", names: ["SID", "KEY"])
        large.pageMessages = PageMessageRules(origins: ["https://login.example"], types: ["NameCallback"])
        large.reportsSession = true
        large.specialURLs = true
        large.announcesDevice = true
        large.profileFolder = "/run/user/1000/profiles"
        return [
            .open(small), .open(large), .answerMessage(id: 7, answer: #"{"callbacks":[]}"#),
            .load(PageRequest(url: page + "next")),
            .load(PageRequest(url: page + "install", headers: ["X-Token": "secret"])),
            .reportSession,
            .addCookies([Cookie(name: "SID", value: "s1", domain: "login.example", expires: 1)]),
            .showMessage("The profile was installed."), .close, .cancel,
        ]
    }()

    @Test func theCommandsAreReadAsTheLinesSay() throws {
        let read = try Self.lines("commands.jsonl").map { try Command(line: Array($0.utf8)) }
        #expect(read == Self.commands)
        for case .open(let request) in read { _ = try SignIn(request) }
    }
}
