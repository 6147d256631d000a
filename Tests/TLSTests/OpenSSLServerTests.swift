// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import CountersignCertificates
import NIOCore
import Testing

@testable import CountersignTLS

/// Tests the client's side with `openssl s_server`.
@Suite(.serialized)
struct OpenSSLServerTests {
    private static func flag(_ version: Int32) -> String { version == TLS1_3_VERSION ? "-tls1_3" : "-tls1_2" }

    /// Arguments with which s_server requests certificates by the flag `how`, and accepts those of root A.
    private static func asking(_ how: String, _ version: Int32) -> [String] {
        [how, "3", "-verify_return_error", "-CAfile", Fixture.path("client-a-root"), flag(version)]
    }

    private func client(_ server: OpenSSLServer, _ answer: Recorder.Answer = .never) throws -> LoopbackClient {
        try LoopbackClient(port: server.port, context: Fixture.client(), answer: answer)
    }

    @Test(arguments: Fixture.bothVersions, ["origin-ec", "origin-rsa", "origin-intermediate-leaf"])
    func linesAreExchangedInBothDirections(version: Int32, name: String) throws {
        let server = try OpenSSLServer([Self.flag(version), "-rev", "-alpn", "http/1.1"], showing: name)
        let anchors = try Fixture.client()
        let client = try LoopbackClient(port: server.port, context: anchors)
        #expect(client.hears(.completed(identity: nil)))
        client.write("abc\n")
        #expect(client.reads("cba"), "\(server.said)")
        let summary = try #require(client.log.withLockedValue { $0.summary })
        #expect(summary.alpn == "http/1.1" && summary.serverTrust?.isTrusted == true)
        #expect(summary.serverTrust?.chain == (try Fixture.chain(name)))
        #expect(summary.cipher.contains("128"), "the server has no order of its own: ours is taken")
    }

    @Test(arguments: Fixture.bothVersions, ["-verify", "-Verify"])
    func certificateIsSentInTheHandshakeWithoutBlockingTheLoop(version: Int32, how: String) throws {
        let server = try OpenSSLServer(Self.asking(how, version) + ["-rev"])
        let identity = try Fixture.identity("client-a")
        let client = try client(server, .later(identity, turns: 20))
        #expect(client.hears(.completed(identity: "client-a")), "\(server.said)")
        client.write("abc\n")
        #expect(client.reads("cba"), "\(server.said)")
        let log = client.log.withLockedValue { $0 }
        #expect(
            Array(log.heard.prefix(3)) == [
                .trust(true), .asked(isPostHandshake: false), .completed(identity: "client-a"),
            ])
        #expect(log.requests.map(\.acceptableIssuers) == [[try Fixture.leaf("client-a-root").subjectDER]])
        #expect(log.turnsWhileAsked == 20)
        // The server has only the root, so it must have got the intermediate certificate from the client.
        #expect(server.says("depth=2") && server.says("depth=1"), "\(server.said)")
    }

    @Test(arguments: Fixture.bothVersions)
    func rsaIdentityIsSent(version: Int32) throws {
        let server = try OpenSSLServer(
            [
                "-Verify", "3", "-verify_return_error", "-CAfile", Fixture.path("client-b-root"), Self.flag(version),
                "-rev",
            ])
        let client = try client(server, .now(try Fixture.identity("client-b")))
        client.write("abc\n")
        #expect(client.reads("cba"), "\(server.said)")
        #expect(client.hears(.completed(identity: "client-b")))
    }

    @Test(
        arguments: [(TLS1_2_VERSION, 40, "handshake_failure"), (TLS1_3_VERSION, 116, "certificate_required")]
            as [(Int32, UInt8, String)])
    func missingCertificateCausesTheServersAlert(version: Int32, alert: UInt8, name: String) throws {
        let server = try OpenSSLServer(Self.asking("-Verify", version))
        let client = try client(server, .now(nil))
        #expect(client.hears(.inactive), "\(client.heard)")
        #expect(client.heard.suffix(2) == [.error(.peerAlert(alert, name: name)), .inactive])
        #expect(client.heard.contains(.completed(identity: nil)) == (version == TLS1_3_VERSION))
    }

    @Test(arguments: Fixture.bothVersions)
    func untrustedServerGetsNoCertificate(version: Int32) throws {
        let server = try OpenSSLServer(Self.asking("-verify", version) + ["-rev"], showing: "origin-self-signed")
        let client = try client(server, .now(try Fixture.identity("client-a")))
        client.write("abc\n")
        #expect(client.reads("cba"), "\(server.said)")
        #expect(Array(client.heard.prefix(2)) == [.trust(false), .completed(identity: nil)])
        #expect(!server.said.contains("depth="))
    }

    @Test(
        arguments: Fixture.bothVersions,
        [("origin-rsa1024", ServerTrust.Reason.weakKey), ("origin-sha1", .weakSignature)])
    func weakCertificateIsAVerdictAndNotAnError(version: Int32, server: (name: String, reason: ServerTrust.Reason))
        throws
    {
        let weak = try OpenSSLServer([Self.flag(version), "-cipher", "ALL:@SECLEVEL=0", "-rev"], showing: server.name)
        let client = try client(weak)
        client.write("abc\n")
        #expect(client.reads("cba"), "\(client.heard) \(weak.said)")
        let trust = try #require(client.log.withLockedValue { $0.summary?.serverTrust })
        #expect(trust.reasons.contains(server.reason))
    }

    @Test func postHandshakeRequestIsAnswered() throws {
        let server = try OpenSSLServer(Self.asking("-verify", TLS1_3_VERSION) + ["-state"])
        // The first answer is for the request in the handshake, the second for the one that the typed command sends.
        let client = try client(server, .later(try Fixture.identity("client-a"), turns: 5))
        #expect(client.hears(.completed(identity: "client-a")) && server.says("CIPHER is"))
        server.type("c")
        #expect(client.hears(.asked(isPostHandshake: true)), "\(server.said)")
        server.type("behind the request")
        #expect(client.reads("behind the request"), "\(client.heard) \(server.said)")
        client.write("from the client\n")
        #expect(server.says("from the client"))
        #expect(client.log.withLockedValue { $0.requests.count } == 2)
    }

    @Test func renegotiationForACertificateIsAllowedOnce() throws {
        let server = try OpenSSLServer(
            ["-CAfile", Fixture.path("client-a-root"), "-tls1_2", "-state", "-no_ticket", "-no_cache"])
        let client = try client(server, .later(try Fixture.identity("client-a"), turns: 5))
        #expect(client.hears(.completed(identity: nil)) && server.says("CIPHER is"))
        server.type("before")
        #expect(client.reads("before"))
        server.type("R")
        #expect(client.hears(.asked(isPostHandshake: true)), "\(server.said)")
        #expect(server.says("depth=2"), "\(server.said)")
        server.type("after")
        #expect(client.reads("after"), "\(client.heard) \(server.said)")
        #expect(client.log.withLockedValue { $0.requests.count } == 1)
        server.type("R")
        #expect(client.hears(.error(.renegotiationRefused)), "\(client.heard) \(server.said)")
        #expect(client.hears(.inactive))
    }

    @Test(arguments: Fixture.bothVersions)
    func closeNotifyIsToldFromACutConnection(version: Int32) throws {
        let polite = try OpenSSLServer([Self.flag(version), "-rev"])
        let first = try client(polite)
        first.write("CLOSE\n")
        #expect(first.hears(.channelInputClosed), "\(first.heard)")
        #expect(first.heard.contains(.tlsInputClosed) && !first.heard.contains(.error(.truncated)))

        let rude = try OpenSSLServer([Self.flag(version)])
        let second = try client(rude)
        #expect(second.hears(.completed(identity: nil)))
        rude.child.send(9)
        #expect(second.hears(.error(.truncated)), "\(second.heard)")
        #expect(!second.heard.contains(.tlsInputClosed))
    }

    @Test(arguments: Fixture.bothVersions)
    func withoutAutoReadOnlyTheHandshakeReads(version: Int32) throws {
        let server = try OpenSSLServer([Self.flag(version)])
        let client = try LoopbackClient(port: server.port, context: Fixture.client(), autoRead: false)
        #expect(client.hears(.completed(identity: nil)) && server.says("CIPHER is"))
        for number in 0..<3 {
            client.channel.read()
            server.type("line \(number)")
            #expect(client.reads("line \(number)"), "\(client.heard)")
        }
        server.type("nobody reads this")
        #expect(!client.reads("nobody", seconds: 0.2))
        client.channel.read()
        #expect(client.reads("nobody"))
    }

    @Test(arguments: ["-tls1_1", "-tls1"])
    func olderVersionsAreRefused(flag: String) throws {
        let server = try OpenSSLServer([flag, "-cipher", "ALL:@SECLEVEL=0"])
        let client = try client(server)
        #expect(client.hears(.inactive), "\(client.heard)")
        #expect(client.heard == [.error(.peerAlert(70, name: "protocol_version")), .inactive])
    }

    @Test(arguments: ["AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA256", "DHE-RSA-AES128-GCM-SHA256"])
    func weakerSuitesAreNotOffered(suite: String) throws {
        let server = try OpenSSLServer(["-tls1_2", "-cipher", suite], showing: "origin-rsa")
        let client = try client(server)
        #expect(client.hears(.inactive), "\(client.heard)")
        #expect(client.heard == [.error(.peerAlert(40, name: "handshake_failure")), .inactive])
    }
}
