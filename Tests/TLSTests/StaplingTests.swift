// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import Testing

@testable import CountersignTLS

/// Stapled responses, which come with the certificate in TLS 1.3 and after it in TLS 1.2.
struct StaplingTests {
    private let origin: StapledServer

    init() throws { origin = try StapledServer() }

    private static let demand = ServerTrust.Reason.other(
        "certificate requires a stapled OCSP response, and none that is valid was sent")

    @Test(
        arguments: Fixture.bothVersions,
        [
            ("good", "good", .good(by: .stapledOCSP), []), ("bad", "bad", .revoked(by: .stapledOCSP), [.revoked]),
            ("good", nil, .unknown("no stapled OCSP response, no revocation list"), []),
            (
                "bad", "good",
                .unknown("stapled OCSP response not valid: about another certificate, no revocation list"), []
            ),
            ("demanding", "demanding", .good(by: .stapledOCSP), []),
            ("demanding", nil, .unknown("no stapled OCSP response, no revocation list"), [demand]),
        ] as [(String, String?, ServerTrust.Revocation, [ServerTrust.Reason])])
    func stapledResponseIsPartOfTheVerdict(
        version: Int32,
        origin wanted: (
            shown: String, staple: String?, revocation: ServerTrust.Revocation, reasons: [ServerTrust.Reason]
        )
    ) throws {
        for chunk in [Int.max, 1] {
            let staple = try wanted.staple.map { try origin.response(about: $0) }
            let pair = try origin.pair(wanted.shown, staple: staple, version: version, chunk: chunk)
            pair.run()
            let trust = try #require(pair.client.engine.summary?.serverTrust)
            #expect(trust.revocation == wanted.revocation && trust.reasons == wanted.reasons)
            #expect(pair.server.engine.isEstablished && pair.client.error == nil)
        }
    }

    @Test(arguments: Fixture.bothVersions)
    func stapledResponseOfOpenSSLIsPartOfTheVerdict(version: Int32) throws {
        let flag = version == TLS1_3_VERSION ? "-tls1_3" : "-tls1_2"
        for (name, revocation) in [
            ("good", ServerTrust.Revocation.good(by: .stapledOCSP)), ("bad", .revoked(by: .stapledOCSP)),
        ] {
            let server = try origin.openSSLServer(
                name, staple: origin.response(about: name), [flag, "-rev", "-status"])
            let client = try LoopbackClient(port: server.port, context: origin.client(version: version))
            client.write("abc\n")
            #expect(client.reads("cba"), "\(server.said)")
            #expect(client.log.withLockedValue { $0.summary?.serverTrust?.revocation } == revocation)
            #expect(Array(client.heard.prefix(2)) == [.trust(name == "good"), .completed(identity: nil)])
        }
    }

    @Test(arguments: Fixture.bothVersions)
    func revokedServerGetsNoCertificate(version: Int32) throws {
        let pair = try origin.pair(
            "bad", staple: origin.response(about: "bad"), version: version, asksForCertificate: true)
        pair.run()
        #expect(pair.client.engine.isEstablished && pair.client.engine.certificateRequest == nil)
        #expect(pair.server.engine.summary?.peerCertificate == nil)
        let good = try origin.pair(
            "good", staple: origin.response(about: "good"), version: version, asksForCertificate: true)
        good.run()
        #expect(good.client.engine.certificateRequest != nil)
        #expect(good.client.engine.serverTrust?.revocation == .good(by: .stapledOCSP))
    }

    // MARK: Sessions and renegotiation

    @Test(arguments: Fixture.bothVersions)
    func sessionKeepsTheResponseOfItsHandshake(version: Int32) throws {
        let now = StapledServer.today
        let server = try origin.server("demanding")
        let first = try EnginePair(client: origin.client(version: version, at: now), server: server)
        first.staple(try origin.response(about: "demanding"))
        first.run()
        var session = try #require(first.client.engine.session)
        for _ in 0..<2 {
            let next = try EnginePair(
                client: origin.client(version: version, at: now + 80_000), server: server, session: session)
            next.run()
            #expect(next.client.engine.summary?.resumed == true)
            #expect(next.client.engine.summary?.serverTrust?.revocation == .good(by: .stapledOCSP))
            #expect(next.client.engine.summary?.serverTrust?.isTrusted == true)
            session = try #require(next.client.engine.session)
        }
        let late = try EnginePair(
            client: origin.client(version: version, at: now + 90_000), server: server, session: session)
        late.run()
        #expect(late.client.engine.summary?.resumed == false)
        #expect(late.client.engine.summary?.serverTrust?.reasons == [Self.demand])
    }

    @Test(arguments: Fixture.bothVersions)
    func sessionOfAnUntrustedServerIsNotOffered(version: Int32) throws {
        let server = try Fixture.server("origin-expired")
        let first = try EnginePair(client: Fixture.client(version: version), server: server)
        first.run()
        let session = try #require(first.client.engine.session)
        let second = try EnginePair(
            client: Fixture.client(version: version), server: server, session: session, asksAboutTrust: true)
        second.run()
        #expect(second.client.lastStep == .suspended && second.client.engine.summary == nil)
        second.client.engine.answerTrustQuestion(with: .undecided)
        second.run()
        #expect(second.client.engine.summary?.resumed == false)
    }

    /// Makes the server renegotiate, request a certificate and send `staple`.
    private func renegotiated(_ name: String, first: [UInt8]?, then staple: [UInt8]) throws -> EnginePair {
        let pair = try origin.pair(name, staple: first, version: TLS1_2_VERSION, asksForCertificate: true)
        SSL_set_verify(pair.server.engine.ssl, SSL_VERIFY_NONE, nil)
        pair.run()
        #expect(pair.client.engine.isEstablished && pair.client.engine.serverTrust?.isTrusted == true)
        pair.staple(staple)
        pair.askForCertificate()
        pair.run()
        return pair
    }

    @Test func renegotiationHasItsOwnResponse() throws {
        let good = try renegotiated("good", first: nil, then: origin.response(about: "good"))
        #expect(good.client.error == nil && good.client.engine.certificateRequest?.isPostHandshake == true)
        let bad = try renegotiated("bad", first: nil, then: origin.response(about: "bad"))
        #expect(bad.client.error?.code == .renegotiationRefused)
        let start = "the server is no longer trusted: certificate revoked "
        #expect(bad.client.error?.detail.hasPrefix(start) == true, "\(bad.client.error?.detail ?? "")")
        #expect(bad.client.engine.certificateRequest == nil && bad.server.error != nil)
    }
}
