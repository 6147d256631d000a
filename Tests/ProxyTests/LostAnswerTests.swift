// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Glibc
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// The report to the breaker if an exchange ends before the origin has responded to an answer.
@Suite struct LostAnswerTests {
    private static let unauthorized =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n"
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private static let authorization = "\r\nAuthorization: Basic "
    private static let key = Breaker.Key(
        space: AuthenticationSpace(origin: Bench.origin, realm: "r", scheme: .basic),
        credential: CredentialReference(name: "enrollment", source: .vault(generation: 1)))

    private let bench: Bench
    private let origin: EmbeddedChannel

    init() throws {
        bench = try Bench(sites: "http://a.example answer=basic plaintext=yes", password: "pw")
        origin = try bench.idleOrigin(withCredential: true)
    }

    private func get(_ path: String) throws {
        try bench.send("GET http://a.example\(path) HTTP/1.1\r\nHost: a\r\n\r\n")
    }

    /// The space accepts the credential for `/`.
    private func learn() throws {
        try get("/")
        try origin.receive(Self.unauthorized)
        try origin.receive(Self.ok)
        _ = try origin.sent()
        #expect(try bench.answer().hasSuffix("ok"))
    }

    private var record: Breaker.SpaceRecord? { bench.services.shared.breaker.record(of: Self.key) }

    // MARK: The cause

    enum End: CaseIterable { case clientGone, originTimeout, slowContent, originClosed }

    @Test(arguments: End.allCases)
    func onlyTheOriginsEndOfTheConnectionIsItsSilence(_ end: End) throws {
        let now = bench.services.now
        let configuration = bench.services.configuration
        let length = end == .slowContent ? 10 : 0
        try bench.send("POST http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n")
        if end == .slowContent { try bench.send("hello") }
        let other = try bench.idleOrigin(withCredential: true)
        try origin.receive(Self.unauthorized)
        let sent = try origin.sent() + other.sent()
        try #require(sent.contains(Self.authorization), "\(sent)")
        switch end {
        case .clientGone: bench.client.close(promise: nil)
        case .originTimeout: bench.connection.secondPassed(now: now + configuration.originTimeoutSeconds + 1)
        case .slowContent: bench.connection.secondPassed(now: now + configuration.bodyIdleSeconds + 1)
        case .originClosed: origin.close(promise: nil)
        }
        bench.loop.advanceTime(by: LateVerdict.limit)
        let record = try #require(record)
        #expect(record.attempts.isEmpty)
        #expect(record.unaccepted.count == 1 && record.silent.count == 1)
        #expect(record.unanswered == (end == .originClosed ? 1 : 0))
    }

    // MARK: Responses that are refused

    /// A response that cannot be used is a response. Only a status that challenges may be about the answer.
    @Test(
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", 0),
            ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", 0),
            ("HTTP/1.1 404 No\r\nX\r\n\r\n", 0), ("HTTP/1.1 500 No\r\n: a\r\n\r\n", 0),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: x\r\n\r\n", 0),
            ("HTTP/1.1 302 Found\r\nA: \u{0}\r\n\r\n", 0),
            ("HTTP/1.1 200 \u{0}\r\n\r\n", 0), ("HTTP/2.0 200 OK\r\n\r\n", 0),
            ("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 0),
            ("HTTP/1.1 200 OK\r\n" + String(repeating: "A: b\r\n", count: 2000) + "\r\n", 0),
            (String(repeating: "HTTP/1.1 103 Early Hints\r\n\r\n", count: 33), 0),
            ("HTTP/1.1 401 Unauthorized\r\nContent-Length: x\r\n\r\n", 1),
            ("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: \u{0}\r\n\r\n", 1),
            ("HTTP/1.1 407 Proxy Authentication Required\r\nX\r\n\r\n", 1),
            ("HTTP/1.1 2000 OK\r\n\r\n", 1), ("garbage\r\n\r\n", 1), ("HTTP/1.1\r\n\r\n", 1),
        ], [false, true])
    func aResponseThatIsRefusedIsAResponse(_ response: (text: String, count: Int), isUnasked: Bool) throws {
        if isUnasked { try learn() }
        try get("/")
        if !isUnasked { try origin.receive(Self.unauthorized) }
        #expect(try origin.sent().contains(Self.authorization))
        try origin.receive(response.text)
        #expect(try bench.answer().contains("HTTP/1.1 502 "))
        #expect(record?.attempts.isEmpty != false)
        #expect((record?.unaccepted.count ?? 0) == response.count)
        // The connection was not closed instead of an answer.
        #expect(record?.rejection == nil && (record?.unanswered ?? 0) == 0)
    }

    /// The head of the response is incomplete, and nothing follows.
    @Test(
        arguments: [("HTTP/1.1 200 OK\r\nA: b\r\n", 0), ("HTTP/1.1 401 No\r\nA: b\r\n", 1), ("HTTP/1.1 20", 1)],
        [false, true])
    func aHeadThatEndsEarlyIsAResponse(_ response: (text: String, count: Int), isClosed: Bool) throws {
        let now = bench.services.now
        try get("/")
        try origin.receive(Self.unauthorized)
        #expect(try origin.sent().contains(Self.authorization))
        try origin.receive(response.text)
        if isClosed {
            origin.close(promise: nil)
        } else {
            bench.connection.secondPassed(now: now + bench.services.configuration.originTimeoutSeconds + 1)
        }
        #expect(record?.attempts.isEmpty != false)
        #expect((record?.unaccepted.count ?? 0) == response.count)
        #expect(record?.rejection == nil && (record?.unanswered ?? 0) == 0)
    }

    // MARK: Without a challenge

    @Test func aClientThatGivesUpOnAnAnswerSentWithoutAChallengeCounts() throws {
        try learn()
        try get("/slow")
        #expect(try origin.sent().contains(Self.authorization))
        bench.client.close(promise: nil)
        bench.loop.advanceTime(by: LateVerdict.limit)
        #expect(record?.unaccepted.count == 1 && record?.silent.count == 1)
    }

    @Test func anOriginThatClosesTheConnectionOnAnAnswerSentWithoutAChallengeCounts() throws {
        try learn()
        try bench.send("POST http://a.example/x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        #expect(try origin.sent().contains(Self.authorization))
        origin.close(promise: nil)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 502 "))
        #expect(record?.unaccepted.count == 1 && record?.unanswered == 1)
        // The next request waits for a challenge, and its acceptance ends the doubt.
        let next = try bench.idleOrigin(withCredential: true)
        try get("/y")
        #expect(!(try next.sent()).contains("Authorization"))
        try next.receive(Self.unauthorized)
        #expect(try next.sent().contains(Self.authorization))
        try next.receive(Self.ok)
        #expect(record?.unaccepted.count == 0)
        try get("/z")
        #expect(try next.sent().contains(Self.authorization))
    }

    /// It is unknown whether the origin has read the password, so the repeated request waits for a challenge.
    @Test func aRequestThatIsRepeatedSendsNothingAhead() async throws {
        let unauthorized = Self.unauthorized
        let ok = "HTTP/1.1 204 No Content\r\n\r\n"
        let stage = try await TunnelStage(options: "answer=basic plaintext=yes", password: "pw")
        let way = try await stage.exchange("GET")
        let ahead = await onThread {
            _ = way.origin.send(text: unauthorized)
            let answer = way.origin.head()
            _ = way.origin.send(text: ok)
            let response = way.client.head()
            #expect(answer.contains(Self.authorization) && response.hasPrefix("HTTP/1.1 204 "), "\(answer)\(response)")
            _ = way.client.send(text: "GET http://127.0.0.1:\(stage.originPort)/slow HTTP/1.1\r\nHost: a\r\n\r\n")
            return way.origin.head()
        }
        #expect(ahead.hasPrefix("GET /slow ") && ahead.contains(Self.authorization))
        close(way.origin.descriptor)
        let next = await stage.nextOrigin()
        await onThread {
            let repeated = next.head()
            #expect(repeated.hasPrefix("GET /slow ") && !repeated.contains("Authorization"), "\(repeated)")
            _ = next.send(text: unauthorized)
            #expect(next.head().contains(Self.authorization))
            _ = next.send(text: ok)
            #expect(way.client.head().hasPrefix("HTTP/1.1 204 "))
        }
        close(way.client.descriptor)
        close(next.descriptor)
        try await stage.stop()
    }

    @Test func anExchangeThatEndsBeforeItsAnswerWasSentDoesNotCount() throws {
        try learn()
        try get("/unanswered")
        #expect(try origin.sent().contains(Self.authorization))
        try origin.receive(Self.ok)
        _ = try bench.answer()
        bench.services.shared.breaker.ended(Self.key, for: .init(method: "GET", target: "/else"), .rejected)
        let before = record
        try get("/held")
        #expect(!(try origin.sent()).contains("Authorization"))
        bench.client.close(promise: nil)
        #expect(record == before)
    }

    /// A page that was requested before another one was not accepted.
    @Test func anAcceptanceWithoutAChallengeIsRememberedWhileTheSpaceIsInDoubt() throws {
        try learn()
        try get("/free")
        try origin.receive(Self.ok)
        #expect(record?.accepted == [.init(method: "GET", target: "/")])
        try get("/in-flight")
        bench.services.shared.breaker.ended(Self.key, for: .init(method: "GET", target: "/else"), .rejected)
        try origin.receive(Self.ok)
        #expect(record?.accepted == ["/", "/in-flight"].map { .init(method: "GET", target: $0) })
        #expect(record?.doubtful.count == 1)
    }

    // MARK: Gateways

    /// A gateway responds for an origin that takes long, perhaps because it delays the 401 to a wrong password.
    @Test(arguments: [502, 503, 504])
    func aGatewaysErrorDoesNotAcceptAnAnswer(status: Int) throws {
        let gateway = "HTTP/1.1 \(status) Error\r\nContent-Length: 0\r\n\r\n"
        try get("/")
        try origin.receive(Self.unauthorized)
        #expect(try origin.sent().contains(Self.authorization))
        try origin.receive(gateway)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 \(status) "))
        let record = try #require(record)
        #expect(record.acceptedAt == nil && record.attempts.isEmpty && record.unaccepted.count == 1)
        // The answer is not remembered.
        try get("/y")
        #expect(!(try origin.sent()).contains("Authorization"))
        try origin.receive(Self.unauthorized)
        #expect(try origin.sent().contains(Self.authorization))
        try origin.receive(Self.ok)
        #expect(self.record?.acceptedAt != nil && self.record?.unaccepted.count == 0)
    }

    /// An application that always fails is not a reason to doubt a password that the space has accepted.
    @Test func aGatewaysErrorToAnAnswerSentWithoutAChallengeChangesNothing() throws {
        let gateway = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
        try learn()
        let before = record
        for number in 1...4 {
            try get("/\(number)")
            #expect(try origin.sent().contains(Self.authorization))
            try origin.receive(gateway)
            #expect(try bench.answer().hasPrefix("HTTP/1.1 503 "))
        }
        #expect(record == before)
        try get("/in-flight")
        bench.services.shared.breaker.ended(Self.key, for: .init(method: "GET", target: "/else"), .rejected)
        try origin.receive(gateway)
        #expect(record?.accepted == [.init(method: "GET", target: "/")])
        #expect(record?.unaccepted.count == 1)
    }

    // MARK: A locked vault

    @Test(arguments: [true, false])
    func anAnswerIsNotKeptIfTheVaultWasLockedMeanwhile(isLocked: Bool) throws {
        try get("/")
        try origin.receive(Self.unauthorized)
        #expect(try origin.sent().contains(Self.authorization))
        if isLocked {
            let policy = bench.services.shared.policy
            policy.replace(
                with: Policy(
                    sites: policy.current.sites, enrolled: .closed(reason: "the vault is locked"),
                    originTLS: policy.current.originTLS, interceptionAuthority: nil, generation: 2))
        }
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("ok"))
        let key = ProtectionSpaceCache.Key(
            origin: Bench.origin, trust: .verified, credential: Self.key.credential, principal: Bench.uid)
        let kept = bench.services.shared.acceptedAnswers.snapshot(of: key).space(for: Array("/x".utf8)[...])
        #expect((kept == nil) == isLocked)
    }
}
