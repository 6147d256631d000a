// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignTLS

/// The question about a server that is not trusted, and the effect of each answer.
struct TrustQuestionTests {
    /// Answers after which the handshake completes without a client certificate.
    private static let withholding: [TrustAnswer] = [.undecided, .proceed(answering: false)]

    private func pair(
        version: Int32, name: String = "origin-expired", asks: Bool = true, chunk: Int = .max
    ) throws -> EnginePair {
        let server = try Fixture.server(name, authorities: asks ? ["client-a-root"] : [])
        return try EnginePair(
            client: Fixture.client(version: version), server: server, asksAboutTrust: true, chunk: chunk)
    }

    // MARK: Engine

    @Test(arguments: Fixture.bothVersions, [Int.max, 1])
    func handshakeWaitsForTheAnswer(version: Int32, chunk: Int) throws {
        let pair = try pair(version: version, asks: false, chunk: chunk)
        pair.run()
        let asked = try #require(pair.client.engine.unansweredTrust)
        #expect(asked.reasons == [.expired(notAfter: 1_609_459_200)] && asked == pair.client.engine.serverTrust)
        #expect(pair.client.lastStep == .suspended && pair.client.engine.isSuspended)
        #expect(!pair.client.engine.isEstablished && !pair.server.engine.isEstablished)
        #expect(try pair.client.engine.handshake() == .suspended, "asking again is no answer")
        pair.client.engine.answerTrustQuestion(with: .undecided)
        pair.run()
        #expect(pair.client.engine.isEstablished && pair.server.engine.isEstablished)
        #expect(try pair.client.write("goes on") == .done(7))
        pair.run()
        #expect(pair.server.text == "goes on" && pair.client.error == nil)
    }

    @Test(arguments: Fixture.bothVersions, withholding)
    func untrustedServerThatIsAcceptedGetsNoCertificate(version: Int32, answer: TrustAnswer) throws {
        let pair = try pair(version: version)
        pair.run()
        pair.client.engine.answerTrustQuestion(with: answer)
        pair.run()
        #expect(pair.client.engine.certificateRequest == nil)
        #expect(pair.client.engine.summary?.trustAnswer == answer)
        #expect(pair.client.engine.summary?.serverTrust?.isTrusted == false)
        #expect(pair.server.engine.isEstablished && pair.server.engine.summary?.peerCertificate == nil)
    }

    @Test(arguments: Fixture.bothVersions, [Int.max, 1])
    func answeringPermitsTheClientCertificate(version: Int32, chunk: Int) throws {
        let pair = try pair(version: version, chunk: chunk)
        pair.run()
        #expect(pair.client.engine.certificateRequest == nil, "one question at a time")
        pair.client.engine.answerTrustQuestion(with: .proceed(answering: true))
        pair.run()
        #expect(pair.client.lastStep == .suspended && pair.client.engine.certificateRequest != nil)
        let identity = try Fixture.identity("client-a")
        pair.client.engine.answerCertificateRequest(with: identity)
        pair.run()
        #expect(pair.client.engine.summary?.trustAnswer == .proceed(answering: true))
        #expect(pair.server.engine.summary?.peerCertificate == identity.leaf)
    }

    @Test(arguments: Fixture.bothVersions, [Int.max, 1])
    func refusalSendsAnAlertAndFails(version: Int32, chunk: Int) throws {
        let pair = try pair(version: version, chunk: chunk)
        pair.run()
        pair.client.engine.answerTrustQuestion(with: .refuse)
        pair.run()
        #expect(pair.client.error?.code == .serverNotTrusted)
        #expect(pair.client.error?.detail == "the server is not trusted: certificate expired 2021-01-01")
        #expect(pair.server.error?.code == .peerAlert(42, name: "bad_certificate"))
        #expect(!pair.client.engine.isEstablished && !pair.server.engine.isEstablished)
        #expect(throws: TLSError(.serverNotTrusted, "")) { try pair.client.engine.handshake() }
    }

    @Test(arguments: Fixture.bothVersions)
    func trustedServerCausesNoQuestion(version: Int32) throws {
        let pair = try pair(version: version, name: "origin-ec", asks: false)
        pair.run()
        #expect(pair.client.engine.isEstablished && pair.client.engine.summary?.trustAnswer == nil)
    }

    @Test(arguments: Fixture.bothVersions)
    func onlyTheFirstAnswerCounts(version: Int32) throws {
        let pair = try pair(version: version)
        pair.client.engine.answerTrustQuestion(with: .proceed(answering: true))
        pair.run()
        #expect(pair.client.engine.unansweredTrust != nil, "an answer before the question is ignored")
        pair.client.engine.answerTrustQuestion(with: .undecided)
        pair.client.engine.answerTrustQuestion(with: .proceed(answering: true))
        pair.run()
        #expect(pair.client.engine.summary?.trustAnswer == .undecided)
        pair.client.engine.answerTrustQuestion(with: .proceed(answering: true))
        pair.askForCertificate()
        pair.run()
        #expect(pair.client.engine.certificateRequest == nil)
        #expect(pair.client.engine.summary?.clientIdentity == nil)
    }

    @Test(arguments: Fixture.bothVersions, [true, false])
    func answerAppliesToLaterRequests(version: Int32, answering: Bool) throws {
        let server = try Fixture.server("origin-expired", authorities: ["client-a-root"])
        let pair = try EnginePair(client: Fixture.client(version: version), server: server, asksAboutTrust: true)
        let later = version == TLS1_3_VERSION ? SSL_VERIFY_PEER | SSL_VERIFY_POST_HANDSHAKE : SSL_VERIFY_NONE
        SSL_set_verify(pair.server.engine.ssl, later, nil)
        pair.run()
        pair.client.engine.answerTrustQuestion(with: .proceed(answering: answering))
        pair.run()
        #expect(pair.client.engine.isEstablished)
        pair.askForCertificate()
        pair.run()
        #expect(pair.client.error == nil)
        #expect((pair.client.engine.certificateRequest != nil) == answering)
        #expect(pair.client.engine.unansweredTrust == nil)
    }

    // MARK: Late staples

    /// A pair with the revoked server, whose stapled response comes after the chain in TLS 1.2.
    private func revoked(version: Int32, asks: Bool, at time: Int64? = nil, chunk: Int = .max) throws -> EnginePair {
        let origin = try StapledServer()
        return try origin.pair(
            "bad", staple: origin.response(about: "bad"), version: version, at: time ?? StapledServer.today,
            asksForCertificate: asks, asksAboutTrust: true, chunk: chunk)
    }

    @Test(arguments: Fixture.bothVersions, [true, false])
    func revocationCausesAQuestionBeforeAnythingElse(version: Int32, asks: Bool) throws {
        for chunk in [Int.max, 1] {
            let pair = try revoked(version: version, asks: asks, chunk: chunk)
            pair.run()
            #expect(pair.client.engine.unansweredTrust?.reasons == [.revoked])
            #expect(pair.client.lastStep == .suspended && pair.client.engine.certificateRequest == nil)
            #expect(!pair.client.engine.isEstablished && pair.client.outgoing.isEmpty)
            pair.client.engine.answerTrustQuestion(with: .undecided)
            pair.run()
            #expect(pair.client.engine.isEstablished && pair.client.engine.summary?.trustAnswer == .undecided)
            #expect(pair.server.engine.isEstablished && pair.server.engine.summary?.peerCertificate == nil)
        }
    }

    @Test(arguments: Fixture.bothVersions, [true, false])
    func lateRefusalSendsAnAlert(version: Int32, asks: Bool) throws {
        let pair = try revoked(version: version, asks: asks)
        pair.run()
        pair.client.engine.answerTrustQuestion(with: .refuse)
        pair.run()
        #expect(pair.client.error?.code == .serverNotTrusted)
        let start = "the server is not trusted: certificate revoked "
        #expect(pair.client.error?.detail.hasPrefix(start) == true, "\(pair.client.error?.detail ?? "")")
        #expect(pair.server.error?.code == .peerAlert(42, name: "bad_certificate"))
        #expect(!pair.server.engine.isEstablished)
    }

    @Test(arguments: Fixture.bothVersions)
    func lateAnswerMayPermitTheClientCertificate(version: Int32) throws {
        let pair = try revoked(version: version, asks: true)
        pair.run()
        pair.client.engine.answerTrustQuestion(with: .proceed(answering: true))
        pair.run()
        #expect(pair.client.engine.certificateRequest != nil)
        pair.client.engine.answerCertificateRequest(with: try Fixture.identity("client-a"))
        pair.run()
        #expect(pair.server.engine.summary?.peerCertificate == (try Fixture.leaf("client-a")))
    }

    /// The wrong host is found with the chain, the revocation later.
    @Test(arguments: [(TLS1_2_VERSION, 2), (TLS1_3_VERSION, 1)] as [(Int32, Int)])
    func answerCoversOnlyItsReasons(version: Int32, questions: Int) throws {
        let origin = try StapledServer()
        let server = try origin.server("bad", asksForCertificate: true)
        let pair = try EnginePair(
            client: origin.client(version: version), server: server, host: "LOCALHOST.", asksAboutTrust: true)
        SSL_CTX_set_client_hello_cb(SSL_get_SSL_CTX(pair.server.engine.ssl), nil, nil)
        pair.staple(try origin.response(about: "bad"))
        var asked: [[ServerTrust.Reason]] = []
        pair.run()
        while let trust = pair.client.engine.unansweredTrust, asked.count < 3 {
            asked.append(trust.reasons)
            pair.client.engine.answerTrustQuestion(
                with: asked.count == questions ? .undecided : .proceed(answering: true))
            pair.run()
        }
        #expect(asked.count == questions)
        #expect(asked.last == [.hostMismatch, .revoked])
        #expect(pair.client.engine.isEstablished && pair.client.engine.certificateRequest == nil)
        #expect(pair.client.engine.summary?.trustAnswer == .undecided)
    }

    // MARK: Handler

    @Test(arguments: Fixture.bothVersions)
    func questionFiresAnEventAndStopsReading(version: Int32) throws {
        let server = try Fixture.server("origin-self-signed")
        let pair = try HandlerPair(client: Fixture.client(version: version), server: server, trustReply: .never)
        try pair.run()
        #expect(pair.client.heard == [.trust(false), .trustAsked([.selfSigned])])
        let reads = pair.client.counter.reads
        pair.client.channel.read()
        #expect(pair.client.counter.reads == reads)
        pair.client.tls.answerTrustQuestion(with: .proceed(answering: false))
        #expect(pair.client.counter.reads > reads)
        try pair.run()
        #expect(pair.client.heard.suffix(1) == [.completed(identity: nil)])
        #expect(pair.client.summary?.trustAnswer == .proceed(answering: false))
    }

    @Test(arguments: Fixture.bothVersions)
    func questionMayBeAnsweredInsideItsEvent(version: Int32) throws {
        let server = try Fixture.server("origin-self-signed", authorities: ["client-a-root"])
        let pair = try HandlerPair(
            client: Fixture.client(version: version), server: server,
            answer: .now(try Fixture.identity("client-a")), trustReply: .now([.proceed(answering: true)]))
        try pair.run()
        #expect(
            pair.client.heard == [
                .trust(false), .trustAsked([.selfSigned]), .asked(isPostHandshake: false),
                .completed(identity: "client-a"),
            ])
    }

    @Test(arguments: Fixture.bothVersions)
    func refusedServerGetsAnAlertAndTheChannelCloses(version: Int32) throws {
        let pair = try HandlerPair(
            client: Fixture.client(version: version), server: Fixture.server("origin-self-signed"),
            trustReply: .now([.refuse]))
        try pair.run()
        #expect(
            pair.client.heard == [.trust(false), .trustAsked([.selfSigned]), .error(.serverNotTrusted), .inactive])
        #expect(pair.server.heard.contains(.error(.peerAlert(42, name: "bad_certificate"))))
        #expect(!pair.client.isOpen)
    }

    @Test(arguments: Fixture.bothVersions)
    func closingDuringAQuestionReportsNothing(version: Int32) throws {
        let pair = try HandlerPair(
            client: Fixture.client(version: version), server: Fixture.server("origin-self-signed"),
            trustReply: .never)
        try pair.run()
        let written = pair.client.write("kept")
        try pair.client.channel.close().wait()
        #expect(throws: ChannelError.ioOnClosedChannel) { try written.wait() }
        #expect(pair.client.heard == [.trust(false), .trustAsked([.selfSigned]), .inactive])
        pair.client.tls.answerTrustQuestion(with: .proceed(answering: true))
        #expect(try pair.client.takeOutbound().readableBytes == 0)
        #expect(pair.client.summary == nil)
    }

    @Test(arguments: Fixture.bothVersions)
    func endOfTheStreamDuringAQuestionIsATruncation(version: Int32) throws {
        let pair = try HandlerPair(
            client: Fixture.client(version: version), server: Fixture.server("origin-self-signed"),
            trustReply: .never)
        try pair.run()
        pair.endInput(of: pair.client)
        #expect(pair.client.heard.suffix(2) == [.error(.truncated), .inactive])
        pair.client.tls.answerTrustQuestion(with: .undecided)
        #expect(pair.client.heard.last == .inactive)
    }

    @Test(arguments: Fixture.bothVersions)
    func openSSLWaitsWithoutBlockingTheLoop(version: Int32) throws {
        let origin = try StapledServer()
        let flags = [
            version == TLS1_3_VERSION ? "-tls1_3" : "-tls1_2", "-rev", "-Verify", "3", "-verify_return_error",
            "-CAfile", Fixture.path("client-a-root"),
        ]
        let server = try origin.openSSLServer("bad", staple: origin.response(about: "bad"), flags)
        let client = try LoopbackClient(
            port: server.port, context: origin.client(version: version), answer: .now(try Fixture.identity("client-a")),
            trustReply: .later(.proceed(answering: true), turns: 20))
        client.write("abc\n")
        #expect(client.reads("cba"), "\(client.heard) \(server.said)")
        #expect(
            Array(client.heard.prefix(4)) == [
                .trust(false), .trustAsked([.revoked]), .asked(isPostHandshake: false),
                .completed(identity: "client-a"),
            ])
        #expect(client.log.withLockedValue { $0.turnsWhileAsked } == 20)
    }

    @Test(arguments: Fixture.bothVersions)
    func openSSLGetsTheAlert(version: Int32) throws {
        let origin = try StapledServer()
        let flag = version == TLS1_3_VERSION ? "-tls1_3" : "-tls1_2"
        let server = try origin.openSSLServer("bad", staple: origin.response(about: "bad"), [flag])
        let client = try LoopbackClient(
            port: server.port, context: origin.client(version: version), trustReply: .now([.refuse]))
        #expect(client.hears(.error(.serverNotTrusted)) && client.hears(.inactive), "\(client.heard)")
        #expect(server.says("alert bad certificate"), "\(server.said)")
        #expect(!server.said.contains("CIPHER is"))
    }
}
