// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Glibc
import NIOCore
import Testing

@testable import CountersignProxy

/// Over real sockets: the tunnels of a client that has sent a CONNECT to a listed http site.
@Suite(.serialized) struct TunnelContentTests {
    private static let mebibyte = 1024 * 1024

    private static func stage(_ log: AccessLog? = nil) async throws -> TunnelStage {
        try await TunnelStage(accessLog: log, options: "plaintext=yes", silence: .milliseconds(1))
    }

    @Test func theServerMaySpeakFirst() async throws {
        let stage = try await Self.stage()
        let tunnel = try await stage.tunnel()
        #expect(tunnel.origin.send(text: "220 mail.example\r\n"))
        #expect(await onThread { tunnel.client.text(18) } == "220 mail.example\r\n")
        #expect(tunnel.client.send(text: "GET / HTTP/1.1\r\n\r\n"))
        #expect(await onThread { tunnel.origin.text(18) } == "GET / HTTP/1.1\r\n\r\n")
        tunnel.close()
        try await stage.stop()
    }

    /// With the CONNECT or later, whole or in part.
    @Test(arguments: [("SSH-2.0-x\r\n", ""), ("SSH", "-2.0-x\r\n"), ("", "SSH-2.0-x\r\n"), ("\u{5}", "\u{1}\u{0}")])
    func everyByteArrivesOnce(_ first: String, _ rest: String) async throws {
        let stage = try await Self.stage()
        let tunnel = try await stage.tunnel(first)
        #expect(tunnel.client.send(text: rest))
        #expect(await onThread { tunnel.origin.text((first + rest).utf8.count) } == first + rest)
        async let sentThere = onThread { tunnel.client.sendAll(4 * Self.mebibyte, seed: 1) }
        async let sentBack = onThread { tunnel.origin.sendAll(4 * Self.mebibyte, seed: 2) }
        async let cameThere = onThread { tunnel.origin.expects(4 * Self.mebibyte, seed: 1) }
        async let cameBack = onThread { tunnel.client.expects(4 * Self.mebibyte, seed: 2) }
        #expect(await [sentThere, sentBack, cameThere, cameBack] == [true, true, true, true])
        tunnel.client.endOutput()
        #expect(await onThread { tunnel.origin.next() } == 0)
        #expect(tunnel.origin.send(text: "bye"))
        #expect(await onThread { tunnel.client.text(3) } == "bye")
        tunnel.close()
        try await stage.stop()
    }

    @Test func aRequestIsForwardedOverAConnectionOfTheProxy() async throws {
        let stage = try await Self.stage()
        let tunnel = try await stage.tunnel("GET /x HTTP/1.0\r\n\r\n")
        let head = await onThread { tunnel.origin.head() }
        #expect(head.hasPrefix("GET /x HTTP/1.1\r\nHost: 127.0.0.1:") && head.contains("Via: 1.1 csn-test\r\n"))
        #expect(tunnel.origin.send(text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
        #expect(await onThread { tunnel.client.text(.max) }.hasSuffix("\r\n\r\nok"))
        tunnel.close()
        try await stage.stop()
    }

    /// The 200 has been sent before the origin turns out not to be there.
    @Test(arguments: ["", "SSH-2.0-x\r\n", "\u{16}\u{3}\u{1}", "GET / HTTP/1.0\r\n\r\n"])
    func withoutAnOriginTheTunnelEndsAndIsLogged(_ first: String) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("access.log")
        let stage = try await Self.stage(AccessLog(path: path) { _ in })
        stage.closeOrigin()
        let seen = try await stage.refused(first)
        let established = AcceptedConnectTests.established
        if first.hasPrefix("GET") {
            #expect(seen.hasPrefix(established + "HTTP/1.1 502 Bad Gateway\r\n"), "\(seen)")
        } else {
            #expect(seen == established)
        }
        try await stage.stop()
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == (first.hasPrefix("GET") ? 2 : 1))
        #expect(lines.last?.contains(#""status":502"#) == true, "\(lines)")
    }

    /// A ClientHello of TLS 1.2 for `localhost`, made by OpenSSL 3.
    private static let clientHello =
        "160301009501000091030324163081db1366ef9bc5c3deb3305357b397d47678467143f2888d16e913f85a000004c02b"
        + "00ff010000640000000e000c0000096c6f63616c686f7374000b000403000102000a000c000a001d0017001e00190018"
        + "002300000016000000170000000d002a0028040305030603080708080809080a080b0804080508060401050106010303"
        + "03010302040205020602"

    /// It is intercepted as without the http line, and the CONNECT has one response.
    @Test func withBothLinesTLSIsIntercepted() async throws {
        let bench = try await TrustBench(isPlainToo: true)
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: bench.port)
        let (connect, hello) = (bench.connect, Self.clientHello)
        let (head, record) = await onThread {
            let client = BulkSocket(connectedTo: address)
            defer { close(client.descriptor) }
            let bytes = stride(from: 0, to: hello.utf8.count, by: 2).compactMap {
                UInt8(hello.dropFirst($0).prefix(2), radix: 16)
            }
            #expect(client.send(text: connect))
            let head = client.head()
            #expect(client.send(bytes))
            return (head, client.text(3))
        }
        #expect(head == AcceptedConnectTests.established)
        // A handshake record of TLS 1.2: the ServerHello.
        #expect(record == "\u{16}\u{3}\u{3}")
        #expect(bench.lines.count == 1)
        #expect(bench.lines.first?.contains(#""site":"\#(bench.origin)","decision":"intercept""#) == true)
        try await bench.stop()
    }

    /// The origin speaks TLS only, which is its business: the request goes out as it would in absolute form.
    @Test func withBothLinesARequestIsNotIntercepted() async throws {
        let bench = try await TrustBench(isPlainToo: true)
        let client = try await bench.client()
        try await client.send(bench.connect)
        _ = try await client.until(AcceptedConnectTests.established)
        try await client.send("GET / HTTP/1.1\r\nHost: localhost:\(bench.origin.port)\r\nConnection: close\r\n\r\n")
        #expect(try await client.rest().hasPrefix(AcceptedConnectTests.established + "HTTP/1.1 502 "))
        #expect(bench.lines.count == 2 && bench.lines.allSatisfy { $0.contains("\(bench.origin.withoutTLS)") })
        try await bench.stop()
    }
}
