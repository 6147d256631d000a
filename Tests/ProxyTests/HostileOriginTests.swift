// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy
@testable import CountersignUpstream

/// Origins that respond at random, also while a decision about their challenge is being waited for.
@Suite struct HostileOriginTests {
    private static let credential = CredentialReference(name: "enrollment", source: .vault(generation: 1))
    private static let keys = [
        AuthenticationSpace(origin: Bench.origin, realm: "p", scheme: .basic),
        AuthenticationSpace(origin: Bench.origin, realm: nil, scheme: .ntlm),
        AuthenticationSpace(origin: Bench.origin, realm: "p", scheme: .digest),
    ].map { Breaker.Key(space: $0, credential: credential) }

    private static let requests = [
        "GET http://a.example/x HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD http://a.example/x HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST http://a.example/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "POST http://a.example/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na",
        "PUT http://a.example/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "POST http://a.example/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
        "GET http://a.example/x HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        "GET http://a.example/x HTTP/1.1\r\nHost: a\r\nAuthorization: NTLM AAAA\r\n\r\n",
    ]

    @Test func noResponseEndsTheProcess() throws {
        let lists = [
            "http://a.example answer=basic plaintext=yes",
            "http://a.example answer=ntlm,digest,basic plaintext=yes", "",
        ]
        let policies = try lists.map { try Bench.policy(sites: $0, password: "pw") }
        for seed in 0..<Hostility.cases(60_000) {
            var random = Hostility(seed: seed)
            let bench = try Bench(random.pick(policies))
            let fault = try Self.run(bench, &random)
            try #require(fault == nil, "seed \(seed)")
        }
    }

    /// A client's connection with some requests, and the origins' side of it. Returns the fault.
    private static func run(_ bench: Bench, _ random: inout Hostility) throws -> String? {
        let breaker = bench.services.shared.breaker
        let other = Breaker.RequestTag(method: "GET", target: "/other")
        var attempts = keys.filter { key in random.once(in: 3) && breaker.request(key, for: other) {} == .go }
            .map { BreakerAttempt($0, for: other, permittedBy: breaker) }
        var origins: [EmbeddedChannel] = []
        func addOrigins() throws {
            origins += [try bench.idleOrigin(withCredential: true), try bench.idleOrigin()]
        }
        try addOrigins()
        if bench.client.isActive { try? bench.send(random.pick(requests)) }
        for _ in 0..<random.number(1..<14) {
            switch random.number(0..<14) {
            case 0...7:
                // The connection on which a request has gone out.
                let busy = origins.last { $0.isActive && (try? $0.sent())?.isEmpty == false }
                let origin = busy ?? random.pick(origins)
                let response = random.response(challengesIn: "WWW-Authenticate", status: 401)
                for piece in random.pieces(response) where origin.isActive {
                    _ = try? origin.writeInbound(ByteBuffer(bytes: piece))
                }
            case 8: if let attempt = attempts.popLast() { attempt.end(random.pick([.accepted, .rejected])) }
            case 9:
                let origin = random.pick(origins)
                switch random.number(0..<3) {
                case 0: origin.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
                case 1: origin.close(promise: nil)
                default: origin.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "reset"))
                }
            case 10: if bench.client.isActive { try? bench.send(random.pick(requests)) }
            case 11: try addOrigins()
            case 12:
                let now = bench.services.now + UInt64(random.number(0..<400))
                bench.connection.secondPassed(now: now)
            default: if random.once(in: 8) { bench.client.close(promise: nil) }
            }
            bench.loop.run()
        }
        attempts = []
        bench.loop.run()
        if bench.client.isActive { bench.client.close(promise: nil) }
        // The origins' verdicts on the sent answers are still awaited.
        bench.loop.advanceTime(by: .seconds(31))
        return keys.first(where: breaker.isTried).map { "\($0.space.scheme) is still being tried" }
    }
}
