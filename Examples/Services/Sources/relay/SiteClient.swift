// SPDX-License-Identifier: Apache-2.0

import AsyncHTTPClient
import Countersign
import CountersignNIO
import NIOCore
import NIOSSL
import ServiceLifecycle

/// Sends requests through a proxy of this process, with AsyncHTTPClient.
actor SiteClient: Service {
    private let proxy: ChallengeProxy
    private var client: HTTPClient?

    init(through proxy: ChallengeProxy) { self.proxy = proxy }

    /// Shuts the client down with the group, after the services that use it.
    func run() async throws {
        try await gracefulShutdown()
        try await client?.shutdown()
    }

    func get(_ url: String) async throws -> (status: Int, body: ByteBuffer) {
        var request = HTTPClientRequest(url: url)
        request.headers.add(name: "User-Agent", value: "relay")
        let response = try await connected().execute(request, timeout: .seconds(60))
        return (Int(response.status.code), try await response.body.collect(upTo: 1 << 20))
    }

    /// Creates the client when the proxy listens.
    private func connected() async throws -> HTTPClient {
        let address = try await proxy.address
        if let client { return client }
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(proxy.trustBundlePath)
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
        configuration.proxy = .server(host: address.host, port: address.port)
        let new = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        client = new
        return new
    }
}
