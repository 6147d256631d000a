// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP1
import CountersignUpstream
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy

/// Complete exchanges between an origin and a client that is not an HTTP/1 connection.
@Suite struct ExchangeClientTests {
    private let bench: Bench
    private let client = InMemoryClient()

    init() throws {
        bench = try Bench(sites: "http://a.example answer=basic plaintext=yes", password: "pw")
        client.session.connected()
    }

    private func start(_ head: String) throws -> (ExchangeDriver, EmbeddedChannel) {
        let origin = try bench.idleOrigin(withCredential: true)
        return (try start(head, on: bench), origin)
    }

    private func start(_ head: String, on bench: Bench) throws -> ExchangeDriver {
        let driver = ExchangeDriver(
            client: client, session: client.session, services: bench.services,
            head: try requestHead(head),
            route: bench.services.route(to: Bench.origin, for: RouteClient(principal: Bench.uid)),
            path: Array("/x".utf8)[...], pin: nil)
        driver.start()
        return driver
    }

    private static let get = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n"
    private static let post = "POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    @Test func aRequestIsForwardedAndAnswered() throws {
        let (driver, origin) = try start(Self.get)
        #expect(try origin.sent().hasPrefix("GET /x HTTP/1.1\r\nHost: a.example\r\n"))
        try origin.receive(Self.ok)
        #expect(client.events == [.head(200, .length(2)), .end(trailers: [])])
        #expect(client.content == "ok")
        #expect(driver.connection == nil, "the connection goes back to the pool")
    }

    @Test func contentAndTrailersGoBothWays() throws {
        let (driver, origin) = try start(Self.post)
        driver.clientSent(ByteBuffer(string: "abc"))
        driver.clientSent(ByteBuffer(string: "d"))
        driver.clientRequestEnded(trailers: try requestHead("GET / HTTP/1.1\r\nHost: a\r\nDigest: 1\r\n\r\n").fields)
        #expect(try origin.sent().hasSuffix("\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\nDigest: 1\r\n\r\n"))
        try origin.receive(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1\r\n!\r\n0\r\nDigest: 2\r\n\r\n")
        #expect(client.events == [.head(200, .marked), .end(trailers: ["Digest: 2"])])
        #expect(client.content == "ok!")
    }

    @Test func aChallengeIsAnsweredAndTheContentSentAgain() throws {
        let (driver, origin) = try start(Self.post)
        driver.clientSent(ByteBuffer(string: "abc"))
        driver.clientRequestEnded(trailers: nil)
        #expect(!(try origin.sent()).contains("Authorization"))
        try origin.receive(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 4\r\n\r\nbody")
        #expect(client.events == [])
        let second = try origin.sent()
        #expect(second.contains("\r\nAuthorization: Basic amRvZTpwdw==\r\n"))
        #expect(second.hasSuffix("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
        try origin.receive(Self.ok)
        #expect(client.events == [.head(200, .length(2)), .end(trailers: [])])
    }

    /// The 401 is delivered when the dialogue takes too long, while its content is being discarded.
    @Test func contentThatArrivesDuringTheDeliveryOfEarlierContentComesAfterIt() throws {
        let (driver, origin) = try start(Self.get)
        try origin.receive(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 8\r\n\r\n")
        for part in ["ab", "cd", "ef"] { try origin.receive(part) }
        client.isWritable = false
        client.contentSent = { [client] part in
            guard part == "cd" else { return }
            #expect(throws: Never.self) { try origin.receive("gh") }
            client.isWritable = true
            driver.clientWritabilityChanged(true)
        }
        driver.secondPassed(now: bench.services.now + bench.services.configuration.dialogueSeconds + 1)
        #expect(client.content == "abcdefgh")
        #expect(client.events == [.head(401, .length(8)), .end(trailers: [])])
    }

    /// The response to an NTLM opening is not a challenge, and its connection cannot carry the request.
    @Test(arguments: [true, false])
    func aRequestWhoseOpeningWasIgnoredIsSentOnANewConnection(isLong: Bool) throws {
        let bench = try Bench(sites: "http://a.example answer=ntlm plaintext=yes", password: "pw")
        let first = try bench.idleOrigin(withCredential: true)
        let driver = try start(Self.post, on: bench)
        driver.clientSent(ByteBuffer(string: "abc"))
        driver.clientRequestEnded(trailers: nil)
        _ = try first.sent()
        try first.receive("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n")
        let opening = try first.sent()
        #expect(opening.contains("\r\nAuthorization: NTLM ") && opening.contains("\r\nContent-Length: 0\r\n"))
        let second = try bench.idleOrigin(withCredential: true)
        try first.receive(
            isLong
                ? "HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + String(repeating: "x", count: 70_000)
                : "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
        let request = try second.sent()
        #expect(!request.contains("Authorization") && request.hasSuffix("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
        try second.receive(Self.ok)
        #expect(client.events == [.head(200, .length(2)), .end(trailers: [])])
        #expect(!first.isActive && second.isActive)
    }

    @Test func anUnparsableChallengeToAReusedAnswerEndsItsReuse() throws {
        let (_, origin) = try start(Self.get)
        _ = try origin.sent()
        try origin.receive(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n")
        try origin.receive(Self.ok)
        _ = try origin.sent()
        _ = try start(Self.get, on: bench)
        #expect(try origin.sent().contains("\r\nAuthorization: Basic "))
        try origin.receive("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic a b\r\nContent-Length: 0\r\n\r\n")
        _ = try start(Self.get, on: bench)
        #expect(!(try origin.sent()).contains("Authorization"))
        #expect(client.events.filter { $0 == .head(401, .length(0)) }.count == 1)
    }

    @Test func aClientThatIsNotWritablePausesTheOrigin() throws {
        let (driver, origin) = try start(Self.get)
        client.isWritable = false
        try origin.receive("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nab")
        try origin.receive("cd")
        #expect(client.content == "ab")
        client.isWritable = true
        driver.clientWritabilityChanged(true)
        #expect(client.content == "abcd")
        try origin.receive("ef")
        #expect(client.content == "abcdef")
        #expect(client.events.last == .end(trailers: []))
    }

    @Test func anOriginThatIsNotWritablePausesTheClient() throws {
        let (driver, origin) = try start(Self.post)
        try origin.receive("HTTP/1.1 100 Continue\r\n\r\n")
        origin.isWritable = false
        origin.pipeline.fireChannelWritabilityChanged()
        driver.clientSent(ByteBuffer(string: "abc"))
        #expect(client.isRequestPaused)
        origin.isWritable = true
        origin.pipeline.fireChannelWritabilityChanged()
        #expect(!client.isRequestPaused)
    }

    @Test func theClientSeesThatAResponseWasCut() throws {
        let (_, origin) = try start(Self.get)
        try origin.receive("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nab")
        try origin.close().wait()
        #expect(client.events == [.head(200, .length(6)), .reset])
        #expect(client.content == "ab")
    }

    @Test func anOriginThatDoesNotAnswerGetsTheClientAGeneratedResponse() throws {
        let (driver, origin) = try start(Self.post)
        driver.clientRequestEnded(trailers: nil)
        try origin.close().wait()
        #expect(client.events == [.generated(502)])
    }

    @Test func theOriginSeesThatTheClientHasGone() throws {
        let (driver, origin) = try start(Self.post)
        driver.clientSent(ByteBuffer(string: "abc"))
        driver.clientGone()
        #expect(!origin.isActive)
        #expect(client.events == [])
    }

    @Test func interimResponsesComeFirst() throws {
        let (_, origin) = try start(Self.get)
        try origin.receive("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        #expect(client.events == [.interim(103)])
        try origin.receive(Self.ok)
        #expect(client.events == [.interim(103), .head(200, .length(2)), .end(trailers: [])])
    }

    @Test func contentThatEndsWithTheConnectionIsComplete() throws {
        let (_, origin) = try start(Self.get)
        try origin.receive("HTTP/1.1 200 OK\r\n\r\nab")
        origin.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(client.events == [.head(200, .connectionClose), .end(trailers: [])])
    }

    @Test func anUpgradeJoinsTheClientToTheOrigin() throws {
        let (_, origin) = try start(
            "GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        try origin.receive("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhi")
        #expect(client.events == [.upgraded])
        #expect(client.content == "hi")
        #expect(origin.isActive)
    }
}
