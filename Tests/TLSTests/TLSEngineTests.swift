// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import Testing

@testable import CountersignTLS

struct TLSEngineTests {
    @Test(
        arguments: Fixture.bothVersions,
        [("origin-ec", Int.max), ("origin-rsa", .max), ("origin-ec", 1), ("origin-rsa", 1)])
    func handshakeCompletesAndBytesAreTransferred(version: Int32, server: (name: String, chunk: Int)) throws {
        let pair = try EnginePair(
            client: Fixture.client(version: version), server: Fixture.server(server.name), chunk: server.chunk)
        pair.run()
        let leaf = try Fixture.leaf(server.name)
        let summary = try #require(pair.client.engine.summary)
        #expect(summary.version == (version == TLS1_3_VERSION ? "TLSv1.3" : "TLSv1.2"))
        #expect(summary.cipher.contains("AES_128_GCM") || summary.cipher.contains("AES128-GCM"))
        #expect(summary.alpn == "http/1.1" && !summary.resumed && summary.clientIdentity == nil)
        let revocation = ServerTrust.Revocation.unknown("no stapled OCSP response, no revocation list")
        #expect(summary.serverTrust == ServerTrust(chain: [leaf], reasons: [], revocation: revocation))
        #expect(summary.trustAnswer == nil)
        #expect(summary.peerCertificate == leaf)
        let served = try #require(pair.server.engine.summary)
        #expect(served.version == summary.version && served.cipher == summary.cipher && served.alpn == "http/1.1")
        #expect(served.serverTrust == nil && served.peerCertificate == nil && served.verifiedClientChain.isEmpty)

        let request = String(repeating: "question ", count: 5000)
        #expect(try pair.client.write(request) == .done(45_000))
        pair.run()
        #expect(pair.server.text == request)
        #expect(try pair.server.write("answer") == .done(6))
        pair.run()
        #expect(pair.client.text == "answer")
        #expect(pair.client.error == nil && pair.server.error == nil)
    }

    @Test(
        arguments: [
            ([], nil), (["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "http/1.1"), (["http/1.0"], nil),
            (["h2", "http/1.0"], nil),
        ] as [([String], String?)])
    func serverSelectsHTTP11OrNoProtocol(offered: [String], chosen: String?) throws {
        let pair = try EnginePair(client: Fixture.client(), server: Fixture.server(), alpn: offered)
        pair.run()
        let summary = try #require(pair.client.engine.summary)
        #expect(summary.alpn == chosen)
        #expect(pair.server.engine.summary?.alpn == chosen)
    }

    @Test(
        arguments: [
            (["h2"], "h2"), (["http/1.1", "h2"], "h2"), (["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"),
            (["h2c", "http/1.1"], "http/1.1"), (["h2c"], nil), ([], nil),
        ] as [([String], String?)])
    func serverThatSpeaksHTTP2PrefersIt(offered: [String], chosen: String?) throws {
        let pair = try EnginePair(
            client: Fixture.client(), server: Fixture.server(), alpn: offered, speaksHTTP2: true)
        pair.run()
        let summary = try #require(pair.client.engine.summary)
        #expect(summary.alpn == chosen)
        #expect(pair.server.engine.summary?.alpn == chosen)
    }

    @Test(arguments: Fixture.bothVersions)
    func clientThatOffersOnlyH2IsRefused(version: Int32) throws {
        let pair = try EnginePair(client: Fixture.client(version: version), server: Fixture.server(), alpn: ["h2"])
        pair.run()
        #expect(pair.client.error?.code == .peerAlert(120, name: "no_application_protocol"))
        #expect(pair.server.error?.code == .handshakeFailed)
    }

    @Test func protocolNamesHaveOneTo255Bytes() throws {
        let long = String(repeating: "p", count: 255)
        #expect(try ApplicationProtocols.encode([long, "h2"]) == [255] + Array(long.utf8) + [2, 0x68, 0x32])
        for refused in ["", long + "p"] {
            #expect(throws: TLSError(.configuration, "")) { try ApplicationProtocols.encode([refused]) }
        }
    }

    @Test(arguments: Fixture.bothVersions, ["elsewhere.example", "localhost.", "127.0.0.1"])
    func clientWithAnotherServerNameIsRefused(version: Int32, host: String) throws {
        let pair = try EnginePair(client: Fixture.client(version: version), server: Fixture.server(), host: host)
        pair.run()
        #expect(pair.client.error?.code == .peerAlert(112, name: "unrecognized_name"))
        #expect(pair.server.error?.code == .serverNameMismatch(host == "127.0.0.1" ? "" : host))
        #expect(pair.server.engine.summary == nil)
    }

    @Test(
        arguments: [
            ("LocalHost", "localhost"), ("localhost", "LOCALHOST"), ("127.0.0.1", "127.0.0.1"),
            ("localhost", "127.0.0.1"),
            ("::1", "::1"), ("a.test.localhost", nil), ("::1", nil),
        ] as [(String, String?)])
    func clientWithTheConfiguredServerNameIsAccepted(host: String, served: String?) throws {
        let pair = try EnginePair(client: Fixture.client(), server: Fixture.server(host: served), host: host)
        pair.run()
        #expect(pair.client.engine.isEstablished && pair.server.engine.isEstablished)
        #expect(pair.server.error == nil)
    }

    @Test(
        arguments: [
            ("origin-expired", .expired(notAfter: 1_609_459_200)), ("origin-wrong-host", .hostMismatch),
            ("origin-self-signed", .selfSigned), ("origin-unknown-root", .unknownIssuer),
            ("origin-incomplete", .incompleteChain),
        ] as [(String, ServerTrust.Reason)])
    func handshakeContinuesWithAnyVerdict(name: String, reason: ServerTrust.Reason) throws {
        let pair = try EnginePair(client: Fixture.client(), server: Fixture.server(name))
        pair.run()
        let trust = try #require(pair.client.engine.summary?.serverTrust)
        #expect(trust.reasons.contains(reason) && !trust.isTrusted)
        #expect(trust.chain == (try Fixture.chain(name)))
        #expect(pair.server.engine.isEstablished)
    }

    @Test func wholeChainIsSent() throws {
        let pair = try EnginePair(client: Fixture.client(), server: Fixture.server("origin-intermediate-leaf"))
        pair.run()
        let trust = try #require(pair.client.engine.serverTrust)
        #expect(trust.isTrusted && trust.chain.count == 2)
        #expect(trust.chain == (try Fixture.chain("origin-intermediate-leaf")))
    }

    @Test func chainIsNotCompletedFromTheClientAuthorities() throws {
        let server = try Fixture.server("origin-incomplete", authorities: ["origin-intermediate"])
        let pair = try EnginePair(client: Fixture.client(), server: server)
        pair.run()
        #expect(pair.client.engine.serverTrust?.chain == (try Fixture.chain("origin-incomplete")))
    }

    @Test func contextWithAnotherKeyIsRefused() throws {
        let chain = try Fixture.chain("origin-ec")
        let key = try Fixture.identity("origin-rsa").key
        #expect(throws: TLSError(.configuration, "")) { try TLSServerContext(chain: chain, key: key, host: nil) }
        #expect(throws: TLSError(.configuration, "")) { try TLSServerContext(chain: [], key: key, host: nil) }
    }

    // MARK: Ends

    @Test(arguments: Fixture.bothVersions)
    func missingCloseNotifyIsATruncation(version: Int32) throws {
        let pair = try EnginePair(client: Fixture.client(version: version), server: Fixture.server())
        #expect(pair.client.engine.inputEnded() == TLSError(.truncated, ""))
        pair.run()
        #expect(pair.client.engine.inputEnded() == TLSError(.truncated, ""))
        #expect(try pair.server.write("last") == .done(4))
        pair.server.engine.closeOutput()
        #expect(pair.server.engine.isOutputClosed)
        pair.run()
        #expect(pair.client.text == "last" && pair.client.lastStep == .inputClosed)
        #expect(pair.client.engine.isInputClosed && pair.client.engine.inputEnded() == nil)
        #expect(try pair.client.write("still") == .done(5))
        pair.run()
        #expect(pair.server.text == "still" && pair.server.engine.inputEnded() == TLSError(.truncated, ""))
    }

    @Test(
        arguments: ["GET / HTTP/1.1\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\u{16}\u{2}\u{0}", "\u{80}\u{2e}\u{1}"],
        [1, 100])
    func otherProtocolsAreRefused(text: String, chunk: Int) throws {
        let bytes = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        for engine in [
            try TLSEngine(server: Fixture.server()),
            try TLSEngine(client: Fixture.client(), host: "localhost", alpn: [], session: nil),
        ] {
            let side = EngineSide(engine)
            side.incoming = bytes
            while side.turn(chunk: chunk) {}
            #expect(side.error?.code == .notTLS)
            #expect(side.engine.inputEnded() == nil, "one failure, one error")
        }
    }

    @Test(arguments: Fixture.bothVersions)
    func alteredRecordFailsOnBothSides(version: Int32) throws {
        let pair = try EnginePair(client: Fixture.client(version: version), server: Fixture.server())
        pair.run()
        _ = try pair.server.write("answer")
        pair.server.outgoing[pair.server.outgoing.count - 1] ^= 1
        pair.run()
        #expect(pair.client.error?.code == .protocolViolation && pair.client.text.isEmpty)
        #expect(pair.server.error?.code == .peerAlert(20, name: "bad_record_mac"))
        #expect(throws: TLSError(.protocolViolation, "")) { try pair.client.write("more") }
    }

    // MARK: Sessions

    @Test(arguments: Fixture.bothVersions)
    func sessionIsResumedOnlyWhileItsChainIsTrusted(version: Int32) throws {
        let server = try Fixture.server()
        let first = try EnginePair(client: Fixture.client(version: version), server: server)
        first.run()
        let session = try #require(first.client.engine.session)
        let second = try EnginePair(client: Fixture.client(version: version), server: server, session: session)
        second.run()
        #expect(second.client.engine.summary?.resumed == true && second.server.engine.summary?.resumed == true)
        #expect(second.client.engine.summary?.serverTrust == first.client.engine.summary?.serverTrust)
        #expect(second.client.engine.summary?.peerCertificate == (try Fixture.leaf("origin-ec")))

        let later = try Fixture.client(version: version, at: 2_400_000_000)
        let third = try EnginePair(client: later, server: server, session: session)
        third.run()
        let trust = try #require(third.client.engine.summary?.serverTrust)
        #expect(third.client.engine.summary?.resumed == false)
        #expect(trust.reasons == [.expired(notAfter: 2_335_219_200)])
    }

    @Test func sessionOfAnotherHostIsNotOffered() throws {
        let server = try Fixture.server(host: nil)
        let first = try EnginePair(client: Fixture.client(), server: server, host: "a.test.localhost")
        first.run()
        let session = try #require(first.client.engine.session)
        let other = try EnginePair(client: Fixture.client(), server: server, host: "b.test.localhost", session: session)
        other.run()
        #expect(other.client.engine.summary?.resumed == false)
    }
}
