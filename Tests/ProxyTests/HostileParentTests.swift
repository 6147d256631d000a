// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignChannelTLS
import CountersignHTTP1
import CountersignParents
import CountersignTLS
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy
@testable import CountersignUpstream

/// Parents that reply at random, also while the breaker, a ticket or a verification is being waited for.
@Suite struct HostileParentTests {
    private static let site = Origin(scheme: .proxy, host: "p.example", port: 3128)
    private static let credential = CredentialReference(name: "enrollment", source: .vault(generation: 1))

    private static let connectKeys = [
        AuthenticationSpace(origin: site, realm: "p", scheme: .basic),
        AuthenticationSpace(origin: site, realm: nil, scheme: .ntlm),
        AuthenticationSpace(origin: site, realm: "p", scheme: .digest),
    ].map { Breaker.Key(space: $0, credential: credential) }
    private static let socksKeys = [
        Breaker.Key(space: AuthenticationSpace(origin: site, realm: "SOCKS", scheme: .basic), credential: credential)
    ]

    /// One connection, or several. Returns the fault.
    private static func run(
        _ stage: ParentStage, keys: [Breaker.Key], _ random: inout Hostility, reply: (inout Hostility) -> [UInt8]
    ) throws -> String? {
        let other = Breaker.RequestTag(method: "GET", target: "/other")
        var attempts = keys.filter { key in random.once(in: 2) && stage.breaker.request(key, for: other) {} == .go }
            .map { BreakerAttempt($0, for: other, permittedBy: stage.breaker) }
        stage.open()
        for _ in 0..<random.number(1..<12) {
            switch random.number(0..<12) {
            case 0...6:
                for piece in random.pieces(reply(&random)) { try? stage.receive(piece, on: stage.channel) }
            case 7: try? stage.receive([UInt8](repeating: 0x78, count: 1000), on: random.pick(stage.channels))
            case 8:
                if let attempt = attempts.popLast() { attempt.end(random.pick([.accepted, .rejected, .inconclusive])) }
            case 9: stage.loop.advanceTime(by: .seconds(Int64(random.number(0..<12))))
            case 10:
                switch random.number(0..<4) {
                case 0: stage.inputEnds()
                case 1: stage.channel.pipeline.fireErrorCaught(Broken())
                case 2: stage.channel.close(promise: nil)
                default: stage.channel.pipeline.fireErrorCaught(IOError(errnoCode: 104, reason: "reset"))
                }
            default: if random.once(in: 8) { stage.cancel() }
            }
            stage.loop.run()
        }
        attempts = []
        stage.loop.run()
        stage.cancel()
        stage.loop.run()
        if stage.channels.count > 6 { return "\(stage.channels.count) connections" }
        if let key = keys.first(where: stage.breaker.isTried) { return "\(key.space.scheme) is still being tried" }
        return nil
    }

    @Test func noReplyToAConnectEndsTheProcess() throws {
        let policies = ["answer=basic plaintext=yes", "answer=ntlm,digest,basic plaintext=yes", "answer=none"]
            .map { try? ParentStage.policy($0) }.compactMap { $0 }
        for seed in 0..<Hostility.cases(60_000) {
            var random = Hostility(seed: seed)
            let stage = try ParentStage(.http, random.pick(policies))
            let fault = try Self.run(stage, keys: Self.connectKeys, &random) {
                $0.response(challengesIn: "Proxy-Authenticate", status: 407)
            }
            try #require(fault == nil, "seed \(seed)")
        }
    }

    @Test func noReplyOfASOCKSParentEndsTheProcess() throws {
        let policy = try ParentStage.policy("answer=basic")
        for seed in 0..<Hostility.cases(40_000) {
            var random = Hostility(seed: seed)
            let stage = try ParentStage(.socks5h, policy)
            let fault = try Self.run(stage, keys: Self.socksKeys, &random) { $0.socksReply() }
            try #require(fault == nil, "seed \(seed)")
        }
    }

    // MARK: Decisions that take time

    /// Decides at random, at once or when the test says so, as a broker of tickets does. Checks the order of the
    /// questions.
    private final class Deciding: ParentAnswering {
        var random: Hostility
        private(set) var isOutOfTurn = false
        private var answer: ((ParentAnswer) -> Void)?
        private var verdict: ((String?) -> Void)?
        private var hasEnded = false

        init(_ random: Hostility) { self.random = random }

        private func ask(_ completion: @escaping (ParentAnswer) -> Void) {
            if answer != nil || verdict != nil || hasEnded { isOutOfTurn = true }
            answer = completion
            if random.once(in: 3) { decide() }
        }

        func decide() {
            if let verdict {
                self.verdict = nil
                return verdict(random.once(in: 3) ? "it is wrong" : nil)
            }
            guard let answer else { return }
            self.answer = nil
            switch random.number(0..<8) {
            case 0: answer(.giveUp(reason: nil))
            case 1: answer(.openDialogue)
            default:
                let field = random.once(in: 2) ? ClientField("Basic eA==") : nil
                answer(.send(field, onSameConnection: random.once(in: 4)))
            }
        }

        func secured(by tls: TLSSummary) {}
        func begin(completion: @escaping (ParentAnswer) -> Void) { ask(completion) }
        func openDialogue(completion: @escaping (ParentAnswer) -> Void) { ask(completion) }
        func received(_ response: ConnectResponse, completion: @escaping (ParentAnswer) -> Void) { ask(completion) }

        func opened(_ head: FieldLines, completion: @escaping (String?) -> Void) {
            if answer != nil || verdict != nil || hasEnded { isOutOfTurn = true }
            verdict = completion
            if random.once(in: 3) { decide() }
        }

        func connectionLost() -> Bool { random.once(in: 2) }
        func ended() { hasEnded = true }
    }

    @Test func aDecisionThatTakesTimeIsNotOvertaken() throws {
        let host = try HostName(canonicalizing: "p.example", for: .forwarded)
        for seed in 0..<Hostility.cases(40_000) {
            var random = Hostility(seed: seed)
            let loop = EmbeddedEventLoop()
            let answerer = Deciding(Hostility(seed: seed &+ 1_000_000))
            let tunnel = ConnectTunnel(
                parent: ParentProxy(.http, host, 3128), to: host, port: 443, via: "1.1 csn-test", limit: .seconds(30),
                spare: SpareBuffer(), answerer: answerer)
            var connections = 0
            var result: Result<any Channel, UpstreamError>?
            func connect() -> (EmbeddedChannel, ConnectionChain) {
                connections += 1
                result = nil
                let channel = EmbeddedChannel(handler: Wire(isNarrow: false), loop: loop)
                channel.connect(to: .unix, promise: nil)
                let chain = ConnectionChain(loop: loop, steps: [tunnel.makeStep()]) { result = $0 }
                chain.runNextStep(on: channel)
                return (channel, chain)
            }
            var (channel, chain) = connect()
            for _ in 0..<random.number(2..<14) {
                if case .failure(let error) = result, error.code == .tunnelInterrupted, connections < 6 {
                    (channel, chain) = connect()
                }
                switch random.number(0..<10) {
                case 0...4:
                    let reply = random.response(challengesIn: "Proxy-Authenticate", status: 407)
                    for piece in random.pieces(reply) where channel.isActive {
                        _ = try? channel.writeInbound(ByteBuffer(bytes: piece))
                    }
                case 5...7: answerer.decide()
                case 8: loop.advanceTime(by: .seconds(Int64(random.number(0..<12))))
                default:
                    if random.once(in: 2) {
                        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
                    } else {
                        channel.pipeline.fireErrorCaught(Broken())
                    }
                }
                loop.run()
            }
            chain.cancel()
            tunnel.ended()
            answerer.decide()
            loop.run()
            try #require(!answerer.isOutOfTurn, "seed \(seed)")
        }
    }
}

extension SocketAddress {
    fileprivate static var unix: SocketAddress {
        do {
            return try SocketAddress(unixDomainSocketPath: "/x")
        } catch {
            fatalError("/x is a path")
        }
    }
}
