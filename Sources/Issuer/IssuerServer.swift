// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// Serves an ``LocalIssuer`` over plain http on a free loopback port.
package struct IssuerServer: Sendable {
    /// Sees each request before the issuer, whose response it can ask for once, and returns the response to send, or
    /// nil to close the connection without one. Is cancelled when the client closes the connection.
    package typealias Interceptor =
        @Sendable (IssuerRequest, _ respond: @Sendable () -> IssuerResponse) async -> IssuerResponse?

    package let issuer: LocalIssuer
    package let port: Int
    private let channel: any Channel

    /// `now` is in seconds since 1970.
    package static func start(
        _ settings: IssuerSettings, group: any EventLoopGroup, now: @escaping @Sendable () -> Int64,
        intercept: Interceptor? = nil
    ) async throws -> IssuerServer {
        // The issuer's identifier contains the port, so the issuer is created after the socket.
        let issuer = NIOLockedValueBox<LocalIssuer?>(nil)
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 128)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let issuer = issuer.withLockedValue({ $0 }) else { throw ChannelError.ioOnClosedChannel }
                    try channel.pipeline.syncOperations.addHandler(
                        IssuerConnection(issuer: issuer, now: now, intercept: intercept))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = channel.localAddress?.port ?? 0
        do {
            let made = try LocalIssuer(url: "http://127.0.0.1:\(port)", settings)
            issuer.withLockedValue { $0 = made }
            return IssuerServer(issuer: made, port: port, channel: channel)
        } catch {
            try? await channel.close().get()
            throw error
        }
    }

    package func stop() async {
        try? await channel.close().get()
    }
}
