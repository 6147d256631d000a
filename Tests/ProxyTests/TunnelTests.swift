// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy

/// Over real sockets: a tunnel forwards large amounts completely, and ends as its two ends do.
@Suite(.serialized) struct TunnelTests {
    enum Direction: CaseIterable {
        case toOrigin, toClient, bothWays
    }

    private static let mebibyte = 1024 * 1024

    @Test(arguments: Direction.allCases) func everyByteArrivesOnce(_ direction: Direction) async throws {
        let stage = try await TunnelStage()
        let tunnel = try await stage.tunnel()
        let there = direction == .toClient ? 0 : 50 * Self.mebibyte
        let back = direction == .toOrigin ? 0 : 50 * Self.mebibyte
        async let sentThere = onThread { tunnel.client.sendAll(there, seed: 1) }
        async let sentBack = onThread { tunnel.origin.sendAll(back, seed: 2) }
        async let cameThere = onThread { tunnel.origin.expects(there, seed: 1) }
        async let cameBack = onThread { tunnel.client.expects(back, seed: 2) }
        #expect(await [sentThere, sentBack, cameThere, cameBack] == [true, true, true, true])
        tunnel.client.endOutput()
        #expect(await onThread { tunnel.origin.next() } == 0)
        tunnel.origin.endOutput()
        #expect(await onThread { tunnel.client.next() } == 0)
        tunnel.close()
        try await stage.stop()
    }

    @Test(arguments: [true, false]) func oneSideHalfClosesAndTheOtherStillSends(clientEndsFirst: Bool) async throws {
        let stage = try await TunnelStage()
        let tunnel = try await stage.tunnel()
        let (first, last) = clientEndsFirst ? (tunnel.client, tunnel.origin) : (tunnel.origin, tunnel.client)
        async let isSent = onThread {
            defer { first.endOutput() }
            return first.sendAll(4 * Self.mebibyte, seed: 4)
        }
        #expect(await onThread { last.expects(4 * Self.mebibyte, seed: 4) && last.next() == 0 })
        #expect(await isSent)
        async let isAnswered = onThread {
            defer { close(last.descriptor) }
            return last.sendAll(8 * Self.mebibyte, seed: 5)
        }
        #expect(await onThread { first.expects(8 * Self.mebibyte, seed: 5) && first.next() == 0 })
        #expect(await isAnswered)
        close(first.descriptor)
        try await stage.stop()
    }

    @Test func dataForASlowReaderStaysOutsideTheProxy() async throws {
        let stage = try await TunnelStage()
        let tunnel = try await stage.tunnel()
        tunnel.origin.setPatience(.milliseconds(200))
        // Far more than the kernel buffers on the two connections. The proxy may add only little.
        let sent = await onThread { tunnel.origin.send(upTo: 256 * Self.mebibyte, seed: 3) }
        #expect(sent < 64 * Self.mebibyte)
        tunnel.origin.setPatience(.seconds(20))
        // The other direction stays open, and the data that was held back is not lost either.
        #expect(
            await onThread { tunnel.client.sendAll(100_000, seed: 9) && tunnel.origin.expects(100_000, seed: 9) })
        tunnel.origin.endOutput()
        #expect(await onThread { tunnel.client.expects(sent, seed: 3) && tunnel.client.next() == 0 })
        tunnel.close()
        try await stage.stop()
    }

    @Test(arguments: [true, false], [true, false]) func aResetOfOneEndEndsTheOther(
        clientResets: Bool, whileStuck: Bool
    ) async throws {
        let stage = try await TunnelStage()
        let tunnel = try await stage.tunnel()
        let (gone, left) = clientResets ? (tunnel.client, tunnel.origin) : (tunnel.origin, tunnel.client)
        if whileStuck {
            for end in [gone, left] {
                end.setPatience(.milliseconds(200))
                #expect(await onThread { end.sendAll(256 * Self.mebibyte, seed: 6) } == false)
            }
        } else {
            async let isSent = onThread { gone.sendAll(4 * Self.mebibyte, seed: 6) }
            #expect(await onThread { left.expects(4 * Self.mebibyte, seed: 6) })
            #expect(await isSent)
        }
        left.setPatience(.seconds(20))
        gone.reset()
        let last = await onThread { left.drain() }
        #expect(last == 0 || last == -Int(ECONNRESET))
        close(left.descriptor)
        try await stage.stop()
    }

    @Test func stoppingClosesAFullTunnel() async throws {
        let stage = try await TunnelStage()
        let tunnel = try await stage.tunnel()
        tunnel.origin.setPatience(.milliseconds(200))
        #expect(await onThread { tunnel.origin.sendAll(256 * Self.mebibyte, seed: 3) } == false)
        try await stage.stop()
        let last = await onThread { tunnel.client.drain() }
        #expect(last == 0 || last == -Int(ECONNRESET))
        tunnel.close()
    }

    @Test func theLogCountsTheBytesFromTheOrigin() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("tunnel-\(UUID()).log").path
        defer { unlink(path) }
        let stage = try await TunnelStage(accessLog: AccessLog(path: path) { _ in })
        let tunnel = try await stage.tunnel()
        let count = 50 * Self.mebibyte + 1
        async let isSent = onThread {
            tunnel.client.sendAll(300_000, seed: 7) && tunnel.origin.sendAll(count, seed: 8)
        }
        #expect(await onThread { tunnel.origin.expects(300_000, seed: 7) && tunnel.client.expects(count, seed: 8) })
        #expect(await isSent)
        tunnel.close()
        try await stage.stop()
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 1)
        #expect(lines.first?.contains("\"bytes\":\(count)") == true)
    }
}
