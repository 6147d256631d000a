// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy

@Suite struct ExchangeDriverTests {
    private static let site = "http://a.example answer=basic plaintext=yes"
    private static let get = "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n"
    private static let unauthorized =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 4\r\n\r\nbody"
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    /// printf 'jdoe:pw' | base64
    private static let answer = "\r\nAuthorization: Basic amRvZTpwdw==\r\n"

    private static let key = Breaker.Key(
        space: AuthenticationSpace(origin: Bench.origin, realm: "r", scheme: .basic),
        credential: CredentialReference(name: "enrollment", source: .vault(generation: 1)))

    private static func listed() throws -> (bench: Bench, origin: EmbeddedChannel) {
        let bench = try Bench(sites: site, password: "pw")
        return (bench, try bench.idleOrigin(withCredential: true))
    }

    @Test func aChallengeIsAnsweredOnTheSameConnectionAndTheClientSeesOnlyTheResult() throws {
        let (bench, origin) = try Self.listed()
        try bench.send(Self.get)
        #expect(!(try origin.sent()).contains("Authorization"))
        try origin.receive(Self.unauthorized)
        #expect(try bench.answer() == "")
        #expect(try origin.sent().contains(Self.answer))
        try origin.receive(Self.ok)
        let answer = try bench.answer()
        #expect(answer.hasPrefix("HTTP/1.1 200 "))
        #expect(!answer.contains("401"))
        #expect(bench.services.shared.breaker.request(Self.key) {} == .go)
    }

    @Test func aRejectedCredentialIsNotSentAgain() throws {
        let (bench, origin) = try Self.listed()
        try bench.send(Self.get)
        try origin.receive(Self.unauthorized)
        try origin.receive(Self.unauthorized)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 401 "))
        #expect(bench.services.shared.breaker.isRejected(Self.key))
        _ = try origin.sent()
        try bench.send(Self.get)
        try origin.receive(Self.unauthorized)
        #expect(!(try origin.sent()).contains("Authorization"))
        #expect(try bench.answer().contains("WWW-Authenticate: Basic realm=\"r\"\r\n"))
    }

    // MARK: Pre-emptive answers

    /// Sends a GET of `path`. Returns the request that the origin receives.
    private static func request(_ path: String, _ bench: Bench, _ origin: EmbeddedChannel) throws -> String {
        try bench.send("GET http://a.example\(path) HTTP/1.1\r\nHost: a.example\r\n\r\n")
        return try origin.sent()
    }

    private static func unauthorized(realm: String) -> String {
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"\(realm)\"\r\nContent-Length: 0\r\n\r\n"
    }

    private static func learn(_ path: String, realm: String, _ bench: Bench, _ origin: EmbeddedChannel) throws {
        #expect(!(try request(path, bench, origin)).contains("Authorization"))
        try origin.receive(unauthorized(realm: realm))
        #expect(try origin.sent().contains(answer))
        try origin.receive(ok)
        #expect(try bench.answer().hasSuffix("ok"))
    }

    private static let learnedKey = ProtectionSpaceCache.Key(
        origin: Bench.origin, trust: .verified,
        credential: CredentialReference(name: "enrollment", source: .vault(generation: 1)), principal: Bench.uid)

    /// The realm distinguishes a rejection from the challenge of another protection space.
    @Test func anAnswerIsCachedPerProtectionSpace() throws {
        let (bench, origin) = try Self.listed()
        try Self.learn("/a/x", realm: "a", bench, origin)
        try Self.learn("/b/x", realm: "b", bench, origin)
        for path in ["/b/y", "/a/y", "/b/z"] {
            #expect(try Self.request(path, bench, origin).contains(Self.answer))
            try origin.receive(Self.ok)
            #expect(try bench.answer().hasSuffix("ok"))
        }
        #expect(try Self.request("/a/z", bench, origin).contains(Self.answer))
        try origin.receive(Self.unauthorized(realm: "b"))
        #expect(try origin.sent().contains(Self.answer))
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 200 "))
    }

    @Test func aForgottenAnswerIsNotSentPreemptively() throws {
        let (bench, origin) = try Self.listed()
        try Self.learn("/x", realm: "r", bench, origin)
        #expect(try Self.request("/y", bench, origin).contains(Self.answer))
        try origin.receive(Self.ok)
        bench.services.shared.acceptedAnswers.removeAll(of: Self.learnedKey)
        #expect(!(try Self.request("/z", bench, origin)).contains("Authorization"))
    }

    /// The content that arrived before the answer was sent, and the content that was discarded afterwards.
    @Test func aChallengeDrainedInPartsIsDeliveredCompletelyAndOnce() throws {
        let bench = try Bench(sites: "http://a.example answer=ntlm plaintext=yes", password: "pw")
        let origin = try bench.idleOrigin(withCredential: true)
        try bench.send(Self.get)
        try origin.receive(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM\r\nContent-Length: 9\r\n\r\nabc")
        try origin.receive("def")
        try origin.receive("ghi")
        #expect(try origin.sent().contains("\r\nAuthorization: NTLM "))
        bench.connection.secondPassed(now: bench.services.now + 31)
        let answer = try bench.answer()
        #expect(answer.hasPrefix("HTTP/1.1 401 ") && answer.hasSuffix("\r\n\r\nabcdefghi"))
    }

    /// The line permits Basic over http and names it, but the site has accepted Digest before.
    @Test func aWeakerOfferOverHTTPGetsNoPassword() throws {
        let bench = try Bench(sites: "http://a.example answer=digest,basic plaintext=yes preempt=no", password: "pw")
        let origin = try bench.idleOrigin(withCredential: true)
        func get(_ path: String) throws { try bench.send("GET http://a.example\(path) HTTP/1.1\r\nHost: a\r\n\r\n") }
        let digest = "HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=auth\r\n"
        let length = "Content-Length: 0\r\n\r\n"
        try get("/")
        try origin.receive(digest + length)
        try origin.receive("HTTP/1.1 200 OK\r\n" + length)
        #expect(try origin.sent().contains("\r\nAuthorization: Digest "))
        _ = try bench.answer()
        try get("/")
        try origin.receive("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"r\"\r\n" + length)
        #expect(!(try origin.sent()).contains("Authorization"))
        let answer = try bench.answer()
        #expect(answer.hasPrefix("HTTP/1.1 401 ") && answer.contains("has accepted digest before"), "\(answer)")
    }

    /// A fault may be damage in transit. Bearer is never answered over http, so nothing is weaker than it.
    @Test(arguments: [
        ("Digest realm=\"r\", nonce=\"n\", domain=\"\"/\"", false), ("Digest nonce=\"n\" oops, realm=\"r\"", false),
        ("Bearer realm=\"r\", error_description=\"The \"x\"\"", true), ("Unknown realm=\"r\" oops", true),
    ])
    func besideAFaultNoPasswordGoesInClear(other: String, isAnswered: Bool) throws {
        let bench = try Bench(sites: "http://a.example plaintext=yes preempt=no", password: "pw")
        let origin = try bench.idleOrigin(withCredential: true)
        try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = try origin.sent()
        try origin.receive(
            "HTTP/1.1 401 No\r\nWWW-Authenticate: \(other)\r\nWWW-Authenticate: Basic realm=\"r\"\r\n"
                + "Content-Length: 0\r\n\r\n")
        #expect(try origin.sent().contains("\r\nAuthorization: Basic ") == isAnswered)
        if !isAnswered { #expect(try bench.answer().contains("a stronger challenge has a fault")) }
    }

    /// A client of another user, with a cache entry of its own, may have had the credential rejected.
    @Test func anAnswerRejectedElsewhereIsNotSentPreemptively() throws {
        let (bench, origin) = try Self.listed()
        try Self.learn("/x", realm: "r", bench, origin)
        #expect(try Self.request("/y", bench, origin).contains(Self.answer))
        try origin.receive(Self.ok)
        bench.services.shared.breaker.ended(Self.key, .rejected)
        #expect(!(try Self.request("/z", bench, origin)).contains("Authorization"))
    }

    /// No socket has these addresses, so the client counts as gone.
    @Test(arguments: [true, false])
    func nothingIsSentPreemptivelyForAClientThatHasGone(isThere: Bool) throws {
        let addresses = (
            client: try SocketAddress(ipAddress: "127.0.0.1", port: 1),
            server: try SocketAddress(ipAddress: "127.0.0.1", port: 2)
        )
        let bench = try Bench(sites: Self.site, password: "pw", addresses: isThere ? nil : addresses)
        let origin = try bench.idleOrigin(withCredential: true)
        let accepted = AcceptedAnswer.basic("jdoe:pw", realm: "r", at: Bench.origin)
        #expect(bench.services.shared.breaker.requestAtOnce(Self.key) == .go)
        bench.services.shared.breaker.ended(Self.key, .accepted)
        bench.services.shared.acceptedAnswers.add(
            .init(accepted, scope: try #require(PathScope(challengedPath: "/"))), key: Self.learnedKey)
        #expect(try Self.request("/x", bench, origin).contains(Self.answer) == isThere)
    }

    @Test func aConnectionAuthenticatedByNTLMIsNotAuthenticatedAgain() throws {
        let bench = try Bench(sites: "http://a.example answer=ntlm plaintext=yes", password: "pw")
        let origin = try bench.idleOrigin(withCredential: true)
        // The CHALLENGE_MESSAGE of MS-NLMP §4.2.4.3.
        let challenge =
            "TlRMTVNTUAACAAAADAAMADgAAAAzgoriASNFZ4mrze8AAAAAAAAAACQAJABEAAAABgBwFwAAAA9TAGUAcgB2AGUAcgACAAwA"
            + "RABvAG0AYQBpAG4AAQAMAFMAZQByAHYAZQByAAAAAAA="
        #expect(!(try Self.request("/x", bench, origin)).contains("Authorization"))
        for token in ["", " " + challenge] {
            try origin.receive(
                "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM\(token)\r\nContent-Length: 0\r\n\r\n")
            #expect(try origin.sent().contains("\r\nAuthorization: NTLM "))
        }
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("ok"))
        #expect(!(try Self.request("/y", bench, origin)).contains("Authorization"))
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("ok"))
    }

    @Test func withPreemptNoEachRequestIsChallenged() throws {
        let bench = try Bench(sites: Self.site + " preempt=no", password: "pw")
        let origin = try bench.idleOrigin(withCredential: true)
        for path in ["/x", "/y"] { try Self.learn(path, realm: "r", bench, origin) }
    }

    @Test func aClientsOwnAuthorizationIsForwardedUnchanged() throws {
        let bench = try Bench(sites: Self.site, password: "pw")
        let origin = try bench.idleOrigin()
        try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a\r\nAuthorization: Basic OTk6OTk=\r\n\r\n")
        #expect(try origin.sent().contains("\r\nAuthorization: Basic OTk6OTk=\r\n"))
        try origin.receive(Self.unauthorized)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 401 "))
        #expect(try origin.sent() == "")
    }

    @Test func theReasonForNotSendingACertificateIsReported() throws {
        let bench = try Bench(sites: Self.site, password: "pw")
        let checks = ThreeChecks(site: .yes("listed"), challenge: .no("none of its authorities is known"))
        let origin = try bench.idleOrigin(withCredential: true, checks: checks)
        try bench.send(Self.get)
        try origin.receive(Self.ok)
        #expect(
            try bench.answer().contains("client certificate not sent: none of its authorities is known"))
    }

    @Test func aRequestAfterAReloadUsesTheNewList() throws {
        let (bench, origin) = try Self.listed()
        let other = try bench.idleOrigin()
        try Self.learn("/x", realm: "r", bench, origin)
        bench.services.shared.policy.replace(with: try Bench.policy(sites: "", password: "pw"))
        #expect(!(try Self.request("/y", bench, other)).contains("Authorization"))
        try other.receive(Self.unauthorized)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 401 "))
        #expect(try origin.sent() == "")
    }

    /// NTLM authenticates the connection, not the request.
    @Test func requestsAfterAClientsOwnNTLMAreNotAnswered() throws {
        let (bench, other) = try Self.listed()
        let own = try bench.boundOrigin()
        try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a\r\nAuthorization: NTLM TlRMTVNTUAAB\r\n\r\n")
        #expect(try own.sent().contains("\r\nAuthorization: NTLM TlRMTVNTUAAB\r\n"))
        try own.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("ok"))
        try bench.send(Self.get)
        #expect(try own.sent().hasPrefix("GET /x "))
        try own.receive(Self.unauthorized)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 401 "))
        #expect(try own.sent() == "" && other.sent() == "")
    }

    @Test func anUnlistedSiteIsNotAnswered() throws {
        let bench = try Bench(sites: "http://b.example answer=basic plaintext=yes", password: "pw")
        let origin = try bench.idleOrigin()
        try bench.send(Self.get)
        try origin.receive(Self.unauthorized)
        #expect(try bench.answer().hasSuffix("\r\n\r\nbody"))
        #expect(!(try origin.sent()).contains("Authorization"))
    }

    @Test(arguments: ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"])
    func theContentIsSentAgainWithTheAnswer(_ rest: String) throws {
        let (bench, origin) = try Self.listed()
        try bench.send("PUT http://a.example/ HTTP/1.1\r\nHost: a\r\n" + rest)
        let first = try origin.sent()
        try origin.receive(Self.unauthorized)
        let second = try origin.sent()
        let body = { (text: String) in text.firstRange(of: "\r\n\r\n").map { String(text[$0.upperBound...]) } }
        #expect(second.contains(Self.answer))
        #expect(body(first) == body(second))
        #expect(body(second)?.contains("hello") == true)
    }

    /// NTLM's first message is sent without the content, so an origin that accepts it has not received the request.
    @Test(arguments: ["", " preempt=no"])
    func anOpeningThatIsNotChallengedIsFollowedByTheCompleteRequest(_ option: String) throws {
        let bench = try Bench(sites: "http://a.example answer=ntlm plaintext=yes" + option, password: "pw")
        let origin = try bench.idleOrigin(withCredential: true)
        try bench.send("PUT http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello")
        #expect(try origin.sent().hasSuffix("hello"))
        try origin.receive("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n")
        let opening = try origin.sent()
        #expect(opening.contains("\r\nAuthorization: NTLM ") && opening.contains("\r\nContent-Length: 0\r\n"))
        try origin.receive(Self.ok)
        #expect(try bench.answer() == "")
        let whole = try origin.sent()
        #expect(!whole.contains("Authorization") && whole.contains("\r\nContent-Length: 5\r\n"))
        #expect(whole.hasSuffix("\r\n\r\nhello"))
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("ok"))
    }

    @Test func contentTheOriginDidNotWaitForIsSentCompletelyOnAnotherConnection() throws {
        let (bench, second) = try Self.listed()
        let first = try bench.idleOrigin(withCredential: true)
        try bench.send("PUT http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
        #expect(try first.sent().hasSuffix("hello"))
        try first.receive(Self.unauthorized)
        #expect(!first.isActive)
        #expect(try second.sent().hasSuffix("hello"))
        try bench.send("world")
        #expect(try second.sent() == "world")
        try second.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("ok"))
    }

    /// A channel that becomes unwritable with each write and writable with each flush.
    private final class Narrow: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        let channel: EmbeddedChannel

        init(_ channel: EmbeddedChannel) { self.channel = channel }

        private func becomes(writable: Bool) {
            guard channel.isWritable != writable else { return }
            channel.isWritable = writable
            channel.pipeline.fireChannelWritabilityChanged()
        }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            context.write(data, promise: promise)
            becomes(writable: false)
        }

        func flush(context: ChannelHandlerContext) {
            context.flush()
            becomes(writable: true)
        }
    }

    @Test func contentThatArrivesDuringARepeatIsSentAfterIt() throws {
        let (bench, second) = try Self.listed()
        try second.pipeline.syncOperations.addHandler(Narrow(second), position: .first)
        let first = try bench.idleOrigin(withCredential: true)
        let (a, b) = (String(repeating: "a", count: 5000), String(repeating: "b", count: 5000))
        try bench.send("PUT http://a.example/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        try first.receive("HTTP/1.1 100 Continue\r\n\r\n")
        try bench.send("1388\r\n\(a)\r\n")
        first.isWritable = false
        first.pipeline.fireChannelWritabilityChanged()
        try bench.send("1388\r\n\(b)\r\n0\r\n\r\n")
        #expect(!(try first.sent()).contains("b"))
        try first.receive(Self.unauthorized)
        #expect(try second.sent().hasSuffix("\r\n\r\n1388\r\n\(a)\r\n1388\r\n\(b)\r\n0\r\n\r\n"))
        try second.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("ok"))
    }

    @Test func aConnectionThatMissedContentIsNeverReused() throws {
        let (bench, origin) = try Self.listed()
        // Another request is trying the credential for the first time, so this one waits.
        #expect(bench.services.shared.breaker.request(Self.key) {} == .go)
        try bench.send("PUT http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello")
        _ = try origin.sent()
        try origin.receive(String(Self.unauthorized.dropLast(2)))
        try bench.send("wor")
        bench.services.shared.breaker.ended(Self.key, .rejected)
        bench.loop.run()
        try bench.send("ld")
        #expect(try bench.answer().hasPrefix("HTTP/1.1 401 "))
        #expect(try origin.sent() == "")
        try origin.receive("dy")
        #expect(try bench.answer() == "dy")
        #expect(!origin.isActive)
    }

    @Test func anExchangeThatWaitedForAnotherAttemptContinuesWhenItSucceeds() throws {
        let (bench, origin) = try Self.listed()
        #expect(bench.services.shared.breaker.request(Self.key) {} == .go)
        try bench.send(Self.get)
        _ = try origin.sent()
        try origin.receive(Self.unauthorized)
        #expect(try origin.sent() == "")
        bench.services.shared.breaker.ended(Self.key, .accepted)
        bench.loop.run()
        #expect(try origin.sent().contains(Self.answer))
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasSuffix("ok"))
    }

    /// They wait for the origin's verdict, which is awaited for a limited time.
    @Test func aClientThatGoesDoesNotKeepOthersWaiting() throws {
        let (bench, origin) = try Self.listed()
        try bench.send(Self.get)
        try origin.receive(Self.unauthorized)
        #expect(bench.services.shared.breaker.request(Self.key) {} == .wait)
        bench.client.close(promise: nil)
        #expect(bench.services.shared.breaker.request(Self.key) {} == .wait)
        bench.loop.advanceTime(by: LateVerdict.limit)
        #expect(bench.services.shared.breaker.request(Self.key) {} == .go)
    }

    @Test func aGETIsRetriedOnceAfterAClosedIdleConnection() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.get)
        try origin.receive(Self.ok)
        _ = try bench.answer()
        try bench.send("POST http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        origin.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        let answer = try bench.answer()
        #expect(answer.hasPrefix("HTTP/1.1 502 "))
        #expect(answer.contains("error=connection_terminated"))
    }

    static let faults: [(String, String)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "502"),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "502"),
        ("SSH-2.0-x\r\n", "502"),
    ]

    @Test(arguments: faults) func aMalformedResponseIsA502AndClosesTheConnection(_ text: String, _ status: String)
        throws
    {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.get)
        try origin.receive(text)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 \(status) "))
        #expect(!origin.isActive)
    }

    @Test func thirtyTwoInterimResponsesAreForwardedAndNoMore() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.get)
        for _ in 0..<32 { try origin.receive("HTTP/1.1 103 Early Hints\r\n\r\n") }
        #expect(try bench.answer().components(of: "HTTP/1.1 103 ") == 32)
        #expect(origin.isActive)
        try origin.receive("HTTP/1.1 103 Early Hints\r\n\r\n")
        #expect(try bench.answer().hasPrefix("HTTP/1.1 502 "))
        #expect(!origin.isActive)
    }

    @Test func aTruncatedResponseIsNeverEndedCleanly() throws {
        let bench = try Bench()
        let origin = try bench.idleOrigin()
        try bench.send(Self.get)
        try origin.receive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        origin.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(!(try bench.answer()).contains("\r\n0\r\n"))
    }

    @Test func aChallengeWithTooMuchContentIsNotReadToItsEnd() throws {
        let (bench, second) = try Self.listed()
        let first = try bench.idleOrigin(withCredential: true)
        try bench.send(Self.get)
        try first.receive(
            "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 99999\r\n\r\n"
                + String(repeating: "x", count: 65_536))
        #expect(first.isActive)
        try first.receive("x")
        #expect(!first.isActive)
        #expect(try second.sent().contains(Self.answer))
    }

    // MARK: The dialogue's time limit

    private static let ntlmSite = "http://a.example answer=ntlm plaintext=yes"
    private static let ntlmChallenge =
        "HTTP/1.1 401 First\r\nWWW-Authenticate: NTLM\r\nContent-Length: 5\r\n\r\nfirst"

    @Test func aDialogueThatTakesTooLongEndsWithTheLastChallenge() throws {
        let bench = try Bench(sites: Self.ntlmSite, password: "pw")
        let origin = try bench.idleOrigin(withCredential: true)
        try bench.send(Self.get)
        try origin.receive(Self.ntlmChallenge)
        #expect(try origin.sent().contains("\r\nAuthorization: NTLM "))
        bench.connection.secondPassed(now: bench.services.now + 30)
        #expect(try bench.answer() == "")
        bench.connection.secondPassed(now: bench.services.now + 31)
        let answer = try bench.answer()
        #expect(answer.hasPrefix("HTTP/1.1 401 First\r\n") && answer.hasSuffix("\r\n\r\nfirst"), "\(answer)")
        #expect(answer.contains("details=\"not answered: the dialogue took longer than 30 seconds\""))
        #expect(!origin.isActive)
        #expect(bench.services.shared.breaker.request(Self.key) {} == .go)
    }

    @Test func aChallengeThatIsStillArrivingIsForwarded() throws {
        let (bench, origin) = try Self.listed()
        try bench.send(Self.get)
        try origin.receive(String(Self.unauthorized.dropLast(2)))
        bench.connection.secondPassed(now: bench.services.now + 31)
        #expect(try bench.answer().hasSuffix("\r\n\r\nbo"))
        try origin.receive("dy")
        #expect(try bench.answer() == "dy")
        #expect(!(try origin.sent()).contains("Authorization"))
    }

    @Test func waitingForAnotherAttemptHasALimit() throws {
        let (bench, origin) = try Self.listed()
        #expect(bench.services.shared.breaker.request(Self.key) {} == .go)
        try bench.send(Self.get)
        try origin.receive(Self.unauthorized)
        bench.connection.secondPassed(now: bench.services.now + 31)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 401 "))
        bench.services.shared.breaker.ended(Self.key, .accepted)
        bench.loop.run()
        #expect(!(try origin.sent()).contains("Authorization"))
    }

    @Test func theRequestWithTheFinalAnswerHasNoDialogueLimit() throws {
        let (bench, origin) = try Self.listed()
        try bench.send(Self.get)
        try origin.receive(Self.unauthorized)
        bench.connection.secondPassed(now: bench.services.now + 299)
        #expect(try bench.answer() == "")
        try origin.receive(Self.ok)
        #expect(try bench.answer().hasPrefix("HTTP/1.1 200 "))
    }

    @Test func anAcceptedAnswerIsSentPreemptivelyOnlyInsideItsSpace() throws {
        let (bench, origin) = try Self.listed()
        try bench.send("GET http://a.example/docs/a HTTP/1.1\r\nHost: a\r\n\r\n")
        try origin.receive(Self.unauthorized)
        try origin.receive(Self.ok)
        _ = try origin.sent()
        try bench.send("GET http://a.example/docs/b HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try origin.sent().contains(Self.answer))
        try origin.receive(Self.ok)
        try bench.send("GET http://a.example/other HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(!(try origin.sent()).contains("Authorization"))
    }
}
