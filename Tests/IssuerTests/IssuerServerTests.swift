// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth
import CountersignTestOrigin
import NIOPosix
import Testing

@testable import CountersignIssuer

/// The issuer over http.
@Suite struct IssuerServerTests {
    /// The outcome of curl with these arguments, in which `{issuer}` is replaced by the issuer's address.
    private func curl(
        _ arguments: String..., intercept: IssuerServer.Interceptor? = nil
    ) async throws -> CommandResult {
        let settings = IssuerSettings(
            clientIdentifier: "client", redirects: [],
            account: .init(subject: "1", name: "jdoe", password: Secret(utf8: "x")), interaction: .automatic)
        let server = try await IssuerServer.start(
            settings, group: MultiThreadedEventLoopGroup.singleton, now: { 1000 }, intercept: intercept)
        let words = arguments.map { $0.split(separator: "{issuer}", omittingEmptySubsequences: false) }
            .map { $0.joined(separator: server.issuer.url) }
        let folder = try TemporaryFolder("issuer")
        let result = try Command.run(
            Tool.path("curl"), ["-q", "-sS", "-i", "--noproxy", "*", "--max-time", "60"] + words, in: folder)
        await server.stop()
        return result
    }

    @Test func theMetadataIsServed() async throws {
        let result = try await curl("{issuer}/.well-known/openid-configuration")
        #expect(result.output.hasPrefix("HTTP/1.1 200 OK\r\n"), "\(result.said)")
        #expect(result.output.contains("Content-Type: application/json\r\n"))
        #expect(result.output.contains("\"code_challenge_methods_supported\":[\"S256\"]"))
    }

    @Test func aFormIsRead() async throws {
        let result = try await curl("-d", "client_id=client&scope=openid", "{issuer}/device")
        #expect(result.output.contains("\"user_code\":\""), "\(result.said)")
        let chunked = try await curl(
            "-H", "Transfer-Encoding: chunked", "-d", "client_id=client&scope=openid", "{issuer}/device")
        #expect(chunked.output.contains("\"user_code\":\""), "\(chunked.said)")
    }

    @Test func aLongFormIsRefused() async throws {
        let long = String(repeating: "x", count: 70_000)
        let result = try await curl("-H", "Expect:", "-d", "client_id=client&scope=\(long)", "{issuer}/device")
        #expect(result.output.hasPrefix("HTTP/1.1 413 "), "\(result.said)")
    }

    /// A page of another site that resolves its name to this machine gets nothing.
    @Test func anotherHostIsRefused() async throws {
        let result = try await curl("-H", "Host: evil.example", "{issuer}/keys")
        #expect(result.output.hasPrefix("HTTP/1.1 421 "), "\(result.said)")
    }

    @Test func aResponseMayBeChangedOrWithheld() async throws {
        let changed = try await curl("{issuer}/keys") { request, respond in
            var response = respond()
            response.status = request.path == "/keys" && response.status == 200 ? 503 : 500
            return response
        }
        #expect(changed.output.hasPrefix("HTTP/1.1 503 "), "\(changed.said)")
        let withheld = try await curl("{issuer}/keys") { _, _ in nil }
        #expect(withheld.status == 52, "\(withheld.said)")
    }
}
