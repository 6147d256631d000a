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

/// Which clients and requests share a connection to a parent that NTLM has authenticated, and which do not.
@Suite struct SharedParentConnectionTests {
    private static let site = Origin(scheme: .proxy, host: "p.example", port: 3128)
    private static let credential = CredentialReference(name: "enrollment", source: .vault(generation: 1))
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private static let refused = "HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n"
    private static let challenged =
        "HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM \(RepairedResponseTests.challenge)\r\nContent-Length: 0\r\n\r\n"

    private let bench: Bench
    /// Is authenticated by `init()`, and idle.
    private let parent: EmbeddedChannel

    init() throws {
        let host = try HostName(canonicalizing: "p.example", for: .forwarded)
        bench = try Bench(
            ParentStage.policy("answer=ntlm plaintext=yes"),
            routes: ParentStage.OneRoute(ParentProxy(.http, host, 3128)))
        parent = try bench.idleOrigin(withCredential: true, forwarder: Self.site)
        try bench.send("GET http://a.example/1 HTTP/1.1\r\nHost: a\r\n\r\n")
        try authenticate(parent)
        #expect(try bench.answer().hasSuffix("ok"))
    }

    /// A request has gone out unanswered on `connection`; the handshake follows.
    private func authenticate(_ connection: EmbeddedChannel) throws {
        #expect(try !connection.sent().contains("Proxy-Authorization"))
        for challenge in [Self.refused, Self.challenged] {
            try connection.receive(challenge)
            #expect(try connection.sent().contains("\r\nProxy-Authorization: NTLM TlRMTVNTUA"))
        }
        try connection.receive(Self.ok)
    }

    private func key(
        _ principal: UInt32? = Bench.uid, _ credential: CredentialReference = credential, settings: UInt64 = 1,
        origin: Origin = site
    ) -> UpstreamKey {
        UpstreamKey(
            origin: origin, trust: .verified, credential: credential, principal: principal, settings: settings)
    }

    private var isShared: Bool { !bench.services.pool.slot(for: key()).isEmpty }

    /// Another client connection of this user.
    private func client(uid: UInt32 = Bench.uid) throws -> EmbeddedChannel { try connect(uid).channel }

    private func connect(_ uid: UInt32 = Bench.uid) throws -> (channel: EmbeddedChannel, session: ClientSession) {
        let client = EmbeddedChannel(handler: Wire(isNarrow: false), loop: bench.loop)
        let connection = ClientConnection(
            services: bench.services, process: ClientProcess(uid: uid), addresses: nil)
        try client.pipeline.syncOperations.addHandler(connection)
        try client.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        return (client, connection.session)
    }

    private func get(_ client: EmbeddedChannel, _ host: String = "a.example", fields: String = "") throws {
        try client.receive("GET http://\(host)/2 HTTP/1.1\r\nHost: a\r\n\(fields)\r\n")
    }

    /// An unused connection to the parent, for requests of a user to `a.example`.
    private func unused(_ principal: UInt32 = Bench.uid, settings: UInt64 = 1) throws -> EmbeddedChannel {
        let (channel, connection) = try connectParent()
        bench.services.pool.slot(for: key(principal, settings: settings, origin: Bench.origin))
            .giveBack(connection, now: bench.services.now)
        return channel
    }

    private func connectParent() throws -> (EmbeddedChannel, OriginConnection) {
        let channel = EmbeddedChannel(handler: Wire(isNarrow: false), loop: bench.loop)
        let connection = OriginConnection(place: "a.example:80", tlsHandler: nil, forwarder: Self.site)
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
        return (channel, connection)
    }

    @Test func allClientsOfOneUserAndAllOriginsShareIt() throws {
        for host in ["a.example", "b.example", "a.example"] {
            #expect(isShared)
            let other = try client()
            try get(other, host)
            let sent = try parent.sent()
            #expect(sent.hasPrefix("GET http://\(host)/2 ") && !sent.contains("Proxy-Authorization"), "\(sent)")
            #expect(!isShared)
            try parent.receive(Self.ok)
            #expect(try other.sent().hasSuffix("ok"))
        }
        #expect(isShared)
    }

    @Test func anotherUserGetsAnother() throws {
        let theirs = try unused(2000)
        let other = try client(uid: 2000)
        try get(other)
        #expect(try parent.sent().isEmpty && isShared)
        #expect(try theirs.sent().hasPrefix("GET http://a.example/2 "))
    }

    /// Even with the same credential.
    @Test func anotherPolicyGetsAnother() throws {
        let policy = bench.services.shared.policy
        let old = policy.current
        policy.replace(
            with: Policy(
                sites: old.sites, enrolled: old.enrolled, originTLS: old.originTLS, interceptionAuthority: nil,
                generation: 2))
        let theirs = try unused(settings: 2)
        try get(try client())
        #expect(try parent.sent().isEmpty && isShared)
        #expect(try theirs.sent().contains("GET http://a.example/2 "))
    }

    @Test func aConnectionOnWhichTheParentChallengesAgainStaysWithItsClient() throws {
        let other = try client()
        try get(other)
        try authenticate(parent)
        #expect(try other.sent().hasSuffix("ok"))
        #expect(!isShared && parent.isActive)
        // Its client still uses it.
        try get(other)
        #expect(try parent.sent().hasPrefix("GET http://a.example/2 "))
        try parent.receive(Self.ok)
        #expect(!isShared)
    }

    /// The origin may bind the client's next requests to the connection.
    @Test func aConnectionThroughWhichAnOriginOffersNTLMStaysWithItsClient() throws {
        let other = try client()
        try get(other)
        try parent.receive("HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n")
        #expect(try other.sent().hasPrefix("HTTP/1.1 401 "))
        #expect(!isShared && parent.isActive)
        try get(other, fields: "Authorization: NTLM TlRMTVNTUAAB\r\n")
        #expect(try parent.sent().contains("\r\nAuthorization: NTLM TlRMTVNTUAAB"))
        try parent.receive(Self.ok)
        #expect(!isShared && parent.isActive)
    }

    @Test func aRequestWithTheClientsOwnNTLMDoesNotTakeIt() throws {
        let (own, connection) = try connectParent()
        let (other, session) = try connect()
        session.bind(connection, for: key(origin: Bench.origin))
        try get(other, fields: "Authorization: NTLM TlRMTVNTUAAB\r\n")
        #expect(try own.sent().contains("TlRMTVNTUAAB"))
        #expect(try parent.sent().isEmpty && isShared)
    }

    @Test func anAnswerThatIsRefusedEndsIt() throws {
        let second = try unused()
        let waiting = try client()
        try get(waiting)
        // The shared connection is in use, so the next client gets another one.
        let other = try client()
        try get(other)
        #expect(try parent.sent().hasPrefix("GET "))
        try parent.receive(Self.ok)
        #expect(isShared)
        for answer in [Self.challenged, Self.refused] {
            _ = try second.sent()
            try second.receive(answer)
        }
        #expect(try other.sent().hasPrefix("HTTP/1.1 407 "))
        #expect(!isShared && !parent.isActive)
    }
}
