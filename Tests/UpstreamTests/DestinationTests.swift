// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignTestOrigin
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

@testable import CountersignUpstream

/// Where a connection may end: not at this proxy itself, and on this machine only if the person has said so. Names are
/// resolved by the test, and everything else is real.
@Suite struct DestinationTests {
    private let loop = MultiThreadedEventLoopGroup.singleton.next()
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A listener that counts its connections.
    private final class Listener {
        let address: SocketAddress
        private let channel: any Channel
        private let accepted = NIOLockedValueBox(0)

        init(_ host: String, port: Int = 0) async throws {
            let accepted = accepted
            channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    accepted.withLockedValue { $0 += 1 }
                    return channel.eventLoop.makeSucceededVoidFuture()
                }
                .bind(host: host, port: port).get()
            guard let address = channel.localAddress else { throw HarnessError("the listener has no address") }
            self.address = address
        }

        deinit { channel.close(promise: nil) }

        var port: Int { address.port ?? 0 }
        var count: Int { accepted.withLockedValue { $0 } }

        /// Waits until it has accepted that many connections, which its own event loop learns of.
        func accepts(_ count: Int) async throws -> Bool {
            let end = ContinuousClock.now + .seconds(60)
            while self.count < count, ContinuousClock.now < end {
                try await Task.sleep(for: .milliseconds(5))
            }
            return self.count == count
        }
    }

    /// Opens a tunnel to `host` whose name has these addresses. Nil if it succeeds.
    private func fault(
        to host: String, _ port: Int, addresses: [String] = [], terms: ConnectionTerms = ConnectionTerms(),
        hosts: String = "", own: [SocketAddress] = [], limit: TimeAmount = .seconds(120)
    ) async throws -> UpstreamError? {
        let file = try folder.write("hosts", hosts)
        let promise = loop.makePromise(of: UpstreamError?.self)
        loop.execute { [loop] in
            let resolver = OriginResolver(loop: loop, hostsFile: HostsFile(path: file)) { _, port in
                try addresses.map { try SocketAddress(ipAddress: $0, port: port) }
            }
            let listeners = OwnListeners()
            for address in own { listeners.add(address) }
            var limits = UpstreamTimeLimits()
            limits.connect = limit
            let connector = UpstreamConnector(
                loop: loop, limits: limits, resolver: resolver, ownListeners: listeners)
            let origin = Origin(scheme: .https, host: host, port: UInt16(port))
            connector.tunnel(to: origin, terms) { result in
                switch result {
                case .success(let opened):
                    opened.channel.close(promise: nil)
                    promise.succeed(nil)
                case .failure(let error): promise.succeed(error)
                }
            }
        }
        return try await promise.futureResult.get()
    }

    // MARK: This machine

    @Test(arguments: [
        "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1",
        "64:ff9b::7f00:1",
    ])
    func aNameThatLeadsHereIsRefused(address: String) async throws {
        let listener = try await Listener("127.0.0.1")
        let fault = try await fault(to: "rebind.example", listener.port, addresses: [address])
        #expect(fault?.code == .localAddress && fault?.step == .resolve)
        let shown = try #require(IPAddress(address)).description
        #expect(fault?.detail.hasPrefix("rebind.example has the address \(shown), ") == true)
        #expect(fault?.detail.contains("--allow-local") == true)
        #expect(listener.count == 0)
    }

    /// 192.0.2.1 (RFC 5737) does not answer, so that the race would be won by the listener.
    @Test func anAddressOfThisMachineIsLeftOut() async throws {
        let listener = try await Listener("127.0.0.1")
        for addresses in [["127.0.0.1", "192.0.2.1"], ["192.0.2.1", "::ffff:127.0.0.1", "127.0.0.1"]] {
            let fault = try await fault(
                to: "rebind.example", listener.port, addresses: addresses, limit: .seconds(2))
            #expect(fault != nil && fault?.code != .localAddress, "\(addresses)")
        }
        #expect(listener.count == 0)
    }

    @Test func aListedSiteMayBeHere() async throws {
        let listener = try await Listener("127.0.0.1")
        let terms = ConnectionTerms(mayBeLocal: true)
        #expect(try await fault(to: "listed.example", listener.port, addresses: ["127.0.0.1"], terms: terms) == nil)
    }

    @Test(arguments: ["127.0.0.1", "localhost", "a.b.localhost"])
    func thePersonsOwnWordIsKept(host: String) async throws {
        let listener = try await Listener("127.0.0.1")
        #expect(try await fault(to: host, listener.port, addresses: [host]) == nil)
    }

    @Test(arguments: [
        ("127.0.0.1 other.example dev.example", true), ("::1\tDEV.example", true), ("127.0.0.1 dev.example#x", true),
        ("127.0.0.1 other.example", false), ("# 127.0.0.1 dev.example", false), ("10.0.0.1 dev.example", false),
        ("127.0.0.1 x.dev.example", false), ("127.0.0.1 other.example # dev.example", false), ("dev.example", false),
    ])
    func aNameInTheHostsFileMayBeHere(line: String, isPermitted: Bool) async throws {
        let listener = try await Listener("127.0.0.1")
        let hosts = "127.0.0.1 localhost\n\n\(line)\nff02::1 ip6-allnodes"
        let fault = try await fault(to: "dev.example", listener.port, addresses: ["127.0.0.1"], hosts: hosts)
        #expect(fault?.code == (isPermitted ? nil : .localAddress))
    }

    // MARK: This proxy

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "localhost"), ("127.0.0.1", "self.example"), ("127.0.0.1", "0.0.0.0"),
        ("0.0.0.0", "127.9.9.9"), ("0.0.0.0", "127.0.0.1"), ("::", "127.0.0.1"), ("::", "::1"), ("::1", "localhost"),
    ])
    func theProxyItselfIsALoop(listening: String, host: String) async throws {
        let listener = try await Listener(listening)
        let terms = ConnectionTerms(mayBeLocal: true)
        let fault = try await fault(
            to: host, listener.port, addresses: [host == "self.example" ? "127.0.0.1" : host], terms: terms,
            own: [listener.address])
        #expect(fault?.code == .loop && fault?.step == .tcp)
        #expect(fault?.detail.contains("is this proxy itself") == true)
    }

    /// Every address of the machine reaches a wildcard listener, on any interface.
    @Test func anyAddressOfTheMachineReachesAWildcard() async throws {
        let listener = try await Listener("0.0.0.0")
        for device in try System.enumerateDevices() {
            guard let address = device.address?.ipAddress, IPAddress(address)?.bytes.count == 4 else { continue }
            let fault = try await fault(to: address, listener.port, addresses: [address], own: [listener.address])
            #expect(fault?.code == .loop, "\(address)")
        }
    }

    @Test func anotherServerOnTheSamePortIsNoLoop() async throws {
        let own = try await Listener("127.0.0.1")
        let other = try await Listener("127.0.0.2", port: own.port)
        #expect(
            try await fault(to: "127.0.0.2", own.port, addresses: ["127.0.0.2"], own: [own.address]) == nil)
        #expect(try await other.accepts(1))
        let third = try await Listener("127.0.0.1")
        #expect(try await fault(to: "127.0.0.1", third.port, addresses: ["127.0.0.1"], own: [own.address]) == nil)
    }
}
