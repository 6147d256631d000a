// SPDX-License-Identifier: Apache-2.0

import CountersignChannelTLS
import NIOCore
import NIOPosix

/// Serves a ``DemoSite`` on a free loopback port.
package struct DemoServer: Sendable {
    package let site: DemoSite
    package let port: Int
    private let channel: any Channel

    package var url: String { "\(origin)/" }
    package var origin: String { "https://\(site.host):\(port)" }

    package static func start(_ site: DemoSite, group: any EventLoopGroup) async throws -> DemoServer {
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 128)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(TLSHandler(server: site.tls))
                    try channel.pipeline.syncOperations.addHandler(DemoConnection(site: site))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return DemoServer(site: site, port: channel.localAddress?.port ?? 0, channel: channel)
    }

    package func stop() async {
        try? await channel.close().get()
    }
}
