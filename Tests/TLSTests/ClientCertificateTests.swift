// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import Testing

@testable import CountersignTLS

struct ClientCertificateTests {
    @Test(
        arguments: Fixture.bothVersions,
        [("client-a", "client-a-root", Int.max), ("client-a", "client-a-root", 1), ("client-b", "client-b-root", .max)])
    func trustedServerGetsTheWholeClientChain(version: Int32, who: (name: String, root: String, chunk: Int)) throws {
        let server = try Fixture.server(authorities: [who.root], isRequired: true)
        let pair = try EnginePair(client: Fixture.client(version: version), server: server, chunk: who.chunk)
        pair.run()
        let request = try #require(pair.client.engine.certificateRequest)
        #expect(pair.client.lastStep == .suspended && !pair.client.engine.isEstablished)
        #expect(pair.client.engine.serverTrust?.isTrusted == true, "the verdict is there before the question")
        #expect(request.acceptableIssuers == [try Fixture.leaf(who.root).subjectDER])
        #expect(!request.isPostHandshake)
        #expect(request.signatureAlgorithms.contains(0x0403) && request.signatureAlgorithms.contains(0x0804))

        let identity = try Fixture.identity(who.name)
        pair.client.engine.answerCertificateRequest(with: identity)
        pair.run()
        #expect(pair.client.engine.summary?.clientIdentity == who.name)
        #expect(pair.client.engine.session == nil, "an authenticated session is nobody else's")
        let shown = try #require(pair.server.engine.summary)
        #expect(shown.verifiedClientChain == identity.chain + [try Fixture.leaf(who.root)])
        #expect(shown.peerCertificate == identity.leaf)
    }

    @Test(arguments: Fixture.bothVersions, [nil, "client-a"])
    func sessionIsAvailableOnlyIfNoIdentityWasSent(version: Int32, name: String?) throws {
        let server = try Fixture.server(authorities: ["client-a-root"])
        let pair = try EnginePair(client: Fixture.client(version: version), server: server)
        SSL_clear_options(pair.server.engine.ssl, csn_SSL_OP_NO_TICKET)
        SSL_set_num_tickets(pair.server.engine.ssl, 1)
        pair.run()
        pair.client.engine.answerCertificateRequest(with: try name.map { try Fixture.identity($0) })
        pair.run()
        #expect((pair.client.engine.session == nil) == (name != nil))
    }

    @Test(arguments: Fixture.bothVersions)
    func decliningSendsNoCertificate(version: Int32) throws {
        let server = try Fixture.server(authorities: ["client-a-root"])
        let pair = try EnginePair(client: Fixture.client(version: version), server: server)
        pair.run()
        #expect(pair.client.lastStep == .suspended)
        pair.client.engine.answerCertificateRequest(with: nil)
        pair.run()
        #expect(pair.client.engine.isEstablished && pair.client.engine.summary?.clientIdentity == nil)
        #expect(pair.server.engine.summary?.verifiedClientChain == [])
    }

    @Test func missingCertificateIsReportedByTheServersAlert() throws {
        let server = try Fixture.server(authorities: ["client-a-root"], isRequired: true)
        let older = try EnginePair(client: Fixture.client(version: TLS1_2_VERSION), server: server)
        older.run()
        older.client.engine.answerCertificateRequest(with: nil)
        older.run()
        #expect(older.client.error?.code == .peerAlert(40, name: "handshake_failure"))
        #expect(!older.client.engine.isEstablished)

        let newer = try EnginePair(client: Fixture.client(version: TLS1_3_VERSION), server: server)
        newer.run()
        newer.client.engine.answerCertificateRequest(with: nil)
        newer.run()
        #expect(newer.client.error?.code == .peerAlert(116, name: "certificate_required"))
        #expect(newer.client.engine.isEstablished, "a TLS 1.3 client has finished before the server refuses it")
    }

    @Test(arguments: Fixture.bothVersions)
    func serverRefusesACertificateOfAnotherAuthority(version: Int32) throws {
        let server = try Fixture.server(authorities: ["client-a-root"], isRequired: true)
        let pair = try EnginePair(client: Fixture.client(version: version), server: server)
        pair.run()
        pair.client.engine.answerCertificateRequest(with: try Fixture.identity("client-b"))
        pair.run()
        #expect(pair.client.error?.code == .peerAlert(48, name: "unknown_ca"))
        #expect(pair.server.error?.code == .handshakeFailed)
    }

    @Test(arguments: Fixture.bothVersions, ["origin-self-signed", "origin-expired", "origin-wrong-host"])
    func untrustedServerGetsNoCertificateWithoutAQuestion(version: Int32, name: String) throws {
        let server = try Fixture.server(name, authorities: ["client-a-root"])
        let pair = try EnginePair(client: Fixture.client(version: version), server: server)
        pair.run()
        #expect(pair.client.engine.certificateRequest == nil)
        #expect(pair.client.engine.isEstablished && pair.client.engine.summary?.clientIdentity == nil)
        #expect(pair.server.engine.summary?.verifiedClientChain == [])
        #expect(pair.server.engine.summary?.peerCertificate == nil)
    }

    // MARK: After the handshake

    /// A pair established without a client certificate, whose server can request one later.
    private func establishedPair(version: Int32, name: String = "origin-ec", chunk: Int = .max) throws -> EnginePair {
        let server = try Fixture.server(name, authorities: ["client-a-root"])
        let pair = try EnginePair(client: Fixture.client(version: version), server: server, chunk: chunk)
        let later = version == TLS1_3_VERSION ? SSL_VERIFY_PEER | SSL_VERIFY_POST_HANDSHAKE : SSL_VERIFY_NONE
        SSL_set_verify(pair.server.engine.ssl, later, nil)
        pair.run()
        #expect(pair.client.engine.isEstablished && pair.client.engine.certificateRequest == nil)
        return pair
    }

    @Test(arguments: Fixture.bothVersions, [Int.max, 1])
    func serverMayRequestACertificateAfterTheHandshake(version: Int32, chunk: Int) throws {
        let pair = try establishedPair(version: version, chunk: chunk)
        _ = try pair.server.write("before ")
        pair.askForCertificate()
        // In TLS 1.2 the server is in a handshake now and cannot write.
        if version == TLS1_3_VERSION { _ = try pair.server.write("behind") }
        pair.run()
        #expect(pair.client.text == "before " && pair.client.lastStep == .suspended)
        #expect(pair.client.engine.certificateRequest?.isPostHandshake == true)
        #expect(try pair.client.write("kept") == .suspended, "a write waits for the answer as a read does")

        let identity = try Fixture.identity("client-a")
        pair.client.engine.answerCertificateRequest(with: identity)
        pair.run()
        #expect(try pair.client.write("kept") == .done(4))
        pair.run()
        let chain = certificates(in: SSL_get0_verified_chain(pair.server.engine.ssl))
        #expect(chain == identity.chain + [try Fixture.leaf("client-a-root")])
        #expect(pair.client.text == (version == TLS1_3_VERSION ? "before behind" : "before "))
        #expect(pair.server.text == "kept" && pair.client.engine.summary?.clientIdentity == "client-a")
        #expect(pair.client.error == nil && pair.server.error == nil)
    }

    @Test(arguments: Fixture.bothVersions)
    func untrustedServerGetsNoCertificateAfterTheHandshake(version: Int32) throws {
        let pair = try establishedPair(version: version, name: "origin-self-signed")
        pair.askForCertificate()
        pair.run()
        #expect(pair.client.engine.certificateRequest == nil && pair.client.error == nil)
        #expect(SSL_get0_peer_certificate(pair.server.engine.ssl) == nil)
        #expect(try pair.server.write("goes on") == .done(7))
        pair.run()
        #expect(pair.client.text == "goes on")
    }

    @Test func eachPostHandshakeRequestIsAnsweredSeparately() throws {
        let pair = try establishedPair(version: TLS1_3_VERSION)
        for answer in [nil, try Fixture.identity("client-a"), nil] {
            pair.askForCertificate()
            pair.run()
            #expect(pair.client.lastStep == .suspended)
            pair.client.engine.answerCertificateRequest(with: answer)
            pair.run()
            #expect(pair.client.engine.summary?.clientIdentity == answer?.name)
            let shown = SSL_get0_peer_certificate(pair.server.engine.ssl).map { Certificate(retaining: $0) }
            #expect(shown == answer?.leaf)
        }
    }

    @Test func secondRenegotiationIsRefused() throws {
        let pair = try establishedPair(version: TLS1_2_VERSION)
        pair.askForCertificate()
        pair.run()
        pair.client.engine.answerCertificateRequest(with: nil)
        pair.run()
        #expect(pair.client.error == nil)
        pair.askForCertificate()
        pair.run()
        #expect(pair.client.error?.code == .renegotiationRefused)
    }

    @Test func renegotiationWithAnotherCertificateIsRefused() throws {
        let pair = try establishedPair(version: TLS1_2_VERSION)
        let other = try Fixture.identity("origin-sha384")
        let used = other.leaf.withX509 { leaf in
            other.key.withPKEY { SSL_use_cert_and_key(pair.server.engine.ssl, leaf, $0, nil, 1) }
        }
        #expect(used == 1)
        pair.askForCertificate()
        pair.run()
        #expect(pair.client.error?.code == .renegotiationRefused)
        #expect(pair.client.engine.certificateRequest == nil)
        #expect(pair.client.engine.summary?.serverTrust?.leaf == (try Fixture.leaf("origin-ec")))
    }

    @Test func clientMayNotRenegotiate() throws {
        let pair = try EnginePair(client: Fixture.client(version: TLS1_2_VERSION), server: Fixture.server())
        pair.run()
        SSL_renegotiate(pair.client.engine.ssl)
        SSL_do_handshake(pair.client.engine.ssl)
        pair.run()
        // The server sends no_renegotiation, and OpenSSL's client then ends the connection with an alert of its own.
        #expect(pair.client.error?.detail.contains("no renegotiation") == true)
        #expect(pair.server.error?.code == .peerAlert(40, name: "handshake_failure"))
    }
}
