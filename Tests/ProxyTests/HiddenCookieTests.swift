// SPDX-License-Identifier: Apache-2.0

import NIOEmbedded
import Testing

@testable import CountersignProxy

/// The cookies of a challenge that the proxy answers go with the answer, and reach the client.
@Suite struct HiddenCookieTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"

    private let bench: Bench
    private let origin: EmbeddedChannel

    init() throws {
        bench = try Bench(sites: "http://a.example answer=basic plaintext=yes", password: "pw")
        origin = try bench.idleOrigin(withCredential: true)
    }

    private func get(_ fields: String = "") throws -> String {
        try bench.send("GET http://a.example/app/x HTTP/1.1\r\nHost: a.example\r\n\(fields)\r\n")
        return try origin.sent()
    }

    private func challenge(_ cookies: String...) throws -> String {
        let lines = cookies.map { "Set-Cookie: \($0)\r\n" }.joined()
        try origin.receive(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\n\(lines)Content-Length: 0\r\n\r\n")
        return try origin.sent()
    }

    private func finish(_ response: String = ok) throws -> String {
        try origin.receive(response + "\r\nok")
        return try bench.answer()
    }

    private static func values(_ name: String, in message: String) -> [String] {
        message.components(separatedBy: "\r\n").filter { $0.hasPrefix("\(name): ") }
            .map { String($0.dropFirst(name.count + 2)) }
    }

    @Test func theAnswerHasTheCookieOfTheChallenge() throws {
        #expect(try Self.values("Cookie", in: get()) == [])
        let answered = try challenge("k=1; Path=/")
        #expect(answered.contains("\r\nAuthorization: Basic ") && Self.values("Cookie", in: answered) == ["k=1"])
        #expect(try Self.values("Set-Cookie", in: finish()) == ["k=1; Path=/"])
        // It is the client's from now on.
        #expect(try Self.values("Cookie", in: get()) == [])
        #expect(try Self.values("Set-Cookie", in: finish()) == [])
    }

    @Test func theClientsOwnCookiesStay() throws {
        _ = try get("Cookie: a=1; k=old\r\nCookie: b=2\r\n")
        #expect(try Self.values("Cookie", in: challenge("k=new; Path=/")) == ["a=1; b=2; k=new"])
    }

    @Test func aCookieThatIsRemovedIsNotSent() throws {
        _ = try get("Cookie: k=old\r\n")
        let answered = try challenge("k=; Max-Age=0; Path=/app")
        #expect(answered.contains("Authorization") && !answered.contains("Cookie"))
        #expect(try Self.values("Set-Cookie", in: finish()) == ["k=; Max-Age=0; Path=/app"])
    }

    @Test func whatDoesNotBelongToTheRequestOnlyReachesTheClient() throws {
        _ = try get()
        let fields = ["a=1; Path=/other", "b=1; Secure", "c=1; Domain=b.example", "d=1; Max-Age=0"]
        let answered = try challenge(fields[0], fields[1], fields[2], fields[3])
        #expect(answered.contains("Authorization") && !answered.contains("Cookie"))
        #expect(try Self.values("Set-Cookie", in: finish()) == fields)
    }

    @Test func theFinalResponseHasTheLastWord() throws {
        _ = try get()
        _ = try challenge("k=1; Path=/", "l=1")
        let seen = try finish(Self.ok + "Set-Cookie: k=2; Path=/\r\n")
        #expect(Self.values("Set-Cookie", in: seen) == ["k=2; Path=/", "l=1"])
    }

    /// The 401 to the answer is handed back.
    @Test func aRefusalHasTheCookiesOfTheChallengesBefore() throws {
        _ = try get()
        _ = try challenge("k=1; Path=/", "l=1")
        #expect(try challenge("k=1; Path=/") == "")
        let seen = try bench.answer()
        #expect(seen.hasPrefix("HTTP/1.1 401 ") && Self.values("Set-Cookie", in: seen) == ["k=1; Path=/", "l=1"])
    }

    /// A challenge that cannot be answered is delivered unchanged.
    @Test func aChallengeThatIsHandedBackHasItsCookiesOnce() throws {
        let bench = try Bench(sites: "http://a.example answer=ntlm plaintext=yes", password: "pw")
        let origin = try bench.idleOrigin(withCredential: true)
        try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
        try origin.receive(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nSet-Cookie: k=1\r\n"
                + "Content-Length: 0\r\n\r\n")
        let seen = try bench.answer()
        #expect(seen.hasPrefix("HTTP/1.1 401 ") && Self.values("Set-Cookie", in: seen) == ["k=1"])
    }

    /// NTLM's second message is in a response of its own, with a cookie of its own.
    @Test func eachLegOfADialogueHasTheCookiesSoFar() throws {
        let bench = try Bench(sites: "http://a.example answer=ntlm plaintext=yes domain=ACME", password: "pw")
        let origin = try bench.idleOrigin(withCredential: true)
        let second = try bench.idleOrigin(withCredential: true)
        func sent() throws -> String { try origin.sent() + second.sent() }
        func receive(_ challenge: String, _ cookie: String) throws {
            let text =
                "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: \(challenge)\r\nSet-Cookie: \(cookie)\r\n"
                + "Content-Length: 0\r\n\r\n"
            try (origin.isActive ? origin : second).receive(text)
        }
        second.close(promise: nil)
        try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
        _ = try sent()
        try receive("NTLM", "s=7; Path=/")
        let opening = try sent()
        #expect(opening.contains("\r\nAuthorization: NTLM ") && Self.values("Cookie", in: opening) == ["s=7"])
        try receive("NTLM", "t=8")
        #expect(try bench.answer().contains("\r\nSet-Cookie: s=7; Path=/\r\n"))
    }
}
