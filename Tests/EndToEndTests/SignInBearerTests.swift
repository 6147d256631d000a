// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// Bearer challenges are answered with the access token of a sign-in, which is renewed when necessary.
@Suite(.waiting) struct SignInBearerTests {
    struct Bench {
        let provider: SignInProvider
        let origin: BearerOrigin
        let user: Countersign
        let proxy: RunningProxy
        private let profile: String
        private let browser: String

        /// The provider issues the tokens t1, t2, …; the origin accepts those in `valid`.
        init(
            lifetime: Int = 3600, valid: [String] = ["t1", "t2", "t3"],
            scopes: [String] = ["openid", "offline_access"], expiringIn seconds: Int64? = nil,
            hold: Int = 0
        ) throws {
            provider = try SignInProvider(["lifetime": lifetime, "token": ["t1", "t2", "t3"]])
            origin = try BearerOrigin(["tokens": Dictionary(uniqueKeysWithValues: valid.map { ($0, "valid") })])
            user = try Countersign()
            profile = try user.folder.write(
                "profile.json", try provider.profile(["name": "work", "sites": [origin.url], "scopes": scopes]))
            browser = try user.folder.write(
                program: "browser", "#!/bin/sh\nexec curl -sSL --noproxy '*' -o /dev/null \"$1\"\n")
            try Self.enroll([profile], browser, user)
            if let seconds { try Self.age(user, secondsLeft: seconds) }
            // The next tokens live longer, and the provider takes `hold` seconds for them. The proxy may ask at once.
            try provider.change(["token": ["t2", "t3"], "hold": ["refresh_token": hold]])
            proxy = try user.serve()
        }

        /// Makes the access token an hour old.
        private static func age(_ user: Countersign, secondsLeft: Int64) throws {
            let vault = try SealedVault(home: user.home).open { throw HarnessError("the vault has a passphrase") }
            try vault.update { contents in
                for var record in contents.signIns.values {
                    let now = Int64(Date().timeIntervalSince1970)
                    (record.obtained, record.expires) = (now - 3600, now + secondsLeft)
                    try contents.updateSignIn(record)
                }
            }
        }

        /// The arguments are those of `enroll`, by default the profile.
        func enroll(_ arguments: [String]? = nil) throws {
            try Self.enroll(arguments ?? [profile], browser, user)
        }

        private static func enroll(_ arguments: [String], _ browser: String, _ user: Countersign) throws {
            let done = try user.run(
                ["enroll"] + arguments + ["--yes"], environment: ["BROWSER": browser])
            guard done.status == 0 else { throw HarnessError("enroll: \(done.said)") }
        }

        func get(_ path: String = "/a/x") throws -> HTTPClient.Response { try proxy.get(origin.url + path) }

        /// The `Authorization` of each request that the origin has received.
        var sent: [String?] { origin.log.requests.map(\.authorization) }
        var refreshes: [String] { provider.requests.filter { $0.contains("refresh_token") && $0.contains("/token") } }

        var state: String {
            get throws { try user.run("status", "--no-header").output }
        }
    }

    /// The server notices the change at once, not only a second later.
    @Test func theTokenIsInEffectWhenTheCommandEnds() throws {
        let bench = try Bench()
        #expect(try bench.user.run("unenroll", "work").status == 0)
        #expect(try poll { try bench.get().status == 200 ? nil : true } == true)
        try bench.enroll()
        #expect(try bench.get().status == 200 && bench.sent.last == "Bearer t2")
    }

    /// `unenroll` was interrupted.
    @Test func noTokenOfASignInThatIsBeingRemovedIsSent() throws {
        let bench = try Bench()
        let vault = try SealedVault(home: bench.user.home).open { throw HarnessError("the vault has a passphrase") }
        try vault.update { contents in
            guard var record = contents.signIns["work"] else { return }
            record.ended = "signing out was not completed"
            try contents.updateSignIn(record)
        }
        let isRefused = try poll { () throws -> Bool? in
            let seen = try bench.get()
            return seen.status == 401 && seen.proxyStatus.contains("signing out was not completed") ? true : nil
        }
        #expect(isRefused == true, "\(bench.sent)")
        let count = bench.sent.count
        #expect(try bench.get().status == 401 && bench.sent.dropFirst(count).allSatisfy { $0 == nil })
        #expect(bench.refreshes.isEmpty)
    }

    @Test func theAccessTokenAnswersAtTheSitesOfTheProfile() throws {
        let bench = try Bench()
        #expect(try bench.get().status == 200 && bench.get("/a/y").status == 200)
        #expect(bench.sent == [nil, "Bearer t1", "Bearer t1"] && bench.refreshes.isEmpty)
        let logged = try bench.proxy.logged(site: bench.origin.url, atLeast: 4).filter { $0.method == "GET" }
        #expect(logged.allSatisfy { $0.credential == "work" && $0.challenge == "bearer" })
    }

    @Test func anExpiredTokenIsRenewedBeforeItIsSent() throws {
        let bench = try Bench(lifetime: 0)
        let seen = try bench.get()
        #expect(seen.status == 200, "\(seen.said)\(bench.proxy.process.errorOutput)")
        #expect(bench.sent == [nil, "Bearer t2"] && bench.refreshes == ["POST /token refresh_token 200"])
        #expect(try bench.get("/a/y").status == 200)
        #expect(bench.sent.last == "Bearer t2" && bench.refreshes.count == 1)
    }

    /// A token that was accepted before is not sent ahead once it has expired.
    @Test func aTokenThatExpiresIsNotSentAhead() throws {
        let bench = try Bench(lifetime: 20)
        try bench.provider.change(["fail": ["/token": 503]])
        #expect(try bench.get().status == 200)
        #expect(bench.sent == [nil, "Bearer t1"])
        let hasExpired = try poll { try bench.get("/a/y").status == 401 ? true : nil }
        let last = try #require(bench.sent.last)
        #expect(hasExpired == true && last == nil, "\(bench.sent)")
    }

    @Test func aTokenIsRenewedBeforeItExpires() throws {
        let bench = try Bench(lifetime: 40)
        let isRenewed = poll {
            bench.proxy.process.errorOutput.contains("renewed the access token of \"work\"") ? true : nil
        }
        #expect(isRenewed == true && bench.origin.log.requests.isEmpty, "\(bench.proxy.process.errorOutput)")
        #expect(try bench.get().status == 200)
        #expect(bench.sent == [nil, "Bearer t2"] && bench.refreshes == ["POST /token refresh_token 200"])
    }

    @Test func aSlowProviderDelaysNoRequestWhoseTokenIsValid() throws {
        let bench = try Bench(expiringIn: 58, hold: 25)
        #expect(try bench.get().status == 200)
        #expect(bench.sent == [nil, "Bearer t1"], "\(bench.sent)")
        let isRenewed = try poll { () throws -> Bool? in
            try bench.get("/a/y").status == 200 && bench.sent.last == "Bearer t2" ? true : nil
        }
        #expect(isRenewed == true && bench.refreshes == ["POST /token refresh_token 200"])
    }

    /// The renewal goes on, and the next request has its result.
    @Test func anExpiredTokenIsAwaitedForALimitedTime() throws {
        let bench = try Bench(lifetime: 0)
        try bench.provider.change(["token": ["t2"], "hold": ["refresh_token": 28]])
        let seen = try bench.get()
        #expect(seen.status == 401 && bench.sent == [nil], "\(bench.sent)")
        let reason = "no new access token of \\\"work\\\" after 20 seconds"
        #expect(seen.proxyStatus.contains(reason), "\(seen.proxyStatus)")
        let recovered = try poll { try bench.get("/a/y").status == 200 ? true : nil }
        #expect(recovered == true && bench.sent.last == "Bearer t2" && bench.refreshes.count == 1)
    }

    /// Another process knows that the token was renewed a moment ago.
    @Test func aRenewalThatDidNotHelpIsNotRepeatedByAnotherProcess() throws {
        let bench = try Bench(valid: [])
        for _ in 0..<2 { #expect(try bench.get().status == 401) }
        let other = try bench.user.serve()
        for path in ["x", "y"] { #expect(try other.get("\(bench.origin.url)/a/\(path)").status == 401) }
        #expect(bench.refreshes.count == 1, "\(bench.refreshes)")
    }

    @Test func aTokenThatTheOriginCallsInvalidIsRenewedOnce() throws {
        let bench = try Bench(valid: ["t2"])
        #expect(try bench.get().status == 200)
        #expect(bench.sent == [nil, "Bearer t1", nil, "Bearer t2"])
        #expect(try bench.get("/a/y").status == 200)
        #expect(bench.sent.last == "Bearer t2" && bench.refreshes.count == 1)
    }

    /// The breaker stops a renewed token that is not valid either.
    @Test func tokensThatAreNeverValidAreNotRenewedWithoutEnd() throws {
        let bench = try Bench(valid: [])
        for _ in 0..<4 { #expect(try bench.get().status == 401) }
        #expect(bench.refreshes.count == 1)
        #expect(bench.sent.compactMap(\.self) == ["Bearer t1", "Bearer t2"], "\(bench.sent)")
    }

    @Test func anOutageDiscardsNothing() throws {
        let bench = try Bench(lifetime: 0)
        try bench.provider.change(["fail": ["/token": 503], "token": ["t2"]])
        let seen = try bench.get()
        #expect(seen.status == 401 && bench.sent == [nil], "\(seen.said)")
        #expect(seen.proxyStatus.contains("cannot be renewed"), "\(seen.proxyStatus)")
        #expect(try bench.state.contains("not renewed since"))
        try bench.provider.change(["token": ["t2"]])
        let recovered = try poll { try bench.get().status == 200 ? true : nil }
        #expect(recovered == true && bench.sent.last == "Bearer t2")
    }

    @Test func onlyInvalidGrantEndsTheSignIn() throws {
        let bench = try Bench(lifetime: 0)
        try bench.provider.change(["error": "invalid_grant"])
        let seen = try bench.get()
        #expect(seen.status == 401 && seen.proxyStatus.contains("countersign enroll"), "\(seen.proxyStatus)")
        _ = try bench.get()
        #expect(bench.refreshes.count == 1)
        let status = try bench.user.run("status", "--no-header")
        #expect(status.status == 1 && status.output.contains("ended: "), "\(status.said)")
        #expect(bench.proxy.process.errorOutput.contains("the sign-in \"work\" has ended"))
    }

    /// Microsoft's directory gives the reason as a number.
    @Test func theNumberOfAnErrorIsExplained() throws {
        let bench = try Bench(lifetime: 0)
        let text = "AADSTS700082: The refresh token has expired due to inactivity."
        try bench.provider.change(["error": "invalid_grant", "description": text])
        let seen = try bench.get()
        #expect(seen.proxyStatus.contains("because it was not used for a long time; sign in"), "\(seen.proxyStatus)")
        let status = try bench.user.run("status", "--no-header")
        #expect(status.output.contains("AADSTS700082") && status.output.contains("time: sign in again"))
    }

    /// The provider ends a sign-in whose refresh token is used twice.
    @Test func processesThatNeedATokenAtOnceRenewItOnce() throws {
        let bench = try Bench(lifetime: 0)
        let others = try (0..<2).map { _ in try bench.user.serve() }
        let urls = ([bench.proxy] + others).map(\.url)
        let script = """
            import subprocess, sys
            site, anchor, *proxies = sys.argv[1:]
            run = lambda proxy, n: subprocess.Popen(
                ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} ", "--cacert", anchor, "-x", proxy,
                 f"{site}/a/{n}"])
            for child in [run(proxy, n) for n in range(6) for proxy in proxies]: child.wait()
            """
        let done = try Command.run(
            Tool.path("python3"), ["-c", script, bench.origin.url, bench.proxy.anchor] + urls, in: TemporaryFolder())
        #expect(done.output == String(repeating: "200 ", count: 18), "\(done.said)")
        #expect(bench.refreshes == ["POST /token refresh_token 200"])
        #expect(bench.sent.compactMap(\.self).allSatisfy { $0 == "Bearer t2" })
    }

    @Test func noTokenIsShownOrLogged() throws {
        let bench = try Bench(lifetime: 0)
        try bench.provider.change([:])
        try bench.origin.change(["tokens": [String: String]()])
        _ = try bench.get()
        let texts = [
            bench.proxy.process.errorOutput, TextFile.text(bench.proxy.accessLog),
            try bench.user.run("status", "--json").output,
            try bench.user.run("credential", "list", "--json").output,
        ]
        #expect(texts.allSatisfy { !$0.contains("canary") && !$0.contains("t1") } && !bench.refreshes.isEmpty)
    }

    @Test func aMissingScopeIsNamedWithTheCommandThatAsksForIt() throws {
        let bench = try Bench()
        try bench.origin.change(["tokens": ["t1": "openid", "t2": "openid admin audit"]])
        let seen = try bench.get("/admin")
        #expect(seen.status == 403 && bench.sent == [nil, "Bearer t1"], "\(seen.said)")
        #expect(
            seen.proxyStatus.contains("`countersign enroll work --scope admin --scope audit` asks for it"),
            "\(seen.proxyStatus)")
        let fetch = ["exec", "--", "curl", "-sSf", "\(bench.origin.url)/admin"]
        let lacking = try bench.user.run(fetch)
        #expect(lacking.status != 0, "\(lacking.said)")
        #expect(lacking.error.contains(" work --scope admin --scope audit`"), "\(lacking.said)")

        try bench.enroll(["work", "--scope", "admin", "--scope", "audit"])
        let granted = try bench.user.run(fetch)
        #expect(granted.status == 0 && bench.sent.last == "Bearer t2", "\(granted.said)")
        let report = try bench.user.run("status", "--json").output
        #expect(report.contains("openid offline_access admin audit"), "\(report)")
    }
}
