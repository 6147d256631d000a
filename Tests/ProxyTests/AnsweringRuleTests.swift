// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import NIOEmbedded
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// The rules of answering through each driver of the proxy: the same transcript, with an origin that challenges a
/// request, and with a parent that challenges a CONNECT.
@Suite struct AnsweringRuleTests {
    enum Driver: CaseIterable { case exchange, parent }

    private static let basic = "Basic realm=\"r\""
    private static let answered = "Authorization: Basic "

    /// One of the drivers, and the server that challenges it, which the test is.
    private final class Stage {
        private let bench: Bench?
        private let parent: ParentStage?
        private var origin: EmbeddedChannel?

        init(_ driver: Driver, _ options: String = "answer=basic") throws {
            switch driver {
            case .exchange:
                let bench = try Bench(sites: "http://a.example \(options) plaintext=yes", password: "pw")
                self.bench = bench
                origin = try bench.idleOrigin(withCredential: true)
                parent = nil
            case .parent:
                parent = try ParentStage(.http, ParentStage.policy("\(options) plaintext=yes"))
                bench = nil
            }
        }

        var breaker: BreakerBoard {
            (bench?.services ?? parent?.services)?.shared.breaker ?? BreakerBoard(now: { 0 })
        }

        func key(_ scheme: AuthenticationScheme = .basic) -> Breaker.Key {
            let origin = parent == nil ? Bench.origin : Origin(scheme: .proxy, host: "p.example", port: 3128)
            return Breaker.Key(
                space: AuthenticationSpace(origin: origin, realm: "r", scheme: scheme),
                credential: CredentialReference(name: "enrollment", source: .vault(generation: 1)))
        }

        /// A client sends a request. Returns the request that the server receives.
        func ask() throws -> String {
            parent?.open()
            try bench?.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
            return try sent()
        }

        func sent() throws -> String {
            bench?.loop.run()
            return try parent?.sent() ?? origin?.sent() ?? ""
        }

        /// The server challenges. Returns the next request that it receives.
        func challenge(_ challenges: String...) throws -> String {
            let field = parent == nil ? "WWW-Authenticate" : "Proxy-Authenticate"
            try receive(
                "HTTP/1.1 \(parent == nil ? 401 : 407) no\r\n" + challenges.map { "\(field): \($0)\r\n" }.joined()
                    + "Content-Length: 0\r\n\r\n")
            return try sent()
        }

        func accept() throws {
            try receive(parent == nil ? "HTTP/1.1 204 OK\r\n\r\n" : "HTTP/1.1 200 OK\r\n\r\n")
            _ = try result()
        }

        private func receive(_ text: String) throws {
            try parent?.receive(text)
            try origin?.receive(text)
        }

        /// The server ends the connection.
        func end() {
            parent?.inputEnds()
            origin?.close(promise: nil)
        }

        func leave() {
            parent?.leave()
            bench?.client.close(promise: nil)
        }

        /// The response to the client.
        func result() throws -> String { try bench?.answer() ?? parent?.error?.detail ?? "" }

        /// Another request tries the credential.
        func attempt() throws -> BreakerAttempt {
            let tag = Breaker.RequestTag(method: "GET", target: "/other")
            try #require(breaker.request(key(), for: tag) {} == .go)
            return BreakerAttempt(key(), for: tag, permittedBy: breaker)
        }
    }

    @Test(arguments: Driver.allCases)
    func aRejectedPasswordIsNotSentAgain(_ driver: Driver) throws {
        let stage = try Stage(driver)
        #expect(try !stage.ask().contains(Self.answered))
        #expect(try stage.challenge(Self.basic).contains(Self.answered))
        #expect(try stage.challenge(Self.basic) == "")
        #expect(stage.breaker.isRejected(stage.key()))
        #expect(try stage.result().contains("was rejected"))
        #expect(try !stage.ask().contains(Self.answered))
        #expect(try stage.challenge(Self.basic) == "")
        #expect(try stage.result().contains("was rejected here and has not changed since"))
    }

    @Test(arguments: Driver.allCases)
    func aSpaceThatAcceptsThePasswordRejectsOnlyTheRequest(_ driver: Driver) throws {
        let stage = try Stage(driver)
        try stage.attempt().end(.accepted)
        _ = try stage.ask()
        #expect(try stage.challenge(Self.basic).contains(Self.answered))
        #expect(try stage.challenge(Self.basic) == "")
        #expect(!stage.breaker.isRejected(stage.key()))
        #expect(try stage.result().contains("is accepted here, but not for this request"))
    }

    @Test(arguments: Driver.allCases)
    func anAnswerWithoutAResponseCounts(_ driver: Driver) throws {
        let stage = try Stage(driver)
        _ = try stage.ask()
        #expect(try stage.challenge(Self.basic).contains(Self.answered))
        stage.end()
        let record = try #require(stage.breaker.record(of: stage.key()))
        #expect(record.attempts.isEmpty && record.unanswered == 1 && record.unaccepted.count == 1)
    }

    @Test(arguments: Driver.allCases)
    func aChallengeToAnAnswerThatNobodyAskedForRejectsIt(_ driver: Driver) throws {
        let stage = try Stage(driver)
        _ = try stage.ask()
        #expect(try stage.challenge(Self.basic).contains(Self.answered))
        try stage.accept()
        #expect(try stage.ask().contains(Self.answered))
        #expect(try stage.challenge(Self.basic) == "")
        #expect(stage.breaker.isRejected(stage.key()))
    }

    /// Another realm is challenged for the first time; the unasked answer counts all the same.
    @Test(arguments: Driver.allCases)
    func whatIsAskedInsteadIsAnswered(_ driver: Driver) throws {
        let stage = try Stage(driver)
        _ = try stage.ask()
        #expect(try stage.challenge(Self.basic).contains(Self.answered))
        try stage.accept()
        #expect(try stage.ask().contains(Self.answered))
        #expect(try stage.challenge("Basic realm=\"other\"").contains(Self.answered))
        #expect(!stage.breaker.isRejected(stage.key()))
    }

    /// A parent's line does not permit Bearer.
    @Test(arguments: [Driver.exchange])
    func aWeakerOfferIsAnsweredWithWhatThereIs(_ driver: Driver) throws {
        let stage = try Stage(driver, "answer=bearer,basic")
        _ = try stage.ask()
        #expect(try stage.challenge("Bearer realm=\"r\"", Self.basic).contains(Self.answered))
    }

    /// No weaker one is answered because the breaker refuses the credential.
    @Test(arguments: Driver.allCases)
    func aRefusedCredentialIsNoReasonForAWeakerOffer(_ driver: Driver) throws {
        let stage = try Stage(driver, "answer=digest,basic")
        stage.breaker.ended(stage.key(.digest), for: .init(method: "GET", target: "/other"), .rejected)
        _ = try stage.ask()
        let digest = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5"
        #expect(try stage.challenge(digest, Self.basic) == "")
        #expect(!stage.breaker.isTried(stage.key()))
    }

    @Test(arguments: Driver.allCases)
    func anotherRequestsAttemptIsAwaited(_ driver: Driver) throws {
        let stage = try Stage(driver)
        let other = try stage.attempt()
        _ = try stage.ask()
        #expect(try stage.challenge(Self.basic) == "")
        other.end(.accepted)
        #expect(try stage.sent().contains(Self.answered))
    }

    /// A client that leaves while its request waits leaves no permit behind, and nothing is sent for it.
    @Test(arguments: Driver.allCases)
    func aClientThatLeavesWhileItWaitsGetsNoPermit(_ driver: Driver) throws {
        let stage = try Stage(driver)
        let other = try stage.attempt()
        _ = try stage.ask()
        #expect(try stage.challenge(Self.basic) == "")
        stage.leave()
        other.end(.accepted)
        #expect(try stage.sent() == "")
        #expect(!stage.breaker.isTried(stage.key()))
    }

    /// The verdict is awaited also for a password that was sent before a challenge.
    @Test(arguments: Driver.allCases, [false, true])
    func theVerdictIsAwaitedAlthoughTheClientHasLeft(_ driver: Driver, isUnasked: Bool) throws {
        let stage = try Stage(driver)
        _ = try stage.ask()
        #expect(try stage.challenge(Self.basic).contains(Self.answered))
        if isUnasked {
            try stage.accept()
            #expect(try stage.ask().contains(Self.answered))
        }
        stage.leave()
        #expect(try stage.challenge(Self.basic) == "")
        #expect(stage.breaker.isRejected(stage.key()))
        #expect(!stage.breaker.isTried(stage.key()))
    }
}
