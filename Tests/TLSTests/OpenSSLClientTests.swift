// SPDX-License-Identifier: Apache-2.0

import CountersignCOpenSSL
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import CountersignTestOrigin
import Testing

@testable import CountersignChannelTLS
@testable import CountersignTLS

/// Tests the server's side with `openssl s_client`.
@Suite(.serialized)
struct OpenSSLClientTests {
    /// Accepts connections, echoes the bytes received, and closes its output after `closingAfter` bytes.
    private final class EchoServer: Sendable {
        let channel: any Channel
        let logs = NIOLockedValueBox<[NIOLockedValueBox<Recorder.Log>]>([])
        let port: Int

        init(_ context: TLSServerContext, closingAfter limit: Int = .max) throws {
            let logs = logs
            channel = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelOption(.allowRemoteHalfClosure, value: true)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let tls = try TLSHandler(server: context)
                        let recorder = Recorder(tls, keepsBytes: limit == .max)
                        logs.withLockedValue { $0.append(recorder.log) }
                        recorder.onBytes = { [unowned recorder] context, bytes in
                            context.writeAndFlush(NIOAny(bytes), promise: nil)
                            if recorder.log.withLockedValue({ $0.byteCount }) >= limit {
                                context.close(mode: .output, promise: nil)
                            }
                        }
                        try channel.pipeline.syncOperations.addHandlers([tls, recorder])
                    }
                }
                .bind(host: "127.0.0.1", port: 0).wait()
            port = try #require(channel.localAddress?.port)
        }

        deinit { channel.close(promise: nil) }

        var heard: [Heard] { logs.withLockedValue { $0.last }?.withLockedValue { $0.heard } ?? [] }

        func hears(_ entry: Heard) -> Bool {
            poll { heard.contains(entry) ? true : nil } ?? false
        }
    }

    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("tls-client") }

    private func connect(
        _ port: Int, _ arguments: [String], input: String = "", seconds: Double = patience
    ) throws -> CommandResult {
        let own = ["s_client", "-connect", "127.0.0.1:\(port)", "-CAfile", Fixture.path("origin-root")]
        return try Command.run(
            "/usr/bin/openssl", own + arguments, input: input, in: folder, seconds: seconds)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"], ["origin-ec", "origin-rsa", "origin-intermediate-leaf"])
    func openSSLClientVerifiesTheChainAndTheName(version: String, name: String) throws {
        let server = try EchoServer(Fixture.server(name), closingAfter: 6)
        let result = try connect(
            server.port,
            [
                "-servername", "localhost", "-verify_hostname", "localhost", "-verify_return_error", version, "-alpn",
                "h2,http/1.1", "-ign_eof",
            ], input: "hello\n")
        #expect(result.status == 0, "\(result.said)")
        #expect(
            result.output.contains("Verify return code: 0 (ok)") && result.output.contains("ALPN protocol: http/1.1"))
        #expect(result.output.contains("AES128-GCM") || result.output.contains("AES_128_GCM"))
        #expect(result.output.contains("\nhello\n") && result.output.contains("Compression: NONE"))
    }

    @Test(arguments: [["-servername", "elsewhere.example"], ["-noservername"]])
    func otherNamesGetUnrecognizedName(arguments: [String]) throws {
        let server = try EchoServer(Fixture.server())
        let result = try connect(server.port, arguments)
        #expect(result.status != 0 && result.error.contains("unrecognized name"), "\(result.said)")
        let asked = arguments.count == 2 ? arguments[1] : ""
        #expect(server.hears(.error(.serverNameMismatch(asked))), "\(server.heard)")
    }

    @Test(arguments: [
        ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"],
        ["-tls1_2", "-cipher", "AES128-GCM-SHA256"],
    ])
    func weakOffersAreRefused(arguments: [String]) throws {
        let server = try EchoServer(Fixture.server())
        let result = try connect(server.port, ["-servername", "localhost"] + arguments)
        #expect(result.status != 0, "\(result.said)")
        #expect(server.hears(.inactive), "\(server.heard)")
        #expect(server.heard == [.error(.handshakeFailed), .inactive])
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func ticketsAreResumed(version: String) throws {
        let server = try EchoServer(Fixture.server(), closingAfter: 6)
        let session = folder.file("session.pem")
        let arguments = ["-servername", "localhost", version, "-ign_eof"]
        let first = try connect(server.port, arguments + ["-sess_out", session], input: "hello\n")
        #expect(first.output.contains("New, TLS"), "\(first.said)")
        let second = try connect(server.port, arguments + ["-sess_in", session], input: "hello\n")
        #expect(second.output.contains("Reused, TLS") && second.output.contains("\nhello\n"), "\(second.said)")
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func clientCertificateIsVerifiedAndReported(version: String) throws {
        let server = try EchoServer(
            Fixture.server(authorities: ["client-a-root"], isRequired: true), closingAfter: 6)
        let arguments = ["-servername", "localhost", version, "-ign_eof"]
        let shown = try connect(
            server.port,
            arguments + [
                "-cert", Fixture.path("client-a"), "-key", Fixture.path("client-a.key"), "-cert_chain",
                Fixture.path("client-a-intermediate"),
            ], input: "hello\n")
        #expect(shown.output.contains("\nhello\n"), "\(shown.said)")
        #expect(shown.output.contains("CN = Client root A"), "the accepted authority is named: \(shown.said)")
        let summary = server.logs.withLockedValue { $0.last }?.withLockedValue { $0.summary }
        #expect(summary?.verifiedClientChain == (try Fixture.chain("client-a")) + [try Fixture.leaf("client-a-root")])

        let none = try connect(server.port, arguments, input: "hello\n")
        #expect(none.status != 0 && !none.output.contains("\nhello\n"), "\(none.said)")
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func fiftyMebibytesAreEchoedUnchanged(version: String) throws {
        let bytes = Fixture.bytes(50 * 1024 * 1024)
        let server = try EchoServer(Fixture.server(), closingAfter: bytes.count)
        let input = try folder.write("bulk", bytes)
        let child = try ChildProcess(
            "/usr/bin/openssl",
            ["s_client", "-connect", "127.0.0.1:\(server.port)", "-servername", "localhost", version, "-quiet"],
            input: input, capture: folder.file("bulk"))
        #expect(child.waitForExit() == 0, "\(child.errorOutput)")
        let echoed = TextFile.bytes(child.outputPath)
        #expect(echoed.count == bytes.count)
        #expect(echoed == bytes)
        #expect(server.hears(.inactive))
        #expect(!server.heard.contains(.error(.truncated)) && !server.heard.contains(.otherError), "\(server.heard)")
    }
}
