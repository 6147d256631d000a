// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignParents
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy
@testable import CountersignUpstream

/// Messages of parents during a decision, and the end of the breaker's permits.
@Suite struct ParentStepTests {
    private static let site = Origin(scheme: .proxy, host: "p.example", port: 3128)
    private static let credential = CredentialReference(name: "enrollment", source: .vault(generation: 1))
    private static let key = Breaker.Key(
        space: AuthenticationSpace(origin: site, realm: "p", scheme: .basic), credential: credential)
    private static let socksKey = Breaker.Key(
        space: AuthenticationSpace(origin: site, realm: "SOCKS", scheme: .basic), credential: credential)
    private static let challenge = "HTTP/1.1 407 no\r\nProxy-Authenticate: Basic realm=\"p\"\r\n"
    private static let answered = "\r\nProxy-Authorization: Basic "
    private static let opened = "HTTP/1.1 200 OK\r\n\r\n"

    private static func stage(_ kind: ParentProxy.Kind = .http) throws -> ParentStage {
        let stage = try ParentStage(kind, ParentStage.policy("answer=basic plaintext=yes"))
        stage.open()
        return stage
    }

    /// Another request tries the credential until the result is released.
    private static func attempt(_ key: Breaker.Key, at stage: ParentStage) throws -> BreakerAttempt {
        try #require(stage.breaker.request(key, for: .init(method: "GET", target: "/other")) {} == .go)
        return BreakerAttempt(key, for: .init(method: "GET", target: "/other"), permittedBy: stage.breaker)
    }

    // MARK: CONNECT

    @Test(arguments: [
        "Connection: close\r\nContent-Length: 0\r\n\r\n", "Content-Length: 0\r\n\r\n",
        "Content-Length: 1000000\r\n\r\n" + String(repeating: "x", count: 70_000), "Content-Length: 0\r\n\r\nx",
        "Connection: close\r\nContent-Length: 0\r\n\r\nx", "Content-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ])
    func whatFollowsAChallengeThatIsBeingDecidedIsRefused(rest: String) throws {
        let stage = try Self.stage()
        let other = try Self.attempt(Self.key, at: stage)
        #expect(try stage.sent().hasPrefix("CONNECT www.example:443 "))
        let first = stage.channel
        try stage.receive(Self.challenge + rest)
        for _ in 0..<100 { try stage.receive("x", on: first) }
        try stage.receive(Self.opened, on: first)
        #expect(stage.result == nil && stage.channels.count == 1)
        other.end(.accepted)
        stage.loop.run()
        // The answer goes out on a connection on which nothing was said before.
        #expect(stage.channels.count == 2)
        #expect(try first.sent() == "" && !first.isActive)
        #expect(try stage.sent().contains(Self.answered))
        try stage.receive(Self.opened)
        #expect(stage.isOpen)
    }

    @Test func anErrorOfTheConnectionWhileTheResponseIsDecidedLosesOnlyThat() throws {
        let stage = try Self.stage()
        let other = try Self.attempt(Self.key, at: stage)
        _ = try stage.sent()
        try stage.receive(Self.challenge + "Content-Length: 0\r\n\r\n")
        stage.channel.pipeline.fireErrorCaught(Broken())
        other.end(.accepted)
        #expect(try stage.sent().contains(Self.answered))
        #expect(stage.channels.count == 2)
    }

    /// A response that had to be repaired.
    @Test func aChallengeThatIsNotCleanIsAnsweredOnAnotherConnection() throws {
        let stage = try Self.stage()
        _ = try stage.sent()
        try stage.receive("HTTP/1.1 407 no\nProxy-Authenticate: Basic realm=\"p\"\nContent-Length: 0\n\n")
        #expect(stage.channels.count == 2)
        #expect(try stage.sent().contains(Self.answered))
        try stage.receive("HTTP/1.1 200 OK\n\n")
        #expect(stage.isOpen)
    }

    @Test func aHandshakeOfNTLMEndsOnItsConnectionThoughNothingIsClean() throws {
        let stage = try ParentStage(.http, ParentStage.policy("answer=ntlm plaintext=yes"))
        stage.open()
        _ = try stage.sent()
        for (token, connections) in [("NTLM", 2), ("NTLM \(RepairedResponseTests.challenge)", 2)] {
            try stage.receive("HTTP/1.1 407 no\nProxy-Authenticate: \(token)\nContent-Length: 0\n\n")
            #expect(stage.channels.count == connections)
            #expect(try stage.sent().contains("\r\nProxy-Authorization: NTLM "))
        }
        try stage.receive("HTTP/1.1 200 OK\n\n")
        #expect(stage.isOpen)
    }

    @Test func aParentThatSpeaksBeforeItIsAskedIsRefused() throws {
        let stage = try Self.stage()
        #expect(stage.breaker.request(Self.key, for: .unknown) {} == .go)
        stage.cancel()
        // The first decision of a tunnel takes no time, so the connection is there before the question.
        let socks = try ParentStage(.socks5h, ParentStage.policy("answer=basic"))
        let other = try Self.attempt(Self.socksKey, at: socks)
        socks.open()
        #expect(try socks.sent() == "")
        try socks.receive([5, 0])
        #expect(socks.error?.detail.contains("before it was asked") == true)
        other.end(.accepted)
        #expect(try socks.sent() == "")
    }

    // MARK: Permits

    enum End: CaseIterable { case closed, malformed, cancelled, timeLimit, error, refused }

    private func end(_ stage: ParentStage, _ end: End) throws {
        switch end {
        case .closed: stage.inputEnds()
        case .malformed: try stage.receive("x\r\n\r\n")
        case .cancelled: stage.cancel()
        case .timeLimit: stage.loop.advanceTime(by: .seconds(31))
        case .error: stage.channel.pipeline.fireErrorCaught(Broken())
        case .refused: try stage.receive("HTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n")
        }
        stage.loop.run()
    }

    /// Before the answer was sent, an end says nothing; after that, the parent's verdict is unknown.
    @Test(arguments: End.allCases, [false, true])
    func everyEndOfAConnectEndsItsPermit(_ end: End, afterTheAnswer isAnswered: Bool) throws {
        let stage = try Self.stage()
        _ = try stage.sent()
        if isAnswered {
            try stage.receive(Self.challenge + "Content-Length: 0\r\n\r\n")
            #expect(try stage.sent().contains(Self.answered))
            #expect(stage.breaker.isTried(Self.key))
        }
        try self.end(stage, end)
        #expect(!stage.breaker.isTried(Self.key))
        let counts = isAnswered && end != .refused
        #expect((stage.breaker.record(of: Self.key)?.unaccepted.count ?? 0) == (counts ? 1 : 0))
        stage.open()
        // An accepted answer is sent at once.
        guard try !stage.sent().contains(Self.answered) else { return #expect(isAnswered && end == .refused) }
        try stage.receive(Self.challenge + "Content-Length: 0\r\n\r\n")
        #expect(try stage.sent().contains(Self.answered))
    }

    /// The parent may have counted it, too. Then the password is sent again only after a challenge.
    @Test(arguments: End.allCases)
    func everyEndAfterAnAnswerThatWasSentAheadCounts(_ end: End) throws {
        let stage = try Self.stage()
        _ = try stage.sent()
        try stage.receive(Self.challenge + "Content-Length: 0\r\n\r\n")
        #expect(try stage.sent().contains(Self.answered))
        try stage.receive(Self.opened)
        #expect(stage.isOpen)
        stage.open()
        #expect(try stage.sent().contains(Self.answered))
        try self.end(stage, end)
        let counts = end != .refused
        #expect((stage.breaker.record(of: Self.key)?.unaccepted.count ?? 0) == (counts ? 1 : 0))
        stage.open()
        #expect(try stage.sent().contains(Self.answered) == !counts)
    }

    /// A dialogue's first message has nothing of the password in it.
    @Test(arguments: [End.closed, .cancelled, .timeLimit, .error])
    func anOpeningOfNTLMDoesNotCount(_ end: End) throws {
        let stage = try ParentStage(.http, ParentStage.policy("answer=ntlm plaintext=yes"))
        stage.open()
        _ = try stage.sent()
        try stage.receive("HTTP/1.1 407 no\r\nProxy-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n")
        #expect(try stage.sent().contains("\r\nProxy-Authorization: NTLM "))
        let key = Breaker.Key(
            space: AuthenticationSpace(origin: Self.site, realm: nil, scheme: .ntlm), credential: Self.credential)
        #expect(stage.breaker.isTried(key))
        try self.end(stage, end)
        stage.cancel()
        #expect(!stage.breaker.isTried(key))
        #expect((stage.breaker.record(of: key)?.unaccepted.count ?? 0) == 0)
    }

    // MARK: Permits of SOCKS

    /// 05 02 00 02: without authentication, or with a user name and password.
    private static let offer = "\u{5}\u{2}\u{0}\u{2}"

    private func socks() throws -> ParentStage {
        let stage = try Self.stage(.socks5h)
        #expect(try stage.sent() == Self.offer)
        #expect(stage.breaker.isTried(Self.socksKey))
        return stage
    }

    @Test(arguments: End.allCases, [false, true])
    func everyEndOfASOCKSConnectionEndsItsPermit(_ end: End, afterThePassword isSent: Bool) throws {
        let stage = try socks()
        if isSent {
            try stage.receive([5, 2])
            #expect(try stage.sent() == "\u{1}\u{4}jdoe\u{2}pw")
        }
        try self.end(stage, end)
        #expect(!stage.breaker.isTried(Self.socksKey))
        let record = stage.breaker.record(of: Self.socksKey)
        // Bytes that cannot be a reply are not a verdict.
        #expect((record?.unaccepted.count ?? 0) == (isSent ? 1 : 0))
        #expect(record?.rejection == nil)
        stage.open()
        #expect(try stage.sent() == Self.offer)
        try stage.receive([5, 2])
        #expect(try stage.sent() == "\u{1}\u{4}jdoe\u{2}pw")
        try stage.receive([1, 0])
        #expect(stage.breaker.record(of: Self.socksKey)?.acceptedAt != nil)
    }

    @Test func aSOCKSParentThatWantsNoPasswordEndsThePermit() throws {
        let stage = try socks()
        try stage.receive([5, 0])
        #expect(!stage.breaker.isTried(Self.socksKey) || stage.result == nil)
        try stage.receive([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        #expect(stage.isOpen)
        #expect(!stage.breaker.isTried(Self.socksKey))
        #expect(stage.breaker.record(of: Self.socksKey)?.acceptedAt == nil)
    }

    @Test func aRejectionBySOCKSIsOneAndItsReasonIsGiven() throws {
        let stage = try socks()
        try stage.receive([5, 2])
        try stage.receive([1, 1])
        #expect(stage.error?.code == .tunnelRefused)
        #expect(stage.breaker.isRejected(Self.socksKey))
        stage.open()
        #expect(try stage.sent() == "\u{5}\u{1}\u{0}")
        try stage.receive([5, 0xFF])
        #expect(stage.error?.detail.contains("requires authentication (credential \"enrollment\"") == true)
    }

    @Test(arguments: [[1, 0], [1, 1]] as [[UInt8]])
    func aClientThatLeavesDoesNotTakeTheVerdictOfSOCKSWithIt(verdict: [UInt8]) throws {
        let stage = try socks()
        try stage.receive([5, 2])
        _ = try stage.sent()
        stage.leave()
        #expect(stage.breaker.isTried(Self.socksKey))
        try stage.receive(verdict)
        // No request wants the connection.
        #expect(try stage.sent() == "" && !stage.isOpen)
        let record = stage.breaker.record(of: Self.socksKey)
        #expect(record?.attempts.isEmpty == true && record?.unaccepted.count == 0)
        #expect((record?.acceptedAt != nil) == (verdict[1] == 0))
        #expect((record?.rejection != nil) == (verdict[1] == 1))
        #expect(stage.services.lateVerdicts == 0)
    }

    /// They would otherwise fail, because it is not known yet whether the password is correct.
    @Test func connectionsWaitWhileAnotherOneTriesThePassword() throws {
        let stage = try ParentStage(.socks5h, ParentStage.policy("answer=basic"))
        let other = try Self.attempt(Self.socksKey, at: stage)
        stage.open()
        #expect(try stage.sent() == "")
        other.end(.accepted)
        #expect(try stage.sent() == Self.offer)
    }
}
