// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignTestOrigin
import CountersignURLSession
import Foundation
import FoundationNetworking
import Logging
import CountersignNIO
import CountersignServiceLifecycle
import ServiceLifecycle
import Testing

/// The code of the articles "Run the proxy in your app" and "Use URLSession".
struct RunTheProxyInYourAppCode {
    // MARK: The articles

    private func serve(home: URL, beside app: any Service, _ logger: Logger) async throws {
        let controller = try ChallengeController(home: home)
        let proxy = ChallengeProxy(controller)
        let group = ServiceGroup(
            services: [proxy.service, app], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        try await group.run()
    }

    private func start(_ proxy: ChallengeProxy) async throws -> (Task<Void, any Error>, ChallengeProxy.Address) {
        let running = Task { try await proxy.run() }
        let address = try await proxy.address  // http://127.0.0.1:40123
        return (running, address)
    }

    private func fetch(_ url: URL, through proxy: ChallengeProxy) async throws -> (Data, URLResponse) {
        let session = URLSession(configuration: try await .default.answering(through: proxy))
        let (data, response) = try await session.data(from: url)
        return (data, response)
    }

    // MARK: Tests

    /// Ends at once, and the group with it.
    private struct ShortApp: Service {
        func run() async throws {}
    }

    @Test func aGroupEndsWithItsFirstService() async throws {
        let home = try LibraryHome("")
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        await #expect(throws: ServiceGroupError.self) {
            try await serve(home: URL(filePath: home.path), beside: ShortApp(), logger)
        }
    }

    @Test func aTaskRunsTheProxyAndAURLSessionUsesIt() async throws {
        let origins = try LibraryOrigins.shared
        let home = try LibraryHome(origins.sites, anchors: [try TestPKI.shared.originAnchor])
        let proxy = ChallengeProxy(try home.controller())
        let (running, address) = try await start(proxy)
        #expect(address.description.hasPrefix("http://127.0.0.1:"))
        let (data, _) = try await fetch(#require(URL(string: "\(origins.ntlmURL)/file")), through: proxy)
        #expect(String(decoding: data, as: UTF8.self) == "a file\n")
        running.cancel()
        try await running.value
    }
}
