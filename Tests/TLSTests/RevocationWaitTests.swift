// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import CountersignChallenges
import CountersignTestOrigin
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignChannelTLS
@testable import CountersignTLS

/// Handshakes that wait for revocation statuses.
struct RevocationWaitTests {
    private static let responder = ServerTrust.RevocationSource.responder(url: "http://ocsp.example/")
    private static let bothVersions = Fixture.bothVersions
    private let statuses = Statuses()
    private let authority: OpenSSLAuthority

    /// A source of statuses that answers when the test says so.
    private final class Statuses: Sendable {
        private struct State {
            var known: [Certificate: CertificateStatus] = [:]
            var version: UInt64 = 0
            var asked: [(questions: [RevocationQuestion], patience: Duration, done: @Sendable () -> Void)] = []
        }

        private let state = NIOLockedValueBox(State())

        var lookup: RevocationLookup {
            RevocationLookup(
                known: { [self] certificate, _ in state.withLockedValue { $0.known[certificate] } },
                version: { [self] in state.withLockedValue { $0.version } },
                learn: { [self] questions, patience, done in
                    state.withLockedValue { $0.asked.append((questions, patience, done)) }
                })
        }

        var questions: [[Bool]] { state.withLockedValue { $0.asked.map { $0.questions.map(\.isOfLeaf) } } }
        var patience: [Duration] { state.withLockedValue { $0.asked.map(\.patience) } }

        func know(_ certificate: Certificate, _ finding: CertificateStatus.Finding, until end: Int64 = .max) {
            state.withLockedValue { state in
                state.known[certificate] = CertificateStatus(
                    finding, from: RevocationWaitTests.responder, validity: 0...end)
                state.version += 1
            }
        }

        func finish() {
            for one in state.withLockedValue({ $0.asked }) { one.done() }
        }
    }

    init() throws {
        authority = try OpenSSLAuthority()
        try authority.make("root", of: "root", OpenSSLAuthority.authority)
        try authority.make(
            "middle", of: "root", OpenSSLAuthority.authority + ["crlDistributionPoints=URI:http://crl.example/"])
        for (name, issuer) in [("leaf", "root"), ("lower", "middle")] {
            try authority.make(
                name, of: issuer, OpenSSLAuthority.server + ["authorityInfoAccess=OCSP;URI:http://ocsp.example/"])
        }
    }

    private func certificate(_ name: String) throws -> Certificate {
        try #require(try Certificate.readPEM(authority.bytes("\(name).pem")).first)
    }

    private func client(version: Int32, at time: Int64 = Fixture.now) throws -> TLSClientContext {
        let anchors = try TrustAnchors(system: false, additional: [certificate("root")])
        return try TLSClientContext(
            verifier: ChainVerifier(anchors: anchors), revocation: statuses.lookup, now: { time },
            versions: version...version)
    }

    private func server(_ chain: [String]) throws -> TLSServerContext {
        let file = try IdentityFile.read(
            chain.reduce(authority.bytes("\(chain[0]).key.pem")) { $0 + authority.bytes("\($1).pem") }, password: nil)
        return try TLSServerContext(chain: chain.map(certificate), key: file.key, host: "localhost")
    }

    private func pair(
        _ chain: [String] = ["leaf"], client: TLSClientContext, _ check: RevocationCheck = .soft,
        asks: Bool = false, chunk: Int = .max
    ) throws -> EnginePair {
        let pair = try EnginePair(
            client: client, server: server(chain), asksAboutTrust: asks, revocation: check, chunk: chunk)
        pair.run()
        return pair
    }

    /// Until the statuses are learned, the client sends nothing.
    @Test(arguments: bothVersions, [1, Int.max])
    func theHandshakeWaitsForTheStatus(version: Int32, chunk: Int) throws {
        let pair = try pair(client: client(version: version), chunk: chunk)
        #expect(
            pair.client.lastStep == .suspended && pair.client.engine.awaitsStatuses && !pair.client.engine.isEstablished
        )
        #expect(!pair.server.engine.isEstablished && pair.client.engine.isSuspended)
        #expect(!pair.client.engine.serverTrustIsFinal)
        statuses.know(try certificate("leaf"), .good)
        pair.client.engine.statusesLearned()
        pair.run()
        #expect(pair.client.engine.isEstablished && pair.server.engine.isEstablished)
        let trust = try #require(pair.client.engine.summary?.serverTrust)
        #expect(trust.isTrusted && trust.revocation == .good(by: Self.responder))
    }

    @Test(arguments: bothVersions, [false, true])
    func aRevokedServerIsAReasonLikeOthers(version: Int32, asks: Bool) throws {
        let pair = try pair(client: client(version: version), asks: asks)
        statuses.know(try certificate("leaf"), .revoked(RevocationEntry(date: 0, reason: nil)))
        pair.client.engine.statusesLearned()
        pair.run()
        let text = #"certificate revoked 1970-01-01 by "CN=root""#
        guard asks else {
            let trust = try #require(pair.client.engine.summary?.serverTrust)
            return #expect(trust.reasons == [.revoked] && trust.text == text)
        }
        #expect(pair.client.engine.unansweredTrust?.text == text && !pair.server.engine.isEstablished)
        pair.client.engine.answerTrustQuestion(with: .refuse)
        pair.run()
        #expect(pair.client.error?.code == .serverNotTrusted && pair.server.error != nil)
        #expect(!pair.server.engine.isEstablished)
    }

    @Test(arguments: bothVersions)
    func anUnknownStatusIsAReasonOnlyIfRequired(version: Int32) throws {
        for (check, reasons) in [(RevocationCheck.soft, []), (.require, [ServerTrust.Reason.revocationUnknown])] {
            let pair = try pair(client: client(version: version), check)
            #expect(pair.client.engine.awaitsStatuses)
            pair.client.engine.statusesLearned()
            pair.run()
            #expect(pair.client.engine.summary?.serverTrust?.reasons == reasons)
        }
    }

    @Test(arguments: bothVersions)
    func offAsksNothing(version: Int32) throws {
        statuses.know(try certificate("leaf"), .revoked(RevocationEntry(date: 0, reason: nil)))
        let pair = try pair(client: client(version: version), .off)
        #expect(pair.client.engine.summary?.serverTrust?.isTrusted == true && statuses.questions.isEmpty)
    }

    @Test(arguments: bothVersions)
    func aStapledResponseMakesAskingUnnecessary(version: Int32) throws {
        try authority.make("responder", of: "root", OpenSSLAuthority.responder)
        let response = try authority.makeResponse("leaf.der", about: "leaf", of: "root", signedBy: "responder")
        let pair = try EnginePair(
            client: client(version: version, at: StapledServer.today), server: server(["leaf"]), revocation: .require)
        pair.staple(response)
        pair.run()
        #expect(pair.client.engine.summary?.serverTrust?.revocation == .good(by: .stapledOCSP))
        #expect(statuses.questions.isEmpty)
    }

    /// The known status of the leaf is enough; its issuer's status is learned meanwhile, unless it is required.
    @Test(arguments: bothVersions)
    func anIssuersStatusIsWaitedForOnlyIfRequired(version: Int32) throws {
        statuses.know(try certificate("lower"), .good)
        let soft = try pair(["lower", "middle"], client: client(version: version))
        #expect(soft.client.engine.summary?.serverTrust?.revocation == .good(by: Self.responder))
        #expect(statuses.questions == [[false]] && statuses.patience == [.zero])
        let strict = try pair(["lower", "middle"], client: client(version: version), .require)
        #expect(strict.client.engine.awaitsStatuses)
        statuses.know(try certificate("middle"), .good)
        strict.client.engine.statusesLearned()
        strict.run()
        #expect(strict.client.engine.summary?.serverTrust?.isTrusted == true)
    }

    @Test(arguments: bothVersions)
    func theNextConnectionUsesTheResult(version: Int32) throws {
        let client = try client(version: version)
        let first = try pair(client: client)
        first.client.engine.statusesLearned()
        first.run()
        guard case .unknown? = first.client.engine.summary?.serverTrust?.revocation else {
            return #expect(Bool(false), "\(first)")
        }
        statuses.know(try certificate("leaf"), .revoked(RevocationEntry(date: 0, reason: nil)))
        let second = try pair(client: client)
        #expect(second.client.engine.summary?.serverTrust?.reasons == [.revoked])
    }

    @Test func aCachedVerdictDoesNotOutliveTheStatus() throws {
        let time = NIOLockedValueBox(Int64(Fixture.now))
        let anchors = try TrustAnchors(system: false, additional: [certificate("root")])
        let context = try TLSClientContext(verifier: ChainVerifier(anchors: anchors), revocation: statuses.lookup) {
            time.withLockedValue { $0 }
        }
        let chain = try [certificate("leaf")]
        func revocation(_ check: RevocationCheck = .soft) -> ServerTrust {
            context.verdict(on: chain, host: "localhost", staple: .absent, check: check).trust
        }
        statuses.know(chain[0], .good, until: Fixture.now + 10)
        #expect(revocation().revocation == .good(by: Self.responder))
        time.withLockedValue { $0 += 10 }
        #expect(revocation().revocation == .good(by: Self.responder))
        time.withLockedValue { $0 += 1 }
        guard case .unknown = revocation().revocation else { return #expect(Bool(false), "\(revocation())") }
        #expect(revocation(.require).reasons == [.revocationUnknown], "another option takes effect at once")
        #expect(revocation(.soft).isTrusted && revocation(.off).isTrusted)
    }

    // MARK: In a pipeline

    @Test func theHandlerWaitsWithoutBlockingItsLoop() throws {
        let handler = try TLSHandler(
            client: client(version: TLS1_3_VERSION), host: "localhost", alpn: [], session: nil, revocation: .soft)
        let pair = try HandlerPair(client: handler, server: server(["leaf"]))
        try pair.run()
        #expect(pair.client.summary == nil && pair.client.heard.isEmpty)
        #expect(statuses.questions == [[true]] && statuses.patience == [.milliseconds(1_500)])
        statuses.know(try certificate("leaf"), .good)
        statuses.finish()
        pair.client.channel.embeddedEventLoop.run()
        try pair.run()
        #expect(pair.client.summary?.serverTrust?.revocation == .good(by: Self.responder))
        #expect(pair.client.heard == [.trust(true), .completed(identity: nil)])
    }

    @Test func anAnswerAfterTheConnectionIsIgnored() throws {
        let handler = try TLSHandler(
            client: client(version: TLS1_3_VERSION), host: "localhost", alpn: [], session: nil, revocation: .require)
        let pair = try HandlerPair(client: handler, server: server(["leaf"]))
        try pair.run()
        pair.client.tls.abort()
        statuses.finish()
        pair.client.channel.embeddedEventLoop.run()
        #expect(pair.client.summary == nil && !pair.client.isOpen)
    }
}
