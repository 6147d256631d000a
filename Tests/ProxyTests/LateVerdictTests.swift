// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// A client that leaves does not take the origin's verdict on a credential with it.
@Suite struct LateVerdictTests {
    private static let unauthorized =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n"
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    private static let authorization = "\r\nAuthorization: Basic "
    private static let key = Breaker.Key(
        space: AuthenticationSpace(origin: Bench.origin, realm: "r", scheme: .basic),
        credential: CredentialReference(name: "enrollment", source: .vault(generation: 1)))

    private let bench: Bench

    init() throws {
        bench = try Bench(sites: "http://a.example answer=basic plaintext=yes", password: "pw")
    }

    private var record: Breaker.SpaceRecord? { bench.services.shared.breaker.record(of: Self.key) }
    private var waiting: Int { bench.services.lateVerdicts }

    /// A request that has been answered, on its origin's connection.
    private func answered(_ path: String, content: String? = nil) throws -> EmbeddedChannel {
        let origin = try bench.idleOrigin(withCredential: true)
        let framing = content.map { "Content-Length: 10\r\n\r\n\($0)" } ?? "\r\n"
        try bench.send("\(content == nil ? "GET" : "POST") http://a.example\(path) HTTP/1.1\r\nHost: a\r\n\(framing)")
        guard try !origin.sent().contains(Self.authorization) else { return origin }
        let next = content == nil ? origin : try bench.idleOrigin(withCredential: true)
        try origin.receive(Self.unauthorized)
        try #require(next.sent().contains(Self.authorization))
        return next
    }

    private func clientLeaves() { bench.client.close(promise: nil) }

    // MARK: Verdicts

    /// As a browser does that cancels the request for a site's icon, again and again.
    @Test func anAcceptanceIsReportedThatNobodyWaitsFor() throws {
        let origin = try answered("/favicon.ico")
        clientLeaves()
        #expect(origin.isActive && waiting == 1 && record?.attempts.isEmpty == false)
        try origin.receive(Self.ok)
        #expect(!origin.isActive && waiting == 0)
        let record = try #require(record)
        #expect(record.attempts.isEmpty && record.acceptedAt != nil && record.unaccepted.count == 0)
        // The next request need not be challenged.
        let key = ProtectionSpaceCache.Key(
            origin: Bench.origin, trust: .verified, credential: Self.key.credential, principal: Bench.uid)
        #expect(bench.services.shared.acceptedAnswers.snapshot(of: key).space(for: Array("/x".utf8)[...]) != nil)
    }

    @Test func aRejectionIsReportedThatNobodyWaitsFor() throws {
        let origin = try answered("/")
        clientLeaves()
        try origin.receive(Self.unauthorized)
        #expect(record?.rejection?.cause == .challenge && !origin.isActive && waiting == 0)
    }

    @Test(arguments: [502, 503, 504]) func aGatewaysErrorIsStillNoVerdict(_ status: Int) throws {
        let origin = try answered("/")
        clientLeaves()
        try origin.receive("HTTP/1.1 \(status) Error\r\nContent-Length: 0\r\n\r\n")
        #expect(record?.acceptedAt == nil && record?.unaccepted.count == 1 && waiting == 0)
    }

    @Test func interimResponsesAreNoVerdict() throws {
        let origin = try answered("/")
        clientLeaves()
        try origin.receive("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        #expect(origin.isActive && waiting == 1 && record?.attempts.isEmpty == false)
        try origin.receive("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        #expect(record?.acceptedAt != nil && waiting == 0)
    }

    @Test func anAnswerSentWithoutAChallengeIsJudgedToo() throws {
        let first = try answered("/")
        try first.receive(Self.ok + "ok")
        let before = record
        let origin = try answered("/slow")
        #expect(before?.acceptedAt != nil)
        clientLeaves()
        #expect(waiting == 1)
        try (first.isActive ? first : origin).receive(Self.ok)
        try origin.receive(Self.ok)
        #expect(record == before && waiting == 0)
    }

    @Test func aClientThatLeavesInItsContentIsNoReasonToForgetTheVerdict() throws {
        let origin = try answered("/form", content: "hello")
        bench.clientEndsInput()
        #expect(origin.isActive && waiting == 1)
        try origin.receive("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        #expect(record?.acceptedAt != nil && record?.unaccepted.count == 0)
    }

    // MARK: No verdict

    @Test func anOriginThatDoesNotRespondCounts() throws {
        let origin = try answered("/")
        clientLeaves()
        bench.loop.advanceTime(by: LateVerdict.limit - .milliseconds(1))
        #expect(origin.isActive && record?.attempts.isEmpty == false)
        bench.loop.advanceTime(by: .milliseconds(2))
        #expect(!origin.isActive && waiting == 0)
        #expect(record?.unaccepted.count == 1 && record?.unanswered == 0 && record?.attempts.isEmpty != false)
    }

    /// An origin that closes the connection is silent, unless it may have waited for more of the request.
    @Test(arguments: [nil, "hello"]) func anOriginThatClosesTheConnectionCounts(content: String?) throws {
        let origin = try answered("/", content: content)
        clientLeaves()
        origin.close(promise: nil)
        #expect(record?.unaccepted.count == 1 && record?.unanswered == (content == nil ? 1 : 0) && waiting == 0)
    }

    @Test func theProxyDoesNotStayForAVerdict() throws {
        let origin = try answered("/")
        clientLeaves()
        bench.services.stop()
        #expect(!origin.isActive && waiting == 0 && record?.unaccepted.count == 1)
    }

    @Test func theirNumberIsLimited() throws {
        bench.services.lateVerdicts = LateVerdict.maximumCount
        let origin = try answered("/")
        clientLeaves()
        #expect(!origin.isActive && record?.unaccepted.count == 1)
    }

    @Test func aRequestWithoutACredentialEndsWithItsClient() throws {
        let origin = try bench.idleOrigin(withCredential: true)
        try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a\r\n\r\n")
        clientLeaves()
        #expect(!origin.isActive && waiting == 0 && record == nil)
    }

    /// The first message of NTLM contains nothing of the password.
    @Test func anOpeningEndsWithItsClient() throws {
        let bench = try Bench(sites: "http://a.example answer=ntlm plaintext=yes domain=ACME", password: "pw")
        let origin = try bench.idleOrigin(withCredential: true)
        try bench.send("GET http://a.example/ HTTP/1.1\r\nHost: a\r\n\r\n")
        try origin.receive("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n")
        #expect(try origin.sent().contains("\r\nAuthorization: NTLM TlRMTVNTUAAB"))
        bench.client.close(promise: nil)
        #expect(!origin.isActive && bench.services.lateVerdicts == 0 && !bench.services.shared.breaker.hasCounted)
    }
}

extension BreakerBoard {
    /// Whether any answer counts that was not accepted.
    fileprivate var hasCounted: Bool {
        let space = AuthenticationSpace(origin: Bench.origin, realm: nil, scheme: .ntlm)
        let key = Breaker.Key(
            space: space, credential: CredentialReference(name: "enrollment", source: .vault(generation: 1)))
        return record(of: key)?.unaccepted.count ?? 0 > 0
    }
}
