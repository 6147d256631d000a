// SPDX-License-Identifier: Apache-2.0

import NIOEmbedded
import Testing

@testable import CountersignProxy
@testable import CountersignUpstream

/// Requests that pages of other origins cause: without a credential, on connections without authentication.
@Suite struct ForeignCauseTests {
    private static let basic = "Authorization: Basic amRvZTpzZWNyZXQ="
    private static let challenge =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n"
    private static let page = "Origin: https://other.example\r\n"
    private static let asks = "a page of https://other.example asks; cross-site=https://other.example"

    /// A client of http://a.example, and an idle connection for each kind of request.
    private final class Stage {
        let bench: Bench
        let answering: EmbeddedChannel
        let anonymous: EmbeddedChannel

        init(_ options: String = "") throws {
            bench = try Bench(sites: "http://a.example plaintext=yes answer=basic \(options)", password: "secret")
            answering = try bench.idleOrigin(withCredential: true)
            anonymous = try bench.idleOrigin()
        }

        func send(_ fields: String, method: String = "GET") throws {
            try bench.send("\(method) http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\(fields)\r\n")
        }

        /// Lets the origin accept the password, so that it is sent without a challenge from now on.
        func accept() throws {
            try send("")
            _ = try answering.sent()
            try answering.receive(challenge)
            guard try answering.sent().contains(basic) else { throw Incomplete() }
            try answering.receive("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            _ = try bench.answer()
        }
    }

    @Test func aChallengeIsHandedBackWithTheReason() throws {
        let stage = try Stage()
        try stage.send(Self.page)
        #expect(try stage.anonymous.sent().hasPrefix("GET /x HTTP/1.1\r\n"))
        try stage.anonymous.receive(Self.challenge)
        let answer = try stage.bench.answer()
        #expect(answer.hasPrefix("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"\r\n"), "\(answer)")
        #expect(answer.contains("details=\"not answered: \(Self.asks) on the site's line permits it\""), "\(answer)")
        #expect(try stage.anonymous.sent() == "" && stage.answering.sent() == "")
    }

    @Test func nothingIsSentAheadEither() throws {
        let stage = try Stage()
        try stage.accept()
        try stage.send("")
        #expect(try stage.answering.sent().contains(Self.basic))
        try stage.answering.receive("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        _ = try stage.bench.answer()
        try stage.send(Self.page)
        let sent = try stage.anonymous.sent()
        #expect(sent.hasPrefix("GET /x") && !sent.contains("Authorization"), "\(sent)")
        #expect(try stage.answering.sent() == "")
        try stage.anonymous.receive(Self.challenge)
        #expect(try stage.bench.answer().hasPrefix("HTTP/1.1 401"))
    }

    @Test func theClientsOwnConnectionIsNotUsed() throws {
        let bench = try Bench()
        let bound = try bench.boundOrigin()
        let other = try bench.idleOrigin()
        // NTLM by the client itself: its connection to the origin is its own from now on.
        try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nAuthorization: NTLM TlRM\r\n\r\n")
        #expect(try bound.sent().contains("Authorization: NTLM TlRM"))
        try bound.receive("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        try bench.send("GET http://a.example/own HTTP/1.1\r\nHost: a.example\r\n\r\n")
        #expect(try bound.sent().hasPrefix("GET /own"))
        try bound.receive("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        _ = try bench.answer()
        try bench.send("GET http://a.example/foreign HTTP/1.1\r\nHost: a.example\r\n\(Self.page)\r\n")
        #expect(try bound.sent() == "" && other.sent().hasPrefix("GET /foreign"))
        try other.receive("HTTP/1.1 401 X\r\nWWW-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n")
        #expect(try bench.answer().contains("Proxy-Support: Session-Based-Authentication"))
        try bench.send("GET http://a.example/again HTTP/1.1\r\nHost: a.example\r\n\r\n")
        #expect(try bound.sent().hasPrefix("GET /again") && other.sent() == "")
    }

    @Test func aRequestWithItsOwnAuthorizationIsForwarded() throws {
        let stage = try Stage()
        try stage.send(Self.page + "Authorization: Basic eDp5\r\n")
        #expect(try stage.anonymous.sent().contains("Authorization: Basic eDp5\r\n"))
        try stage.anonymous.receive("HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\n\r\n")
        let answer = try stage.bench.answer()
        #expect(answer.contains("Access-Control-Allow-Origin: *") && !answer.contains("Proxy-Status"), "\(answer)")
    }

    @Test(arguments: [
        "", "User-Agent: curl/8\r\n", "Origin: http://a.example\r\n", "Referer: http://a.example/y\r\n",
        "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n", "Sec-Fetch-Mode: cors\r\nUser-Agent: node\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n",
        "Upgrade-Insecure-Requests: 1\r\nUser-Agent: Mozilla/5.0\r\n",
    ])
    func otherRequestsAreAnsweredAsBefore(fields: String) throws {
        let stage = try Stage()
        try stage.send(fields)
        #expect(try stage.answering.sent().hasPrefix("GET /x"))
        try stage.answering.receive(Self.challenge)
        #expect(try stage.answering.sent().contains(Self.basic))
    }

    // MARK: The option

    /// The fields of a response to a request of a page that the line permits, and those that reach the page.
    @Test(arguments: [
        ("Access-Control-Allow-Origin: *\r\n", ""),
        (
            "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true\r\n",
            "Access-Control-Allow-Credentials: true\r\n"
        ),
        ("Access-Control-Allow-Origin: https://other.example\r\n", ""),
        ("access-control-allow-origin: https://third.example\r\nVary: Origin\r\n", "Vary: Origin\r\n"),
        ("Access-Control-Allow-Origin: null\r\n", ""),
        (
            "Access-Control-Allow-Origin: https://other.example\r\nAccess-Control-Allow-Origin: *\r\n"
                + "Access-Control-Allow-Credentials: true\r\n", "Access-Control-Allow-Credentials: true\r\n"
        ),
        (
            "Access-Control-Allow-Origin: https://other.example\r\nAccess-Control-Allow-Credentials: true\r\n",
            "Access-Control-Allow-Origin: https://other.example\r\nAccess-Control-Allow-Credentials: true\r\n"
        ),
    ])
    func aPermittedPageReadsWhatNamesIt(fields: String, expected: String) throws {
        let stage = try Stage("cross-site=https://other.example")
        try stage.send(Self.page)
        #expect(try stage.answering.sent().hasPrefix("GET /x"))
        try stage.answering.receive(Self.challenge)
        #expect(try stage.answering.sent().contains(Self.basic))
        try stage.answering.receive("HTTP/1.1 200 OK\r\n\(fields)Date: d\r\nContent-Length: 0\r\n\r\n")
        let answer = try stage.bench.answer()
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n\(expected)Date: d\r\nContent-Length: 0\r\n"), "\(answer)")
    }

    /// A page could get a response without a credential without the proxy, too.
    @Test func aResponseWithoutACredentialIsUnchanged() throws {
        let stage = try Stage("cross-site=https://other.example")
        try stage.send(Self.page)
        _ = try stage.answering.sent()
        try stage.answering.receive("HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\n\r\n")
        #expect(try stage.bench.answer().contains("Access-Control-Allow-Origin: *\r\n"))
    }

    @Test func pagesOfTheSiteReadEverything() throws {
        let stage = try Stage()
        try stage.send("Origin: http://a.example\r\n")
        _ = try stage.answering.sent()
        try stage.answering.receive(Self.challenge)
        _ = try stage.answering.sent()
        try stage.answering.receive("HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\n\r\n")
        #expect(try stage.bench.answer().contains("Access-Control-Allow-Origin: *\r\n"))
    }
}
