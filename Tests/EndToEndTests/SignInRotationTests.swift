// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// A provider that rotates refresh tokens accepts each of them once. The newest one must not be lost.
@Suite struct SignInRotationTests {
    private typealias Bench = SignInBearerTests.Bench

    /// Starts a request, and returns when the provider has received the refresh token.
    private func request(_ bench: Bench) throws -> ChildProcess {
        let client = try ChildProcess(
            Tool.path("curl"),
            [
                "-q", "-sS", "-m", "100", "-o", "/dev/null", "-w", "%{http_code}\n", "--cacert", bench.proxy.anchor,
                "-x", bench.proxy.url, "\(bench.origin.url)/a/x",
            ], capture: bench.user.folder.file("client"))
        let isRenewing = poll(seconds: 60) { bench.refreshes.isEmpty ? nil : true }
        try #require(isRenewing == true)
        return client
    }

    @Test func stoppingTheProxyStoresTheTokensThatTheProviderHasSent() throws {
        let bench = try Bench(lifetime: 0)
        try bench.provider.change(["token": ["t2"], "hold": ["refresh_token": 4]])
        let client = try request(bench)
        bench.proxy.process.send(SIGTERM)
        #expect(bench.proxy.process.waitForExit(seconds: 100) == 0, "\(bench.proxy.process.errorOutput)")
        client.stop()
        let next = try bench.user.serve()
        #expect(try next.get("\(bench.origin.url)/a/y").status == 200, "\(next.process.errorOutput)")
        #expect(bench.sent.last == "Bearer t2" && bench.refreshes == ["POST /token refresh_token 200"])
    }

    @Test func aCommandThatEndsStoresTheTokensThatTheProviderHasSent() throws {
        let bench = try Bench(lifetime: 0)
        bench.proxy.process.send(SIGTERM)
        #expect(bench.proxy.process.waitForExit(seconds: 100) == 0)
        try bench.provider.change(["token": ["t2"], "hold": ["refresh_token": 4]])
        let script = """
            curl -q -sS -m 100 -o /dev/null "$1" > /dev/null 2>&1 &
            while ! grep -q refresh_token "$2"; do sleep 0.1; done
            """
        let done = try bench.user.run(
            ["exec", "--", "sh", "-c", script, "sh", "\(bench.origin.url)/a/x", bench.provider.log], seconds: 100)
        #expect(done.status == 0, "\(done.said)")
        let next = try bench.user.serve()
        #expect(try next.get("\(bench.origin.url)/a/y").status == 200, "\(next.process.errorOutput)")
        #expect(bench.sent.last == "Bearer t2" && bench.refreshes == ["POST /token refresh_token 200"])
    }

    /// The provider has ended the former sign-in. Its tokens must not take the place of those of the new one.
    @Test func aRenewalDoesNotOverwriteANewSignIn() throws {
        let bench = try Bench(lifetime: 0)
        try bench.provider.change([
            "lifetime": 0, "token": ["t2", "t3"], "hold": ["refresh_token": 8], "single": true,
        ])
        let client = try request(bench)
        try bench.enroll()
        _ = client.waitForExit(seconds: 100)
        try bench.provider.change(["token": ["t2"]])
        #expect(try bench.get("/a/y").status == 200, "\(bench.proxy.process.errorOutput)")
        let refreshes = ["POST /token refresh_token 200", "POST /token refresh_token 200"]
        #expect(bench.refreshes == refreshes, "\(bench.provider.requests)")
    }

    /// The provider sends a new refresh token with an access token that Bearer cannot send.
    @Test func aRefreshTokenIsStoredEvenIfTheAccessTokenIsRefused() throws {
        let bench = try Bench(lifetime: 0, scopes: ["offline_access"])
        try bench.provider.change(["token": ["a,b", "t2"]])
        let seen = try bench.get()
        #expect(seen.status == 401 && seen.proxyStatus.contains("cannot be stored"), "\(seen.proxyStatus)")
        // Another process has only what is stored.
        bench.proxy.process.send(SIGTERM)
        #expect(bench.proxy.process.waitForExit(seconds: 100) == 0)
        let next = try bench.user.serve()
        let recovered = try poll(seconds: 90) {
            try next.get("\(bench.origin.url)/a/y").status == 200 ? true : nil
        }
        #expect(recovered == true && bench.sent.last == "Bearer t2", "\(next.process.errorOutput)")
        #expect(bench.refreshes.allSatisfy { $0.hasSuffix(" 200") })
    }

    @Test func aTokenThatLivesForAMinuteIsNotRenewedForEveryRequest() throws {
        let bench = try Bench(lifetime: 60)
        #expect(try bench.get().status == 200 && bench.get("/a/y").status == 200)
        #expect(bench.sent.last == "Bearer t1" && bench.refreshes.isEmpty, "\(bench.sent)")
    }
}
