// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import NIOCore
import NIOPosix
import Testing

@testable import CountersignAnswering
@testable import CountersignProxy

/// A client that leaves while the connection for its request is being made.
@Suite struct AbandonedConnectionTests {
    private struct StillOpen: Error {}

    @Test func aClientThatLeavesEndsTheHandshakeWithTheOrigin() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let loop = group.next()
        let accepted = loop.makePromise(of: (any Channel).self)
        let closed = loop.makePromise(of: Void.self)
        // It accepts the connection and never answers the handshake.
        let server = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                accepted.succeed(channel)
                channel.closeFuture.cascade(to: closed)
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let origin = Origin(scheme: .https, host: "127.0.0.1", port: UInt16(try #require(server.localAddress?.port)))
        let policy = try Bench.policy(sites: "", password: nil)
        loop.execute {
            do {
                let driver = NIOLoopBound(try Self.driver(to: origin, policy, loop), eventLoop: loop)
                driver.value.start()
                accepted.futureResult.hop(to: loop).whenSuccess { _ in driver.value.clientGone() }
            } catch {
                closed.fail(error)
            }
        }
        // Half the time that the handshake may take.
        loop.scheduleTask(in: .seconds(30)) { closed.fail(StillOpen()) }
        try await closed.futureResult.get()
        try await server.close()
    }

    private static func driver(to origin: Origin, _ policy: Policy, _ loop: any EventLoop) throws -> ExchangeDriver {
        var configuration = ProxyConfiguration()
        configuration.connector.handshake = .seconds(60)
        let shared = ProxyServices(
            configuration: configuration, policy: CurrentPolicy(policy), accessLog: nil, pseudonym: "csn-test",
            wallClock: { 1_800_000_000 })
        let services = LoopServices(shared: shared, loop: loop)
        let client = InMemoryClient()
        client.session.connected()
        return ExchangeDriver(
            client: client, session: client.session, services: services,
            head: try requestHead("GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
            route: services.route(to: origin, for: RouteClient(principal: Bench.uid)), path: Array("/x".utf8)[...],
            pin: nil)
    }
}
