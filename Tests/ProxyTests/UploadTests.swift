// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy

/// Requests with large content, to an origin that may challenge them.
@Suite struct UploadTests {
    private static let site = "http://a.example answer=basic plaintext=yes"
    private static let put = "PUT http://a.example/ HTTP/1.1\r\nHost: a\r\n"
    private static let length = 2_000_000
    private static let head = "\(put)Content-Length: \(length)\r\n\r\n"
    private static let expectation = "\r\nExpect: 100-continue\r\n"
    private static let invitation = "HTTP/1.1 100 Continue\r\n\r\n"
    private static let unauthorized =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n"
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    /// printf 'jdoe:pw' | base64
    private static let answer = "\r\nAuthorization: Basic amRvZTpwdw==\r\n"

    private let bench: Bench
    private let origin: EmbeddedChannel

    init() throws {
        bench = try Bench(sites: Self.site, password: "pw")
        origin = try bench.idleOrigin(withCredential: true)
    }

    @Test func contentFollowsTheInvitationWhichTheClientDoesNotSee() throws {
        try bench.send(Self.head + "hello")
        let head = try origin.sent()
        #expect(head.contains(Self.expectation) && head.hasSuffix("\r\n\r\n"))
        #expect(head.contains("\r\nContent-Length: \(Self.length)\r\n"))
        try origin.receive(Self.invitation)
        #expect(try origin.sent() == "hello")
        try bench.send("world")
        #expect(try origin.sent() == "world")
        #expect(try bench.answer() == "")
    }

    @Test func contentIsSentOnceToAnOriginThatChallengesInsteadOfInvitingIt() throws {
        let second = try bench.idleOrigin(withCredential: true)
        try bench.send(Self.head + "hello")
        // The connection that was given back last is used first.
        let (first, other) = try second.sent().isEmpty ? (origin, second) : (second, origin)
        try first.receive(Self.unauthorized)
        #expect(!first.isActive)
        let answered = try other.sent()
        #expect(answered.contains(Self.answer) && answered.contains(Self.expectation) && answered.hasSuffix("\r\n\r\n"))
        try other.receive(Self.invitation)
        let rest = String(repeating: "x", count: Self.length - 5)
        try bench.send(rest)
        #expect(try other.sent() == "hello" + rest)
        try other.receive(Self.ok)
        let seen = try bench.answer()
        #expect(seen.hasPrefix("HTTP/1.1 200 ") && !seen.contains("100 Continue"))
        #expect(try first.sent() == "")
    }

    @Test func anOriginThatIgnoresTheExpectationIsAskedOnce() throws {
        try bench.send(Self.head + "hello")
        #expect(try origin.sent().contains(Self.expectation))
        bench.loop.advanceTime(by: .milliseconds(900))
        #expect(try origin.sent() == "")
        bench.loop.advanceTime(by: .milliseconds(200))
        #expect(try origin.sent() == "hello")
        // A late invitation is not for the client either.
        try origin.receive(Self.invitation)
        try bench.send(String(repeating: "x", count: Self.length - 5))
        _ = try origin.sent()
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 200 "))
        try bench.send(Self.head + "hello")
        let next = try origin.sent()
        #expect(!next.contains("Expect") && next.hasSuffix("\r\n\r\nhello"))
    }

    @Test func anOriginThatRejectsTheExpectationGetsTheRequestWithoutIt() throws {
        let second = try bench.idleOrigin(withCredential: true)
        try bench.send(Self.head + "hello")
        let (first, other) = try second.sent().isEmpty ? (origin, second) : (second, origin)
        try first.receive("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
        #expect(!first.isActive)
        let again = try other.sent()
        #expect(!again.contains("Expect") && again.hasSuffix("\r\n\r\nhello"))
        #expect(try bench.answer() == "")
    }

    enum Release: CaseIterable { case wholeContent, waitIsOver }

    @Test(arguments: Release.allCases)
    func anExpectationThatIsRejectedAfterTheContentWasSentIsNotTheClients(_ release: Release) throws {
        let second = try bench.idleOrigin(withCredential: true)
        try bench.send("\(Self.put)Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        let sentBySecond = try second.sent()
        let (first, other) = sentBySecond.isEmpty ? (origin, second) : (second, origin)
        #expect(try (sentBySecond + first.sent()).contains(Self.expectation))
        switch release {
        case .wholeContent: try bench.send("0\r\n\r\n")
        case .waitIsOver: bench.loop.advanceTime(by: .milliseconds(1100))
        }
        #expect(try first.sent().hasPrefix("5\r\nhello\r\n"))
        try first.receive("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
        #expect(try bench.answer() == "")
        if release == .waitIsOver { try bench.send("0\r\n\r\n") }
        let again = try other.sent()
        #expect(!again.contains("Expect") && again.hasSuffix("5\r\nhello\r\n0\r\n\r\n"))
        try other.receive(Self.ok)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 200 "))
    }

    @Test func aSpoolThatIsGivenUpIsReleasedAtOnce() throws {
        let bench = try Bench(sites: Self.site, password: "pw", spoolLimitBytes: 1)
        let origin = try bench.idleOrigin(withCredential: true)
        try bench.send(Self.head + "hello")
        try origin.receive(Self.invitation)
        weak let spool = bench.connection.exchange?.body.spool
        #expect(spool != nil)
        for count in [900_000, 200_000, 800_000] { try bench.send(String(repeating: "x", count: count)) }
        #expect(bench.connection.exchange?.body.hasLostItsStart == true)
        #expect(spool == nil)
    }

    @Test func anAnswerWhoseContentIsLostCounts() throws {
        let second = try bench.idleOrigin(withCredential: true)
        try bench.send(Self.head + "hello")
        let (first, other) = try second.sent().isEmpty ? (origin, second) : (second, origin)
        try first.receive(Self.unauthorized)
        #expect(try other.sent().contains(Self.answer))
        bench.connection.exchange?.body.giveUpRepeats(because: "the disk is full")
        try other.receive(Self.invitation)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 502 "))
        let key = Breaker.Key(
            space: AuthenticationSpace(origin: Bench.origin, realm: "r", scheme: .basic),
            credential: CredentialReference(name: "enrollment", source: .vault(generation: 1)))
        #expect(bench.services.shared.breaker.record(of: key)?.unaccepted.count == 1)
    }

    @Test func contentThatTheOriginRefusesIsDiscarded() throws {
        try bench.send(Self.head + "hello")
        _ = try origin.sent()
        try origin.receive("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno")
        try bench.send(String(repeating: "x", count: 500_000))
        #expect(try origin.sent() == "")
        try origin.receive("!")
        let seen = try bench.answer()
        #expect(seen.hasPrefix("HTTP/1.1 413 ") && seen.hasSuffix("no!"))
        #expect(seen.lowercased().contains("\r\nconnection: close\r\n"))
        #expect(!origin.isActive)
    }

    @Test func smallContentOfUnknownLengthIsNotDelayed() throws {
        try bench.send("\(Self.put)Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        #expect(try origin.sent().hasSuffix("\r\n\r\n"))
        try bench.send("0\r\n\r\n")
        #expect(try origin.sent() == "5\r\nhello\r\n0\r\n\r\n")
        try origin.receive(Self.unauthorized)
        let again = try origin.sent()
        #expect(again.contains(Self.answer) && again.hasSuffix("5\r\nhello\r\n0\r\n\r\n"))
    }

    @Test func anExpectationOfTheClientIsForwardedAndSoIsTheInvitation() throws {
        try bench.send("\(Self.put)Expect: 100-continue\r\nContent-Length: \(Self.length)\r\n\r\n")
        #expect(try origin.sent().components(separatedBy: "Expect").count == 2)
        try origin.receive(Self.invitation)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 100 "))
        try bench.send("hello")
        #expect(try origin.sent() == "hello")
    }

    // MARK: An answer that covers the content

    private static let covering =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\", "
        + "algorithm=SHA-256\r\nContent-Length: 0\r\n\r\n"

    private static func coveringBench() throws -> (Bench, EmbeddedChannel) {
        let bench = try Bench(sites: "http://a.example answer=digest plaintext=yes", password: "pw")
        return (bench, try bench.idleOrigin(withCredential: true))
    }

    @Test func aClientThatWaitsIsInvitedToSendTheContentThatTheAnswerCovers() throws {
        let (bench, origin) = try Self.coveringBench()
        try bench.send("\(Self.put)Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        #expect(try origin.sent().contains(Self.expectation))
        let other = try bench.idleOrigin(withCredential: true)
        try origin.receive(Self.covering)
        #expect(try bench.answer() == Self.invitation)
        #expect(try other.sent() == "")
        try bench.send("hello")
        let answered = try origin.sent() + other.sent()
        #expect(answered.contains("\r\nAuthorization: Digest ") && answered.hasSuffix("\r\n\r\nhello"))
    }

    @Test func aClientThatSendsIsNotInvitedAgain() throws {
        let (bench, origin) = try Self.coveringBench()
        try bench.send("\(Self.put)Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhe")
        try origin.receive(Self.covering)
        #expect(try bench.answer() == "")
    }

    @Test func aChallengeIsHandedBackAtOnceIfTheAnswerWouldCoverTooMuch() throws {
        let (bench, origin) = try Self.coveringBench()
        try bench.send("\(Self.put)Expect: 100-continue\r\nContent-Length: \(Self.length)\r\n\r\n")
        try origin.receive(Self.covering)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 401 "))
    }

    @Test func contentIsNotWithheldWhereTheAnswerIsKnown() throws {
        try bench.send("GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n")
        try origin.receive(Self.unauthorized)
        try origin.receive(Self.ok)
        _ = try origin.sent()
        try bench.send(Self.head + "hello")
        let seen = try origin.sent()
        #expect(seen.contains(Self.answer) && !seen.contains("Expect") && seen.hasSuffix("\r\n\r\nhello"))
    }

    /// Not listed; no credential; only certificates permitted; plaintext not permitted.
    @Test(
        arguments: [
            ("", "pw"), (site, nil), ("http://a.example answer=certificate plaintext=yes", "pw"),
            ("http://a.example answer=basic", "pw"),
        ] as [(String, String?)])
    func contentIsForwardedAtOnceIfNoChallengeCanBeAnswered(_ sites: String, _ password: String?) throws {
        let bench = try Bench(sites: sites, password: password)
        let origin = try bench.idleOrigin(withCredential: sites.contains("basic") && password != nil)
        try bench.send(Self.head + "hello")
        let seen = try origin.sent()
        #expect(!seen.contains("Expect") && seen.hasSuffix("\r\n\r\nhello"))
        #expect(bench.connection.exchange?.upload == nil)
    }
}
