// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// A provider that rotates refresh tokens accepts each of them once. The newest one must not be lost.
@Suite(.waiting) struct SignInRotationTests {
    private typealias Bench = SignInBearerTests.Bench

    /// Starts a request, and returns when the provider has received the refresh token.
    private func request(_ bench: Bench, through proxy: RunningProxy? = nil) throws -> ChildProcess {
        let proxy = proxy ?? bench.proxy
        let client = try ChildProcess(
            Tool.path("curl"),
            [
                "-q", "-sS", "-m", "100", "-o", "/dev/null", "-w", "%{http_code}\n", "--cacert", proxy.anchor,
                "-x", proxy.url, "\(bench.origin.url)/a/x",
            ], capture: bench.user.folder.file("client-\(proxy.port)"))
        let isRenewing = poll { bench.refreshes.isEmpty ? nil : true }
        try #require(isRenewing == true)
        return client
    }

    /// The client is gone, so that only the renewal keeps the proxy from ending.
    @Test func stoppingTheProxyStoresTheTokensThatTheProviderHasSent() throws {
        let bench = try Bench(lifetime: 0)
        try bench.provider.change(["token": ["t2"], "hold": ["refresh_token": 10]])
        let client = try request(bench)
        client.stop()
        bench.proxy.process.send(SIGTERM)
        #expect(bench.proxy.process.waitForExit() == 0, "\(bench.proxy.process.errorOutput)")
        let next = try bench.user.serve()
        #expect(try next.get("\(bench.origin.url)/a/y").status == 200, "\(next.process.errorOutput)")
        #expect(bench.sent.last == "Bearer t2" && bench.refreshes == ["POST /token refresh_token 200"])
    }

    @Test func aCommandThatEndsStoresTheTokensThatTheProviderHasSent() throws {
        let bench = try Bench(lifetime: 0)
        bench.proxy.process.send(SIGTERM)
        #expect(bench.proxy.process.waitForExit() == 0)
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
        _ = client.waitForExit()
        try bench.provider.change(["token": ["t2"]])
        #expect(try bench.get("/a/y").status == 200, "\(bench.proxy.process.errorOutput)")
        let refreshes = ["POST /token refresh_token 200", "POST /token refresh_token 200"]
        #expect(bench.refreshes == refreshes, "\(bench.provider.requests)")
    }

    /// Until they are stored, no process uses the refresh token that they replace.
    @Test func tokensThatCannotBeStoredAreKeptUntilTheyCan() throws {
        let bench = try Bench(lifetime: 0)
        try bench.provider.change(["token": ["t2"], "hold": ["refresh_token": 4]])
        let other = try bench.user.serve()
        let client = try request(bench)
        let lock = open("\(bench.user.home)/vault.lock", O_RDWR | O_CLOEXEC)
        try #require(flock(lock, LOCK_EX) == 0)
        defer { close(lock) }
        let isReported = poll { bench.proxy.process.errorOutput.contains("is lost if") ? true : nil }
        #expect(isReported == true, "\(bench.proxy.process.errorOutput)")
        #expect(client.waitForExit() == 0 && client.output == "401\n", "\(client.output)")
        let seen = try other.get("\(bench.origin.url)/a/y")
        #expect(seen.status == 401 && bench.refreshes.count == 1, "\(bench.refreshes)")
        let state = try bench.state
        #expect(state.contains("at risk until new tokens can be stored: another process is writing"), "\(state)")
        flock(lock, LOCK_UN)
        let recovered = try poll { try other.get("\(bench.origin.url)/a/z").status == 200 ? true : nil }
        #expect(recovered == true && bench.sent.last == "Bearer t2", "\(other.process.errorOutput)")
        #expect(bench.refreshes == ["POST /token refresh_token 200"])
        #expect(try bench.state.contains("valid until"))
    }

    /// Another process changes the vault's passphrase while the provider sends the tokens.
    @Test func tokensAreStoredInAVaultWithANewPassphrase() throws {
        let bench = try Bench(lifetime: 0)
        try bench.provider.change(["token": ["t2"], "hold": ["refresh_token": 15]])
        let client = try request(bench)
        let vault = try SealedVault(home: bench.user.home).open { throw HarnessError("the vault has a passphrase") }
        try vault.rekey(to: .passphrase(Secret(utf8: "canary-passphrase")))
        let isReported = poll { bench.proxy.process.errorOutput.contains("is lost if") ? true : nil }
        #expect(isReported == true, "\(bench.proxy.process.errorOutput)")
        _ = client.waitForExit()
        try bench.user.succeed("vault", "unlock", "--password-stdin", input: "canary-passphrase\n")
        let recovered = try poll { try bench.get("/a/y").status == 200 ? true : nil }
        #expect(recovered == true && bench.sent.last == "Bearer t2", "\(bench.proxy.process.errorOutput)")
        #expect(bench.refreshes == ["POST /token refresh_token 200"])
    }

    /// OAuth permits longer refresh tokens than the vault.
    @Test func tokensThatCanNeverBeStoredAreRevoked() throws {
        let bench = try Bench(lifetime: 0)
        try bench.provider.change(["token": ["t2"], "padding": 20_000])
        let seen = try bench.get()
        #expect(seen.status == 401 && seen.proxyStatus.contains("cannot be stored"), "\(seen.proxyStatus)")
        let state = try bench.state
        #expect(state.contains("ended: ") && state.contains("cannot be stored"), "\(state)")
        let revoked = bench.provider.requests.filter { $0.contains("/revoke") }
        #expect(revoked.first == "POST /revoke refresh_token 200", "\(bench.provider.requests)")
        // The lock is free.
        try bench.provider.change(["token": ["t3"]])
        try bench.enroll()
        let recovered = try poll { try bench.get("/a/y").status == 200 ? true : nil }
        #expect(recovered == true && bench.sent.last == "Bearer t3", "\(bench.proxy.process.errorOutput)")
    }

    /// The server, whose proxy the command uses, lives on and keeps the tokens.
    @Test func tokensOfACommandThatEndsAreNotLost() throws {
        let bench = try Bench(lifetime: 0)
        // Otherwise the command opens the vault itself.
        let vault = try SealedVault(home: bench.user.home).open { throw HarnessError("the vault has a passphrase") }
        try vault.rekey(to: .passphrase(Secret(utf8: "canary-passphrase")))
        try bench.user.succeed("vault", "unlock", "--password-stdin", input: "canary-passphrase\n")
        try bench.provider.change(["token": ["t2"], "hold": ["refresh_token": 4]])
        let script = """
            curl -q -sS -m 100 -o /dev/null "$1" > /dev/null 2>&1 &
            while ! grep -q 'is lost if' "$2"; do sleep 0.1; done
            """
        let command = try ChildProcess(
            try Countersign.executable,
            [
                "exec", "--home", bench.user.home, "--", "sh", "-c", script, "sh", "\(bench.origin.url)/a/x",
                bench.proxy.process.errorPath,
            ], environment: bench.user.environment, capture: bench.user.folder.file("exec"))
        let isRenewing = poll { bench.refreshes.isEmpty ? nil : true }
        try #require(isRenewing == true, "\(command.errorOutput)")
        let lock = open("\(bench.user.home)/vault.lock", O_RDWR | O_CLOEXEC)
        try #require(flock(lock, LOCK_EX) == 0)
        #expect(command.waitForExit() == 0, "\(command.errorOutput)")
        close(lock)
        let recovered = try poll { try bench.get("/a/y").status == 200 ? true : nil }
        #expect(recovered == true && bench.sent.last == "Bearer t2", "\(bench.proxy.process.errorOutput)")
        #expect(bench.refreshes == ["POST /token refresh_token 200"])
        #expect(!bench.proxy.process.errorOutput.contains("are lost"))
    }

    /// The command has ended; the server, which renews the token for it, keeps what it cannot store.
    @Test func tokensThatArePrintedAreNotLost() throws {
        let bench = try Bench(lifetime: 0)
        let vault = try SealedVault(home: bench.user.home).open { throw HarnessError("the vault has a passphrase") }
        try vault.rekey(to: .passphrase(Secret(utf8: "canary-passphrase")))
        try bench.user.succeed("vault", "unlock", "--password-stdin", input: "canary-passphrase\n")
        try bench.user.succeed("token", "allow", "work", "--yes")
        try bench.provider.change(["token": ["t2"], "hold": ["refresh_token": 4]])
        let command = try ChildProcess(
            try Countersign.executable, ["token", "work", "--home", bench.user.home],
            environment: bench.user.environment, capture: bench.user.folder.file("token"))
        let isRenewing = poll { bench.refreshes.isEmpty ? nil : true }
        try #require(isRenewing == true, "\(command.errorOutput)")
        let lock = open("\(bench.user.home)/vault.lock", O_RDWR | O_CLOEXEC)
        try #require(flock(lock, LOCK_EX) == 0)
        // It waits no longer than a request does.
        #expect(command.waitForExit() == 1, "\(command.errorOutput)")
        let isKept = ["its renewal goes on", "cannot be stored"].contains { command.errorOutput.contains($0) }
        #expect(isKept, "\(command.errorOutput)")
        close(lock)
        let recovered = try poll { try bench.get("/a/y").status == 200 ? true : nil }
        #expect(recovered == true && bench.sent.last == "Bearer t2", "\(bench.proxy.process.errorOutput)")
        #expect(try bench.user.succeed("token", "work") == "t2\n")
        #expect(bench.refreshes == ["POST /token refresh_token 200"])
    }

    /// The proxy, and not the provider, has ended the request for the metadata.
    @Test func stoppingTheProxyIsNoFailure() throws {
        let bench = try Bench(lifetime: 0)
        let path = "/.well-known/openid-configuration"
        try bench.provider.change(["fail": [path: "hang"]])
        let client = try ChildProcess(
            Tool.path("curl"),
            [
                "-q", "-sS", "-m", "100", "--cacert", bench.proxy.anchor, "-x", bench.proxy.url,
                "\(bench.origin.url)/a/x",
            ], capture: bench.user.folder.file("client"))
        let isAsking = poll { bench.provider.requests.last == "GET \(path) 0" ? true : nil }
        try #require(isAsking == true, "\(bench.provider.requests)")
        client.stop()
        bench.proxy.process.send(SIGTERM)
        #expect(bench.proxy.process.waitForExit() == 0)
        let output = bench.proxy.process.errorOutput
        #expect(!output.contains("cannot be renewed"), "\(output)")
        #expect(try !bench.state.contains("not renewed since"))
    }

    /// The origin calls the token invalid. Another process learns that too, instead of waiting for the provider.
    @Test func aRenewalKeepsNoOtherProcessFromItsAttempt() throws {
        let bench = try Bench(valid: ["t2"])
        let other = try bench.user.serve()
        try bench.provider.change(["token": ["t2"], "hold": ["refresh_token": 25]])
        let first = try request(bench)
        let second = try request(bench, through: other)
        let isTried = try poll { () throws -> Bool? in
            bench.sent.count { $0 == "Bearer t1" } == 2 ? true : nil
        }
        #expect(isTried == true, "\(bench.sent)")
        first.stop()
        second.stop()
    }

    /// The provider sends a new refresh token with an access token that Bearer cannot send.
    @Test func aRefreshTokenIsStoredEvenIfTheAccessTokenIsRefused() throws {
        let bench = try Bench(lifetime: 0, scopes: ["offline_access"])
        try bench.provider.change(["token": ["a,b", "t2"]])
        let seen = try bench.get()
        #expect(seen.status == 401 && seen.proxyStatus.contains("cannot be stored"), "\(seen.proxyStatus)")
        // Another process has only the stored tokens.
        bench.proxy.process.send(SIGTERM)
        #expect(bench.proxy.process.waitForExit() == 0)
        let next = try bench.user.serve()
        let recovered = try poll {
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
