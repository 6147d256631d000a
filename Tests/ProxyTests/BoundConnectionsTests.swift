// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOEmbedded
import Testing

@testable import CountersignProxy
@testable import CountersignUpstream

@Suite struct BoundConnectionsTests {
    private let loop = EmbeddedEventLoop()

    private func connection() throws -> (OriginConnection, EmbeddedChannel) {
        let channel = EmbeddedChannel(loop: loop)
        let connection = OriginConnection(place: "a.example:80", tlsHandler: nil)
        try channel.pipeline.syncOperations.addHandler(connection)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
        return (connection, channel)
    }

    private static func key(_ number: UInt64) -> UpstreamKey {
        UpstreamKey(origin: Bench.origin, trust: .verified, credential: nil, principal: 1, settings: number)
    }

    @Test func aConnectionIsTakenOnceAndOnlyByItsKey() throws {
        var bound = BoundConnections()
        let (first, _) = try connection()
        let (second, _) = try connection()
        bound.keep(first, for: Self.key(1))
        bound.keep(second, for: Self.key(2))
        #expect(bound.connection(for: Self.key(1)) === first)
        #expect(bound.lease(for: Self.key(3)) == nil)
        #expect(bound.lease(for: Self.key(2)) === second)
        #expect(bound.lease(for: Self.key(2)) == nil)
        #expect(bound.lease(for: Self.key(1)) === first)
    }

    /// A client with several exchanges at a time has several.
    @Test func connectionsWithOneKeyAreTakenInOrder() throws {
        var bound = BoundConnections()
        let (first, firstChannel) = try connection()
        let (second, secondChannel) = try connection()
        bound.keep(first, for: Self.key(1))
        bound.keep(second, for: Self.key(1))
        #expect(firstChannel.isActive && secondChannel.isActive)
        #expect(bound.lease(for: Self.key(1)) { $0 !== first } === second)
        #expect(bound.lease(for: Self.key(1)) === first)
        #expect(bound.connection(for: Self.key(1)) == nil)
    }

    @Test func theOldestConnectionIsClosedWhenThereAreTooMany() throws {
        var bound = BoundConnections()
        let connections = try (0..<17).map { _ in try connection() }
        for (number, (connection, _)) in connections.enumerated() {
            bound.keep(connection, for: Self.key(UInt64(number)))
        }
        #expect(connections.map(\.1.isActive) == [false] + Array(repeating: true, count: 16))
        bound.closeAll()
        #expect(!connections.contains { $0.1.isActive })
        #expect(bound.connection(for: Self.key(16)) == nil)
    }
}
