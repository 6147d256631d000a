// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignHTTP1
import CountersignUpstream
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy

/// A client that speaks no version of HTTP: it keeps what the exchange sends, in the terms of RFC 9110, as a stream of
/// HTTP/2 would.
private final class InMemoryClient: ExchangeClient {
    enum Event: Equatable {
        case interim(Int)
        case head(Int, ContentEnd)
        case end(trailers: [String])
        case generated(Int)
        case reset
        case upgraded
    }

    private(set) var events: [Event] = []
    private(set) var content = ""
    private(set) var fields: [String] = []
    private(set) var isRequestPaused = false
    private(set) var isLast = false
    var isWritable = true
    let session = ClientSession(process: ClientProcess(uid: Bench.uid), addresses: nil)

    func sendInterim(_ head: ResponseHead, _ changes: ResponseChanges) {
        events.append(.interim(head.status))
    }

    func send(_ response: BufferedResponse, _ changes: ResponseChanges) {
        events.append(.head(response.head.status, response.content))
        fields = Self.lines(response.head.fields) + changes.extraFields.map { "\($0.0): \($0.1)" }
    }

    func send(_ content: ByteBuffer) { self.content += String(buffer: content) }

    func finish(trailers: FieldLines?) {
        events.append(.end(trailers: trailers.map(Self.lines) ?? []))
    }

    func finish(with response: OwnResponse) { events.append(.generated(response.status)) }
    func reset() { events.append(.reset) }
    func flush() {}
    func closeAfterResponse() { isLast = true }
    func pauseRequest() { isRequestPaused = true }
    func resumeRequest() { isRequestPaused = false }

    func switchProtocols(
        _ head: ResponseHead, _ changes: ResponseChanges, to origin: UpgradedConnection, tally: TunnelHandler.Tally
    ) {
        events.append(.upgraded)
        content += String(buffer: origin.received)
    }

    private static func lines(_ fields: FieldLines) -> [String] {
        fields.lines.map { "\(fields.name(of: $0)): \(fields.value(of: $0))" }
    }
}

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
        let driver = ExchangeDriver(
            client: client, session: client.session, services: bench.services,
            head: try requestHead(head), route: bench.services.route(to: Bench.origin, for: Bench.uid),
            path: Array("/x".utf8)[...], pin: nil)
        driver.start()
        return (driver, origin)
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
