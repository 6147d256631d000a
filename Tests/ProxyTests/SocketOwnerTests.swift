// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore
import NIOPosix
import Testing

@testable import Proxy

@Suite struct SocketOwnerTests {
    @Test(arguments: ["127.0.0.1", "::1"]) func aConnectionOfThisProcessIsOurs(_ host: String) async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let server = try await ServerBootstrap(group: group).bind(host: host, port: 0).get()
        let address = try #require(server.localAddress)
        let client = try await ClientBootstrap(group: group).connect(to: address).get()
        let local = try #require(client.localAddress)
        let owner = SocketOwner.find(client: local, server: address)
        #expect(owner?.uid == getuid())
        #expect(try ProcessOfSocket.find(inode: #require(owner).inode) == getpid())
        // The same two ends the other way round are the server's half, which is nobody's until it is accepted, or ours.
        var elsewhere = local
        elsewhere.port = try #require(local.port) == 1 ? 2 : 1
        #expect(SocketOwner.find(client: elsewhere, server: address) == nil)
        try await client.close()
        try await server.close()
    }

    @Test func anUnknownPairIsNobodys() throws {
        let one = try SocketAddress(ipAddress: "127.0.0.1", port: 1)
        let two = try SocketAddress(ipAddress: "127.0.0.1", port: 2)
        #expect(SocketOwner.find(client: one, server: two) == nil)
    }

    @Test func aUnixAddressHasNoPair() throws {
        let path = try SocketAddress(unixDomainSocketPath: "/tmp/x")
        #expect(SocketOwner.find(client: path, server: path) == nil)
    }

    @Test func aSocketThatNobodyHoldsHasNoProcess() {
        #expect(ProcessOfSocket.find(inode: 0) == nil)
    }
}
