// SPDX-License-Identifier: Apache-2.0

import CountersignLoopback
import Glibc
import NIOCore
import NIOPosix
import Testing

@testable import CountersignProxy

@Suite struct SocketOwnerTests {
    /// Runs in a process of its own, because a child of another test may briefly hold a copy of the socket, and would
    /// be a correct answer too.
    @Test func aConnectionOfThisProcessBelongsToItsUser() async {
        await #expect(processExitsWith: .success) {
            for host in ["127.0.0.1", "::1"] {
                let group = MultiThreadedEventLoopGroup.singleton
                let server = try await ServerBootstrap(group: group).bind(host: host, port: 0).get()
                let address = try #require(server.localAddress)
                let client = try await ClientBootstrap(group: group).connect(to: address).get()
                let local = try #require(client.localAddress)
                let owner = try #require(try SocketOwner.find(client: local, server: address))
                #expect(owner.uid == getuid())
                #expect(ProcessOfSocket.find(inode: owner.inode) == getpid())
                var elsewhere = local
                elsewhere.port = try #require(local.port) == 1 ? 2 : 1
                #expect(try SocketOwner.find(client: elsewhere, server: address) == nil)
                try await client.close()
                try await server.close()
            }
        }
    }

    @Test func anUnknownPairHasNoOwner() throws {
        let one = try SocketAddress(ipAddress: "127.0.0.1", port: 1)
        let two = try SocketAddress(ipAddress: "127.0.0.1", port: 2)
        #expect(try SocketOwner.find(client: one, server: two) == nil)
    }

    @Test func aUnixAddressHasNoPair() throws {
        let path = try SocketAddress(unixDomainSocketPath: "/tmp/x")
        #expect(try SocketOwner.find(client: path, server: path) == nil)
    }

    @Test func aSocketThatNobodyHoldsHasNoProcess() {
        #expect(ProcessOfSocket.find(inode: 0) == nil)
    }
}
