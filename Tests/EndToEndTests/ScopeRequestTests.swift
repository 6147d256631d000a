// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// `serve --ask-scopes`: a person is asked for a scope that an access token lacks, while the request that has shown it
/// goes on.
@Suite struct ScopeRequestTests {
    private final class Bench: Sendable {
        let provider: SignInProvider
        let origin: BearerOrigin
        let user: Countersign
        let proxy: RunningProxy
        let opened: String

        /// The provider issues the tokens t1, t2, …, of which t1 does not have the scopes `admin` and `audit`.
        init(
            _ flags: [String] = ["--ask-scopes"],
            valid: [String: String] = ["t1": "openid", "t2": "openid admin audit"],
            origin control: [String: any Sendable] = [:], environment: [String: String] = [:],
            browser script: String = "exec curl -sSL --noproxy '*' -o /dev/null \"$1\""
        ) throws {
            provider = try SignInProvider(["token": ["t1", "t2", "t3"]])
            var control = control
            control["tokens"] = valid
            if control["issuer"] as? String == "own" { control["issuer"] = provider.issuer }
            origin = try BearerOrigin(control)
            user = try Countersign()
            opened = user.folder.file("opened")
            let profile = try user.folder.write(
                "profile.json", try provider.profile(["name": "work", "sites": [origin.url]]))
            let plain = try user.folder.write(
                "plain", "#!/bin/sh\nexec curl -sSL --noproxy '*' -o /dev/null \"$1\"\n")
            let browser = try user.folder.write("browser", "#!/bin/sh\necho \"$1\" >> '\(opened)'\n\(script)\n")
            for path in [plain, browser] { chmod(path, 0o755) }
            let done = try user.run(["enroll", profile, "--yes"], environment: ["BROWSER": plain], seconds: 120)
            guard done.status == 0 else { throw HarnessError(done.said) }
            proxy = try RunningProxy(
                user, flags, environment: ["BROWSER": browser].merging(environment) { _, new in new })
        }

        func get(_ path: String = "/admin") throws -> HTTPClient.Response { try proxy.get(origin.url + path) }

        var pages: [String] { TextFile.lines(opened) }

        func log(has text: String) -> Bool {
            poll(seconds: 60) { self.proxy.process.errorOutput.contains(text) ? true : nil } == true
        }
    }

    @Test func theResponseGoesOnAndTheNextRequestSucceeds() throws {
        let bench = try Bench()
        let first = try bench.get()
        #expect(first.status == 403 && first.proxyStatus.contains("you are being asked for it"), "\(first.said)")
        let seen = try poll(seconds: 60) { try bench.get().status == 200 ? true : nil }
        #expect(seen == true, "\(bench.proxy.process.errorOutput)")
        #expect(bench.pages.count == 1 && bench.pages.first?.contains("admin") == true, "\(bench.pages)")
        // Those that the token had before are asked for again.
        let scope = bench.pages.first.flatMap {
            URLComponents(string: $0)?.queryItems?.first { $0.name == "scope" }?.value
        }
        #expect(scope == "openid+offline_access+admin+audit")
        #expect(bench.log(has: "the access token of \"work\" has the scope admin audit now"))
        #expect(!bench.proxy.process.errorOutput.contains("t2"))
    }

    @Test func severalRequestsOpenOnePage() throws {
        let bench = try Bench(browser: "sleep 2; exec curl -sSL --noproxy '*' -o /dev/null \"$1\"")
        for _ in 0..<5 { #expect(try bench.get().status == 403) }
        #expect(try poll(seconds: 60) { try bench.get().status == 200 ? true : nil } == true)
        #expect(bench.pages.count == 1)
    }

    /// The token stays, and nobody is asked for the same scopes again.
    @Test func aPersonWhoDeclinesIsNotAskedAgain() throws {
        let bench = try Bench()
        try bench.provider.change(["error": "access_denied"])
        #expect(try bench.get().status == 403)
        #expect(bench.log(has: "the scope that"), "\(bench.proxy.process.errorOutput)")
        let again = try bench.get()
        #expect(again.status == 403 && again.proxyStatus.contains("`countersign enroll work --scope SCOPE`"))
        #expect(bench.pages.count == 1)
        #expect(try bench.get("/a").status == 200)
    }

    /// Otherwise the sites would get the token of somebody else.
    @Test func anotherPersonChangesNothing() throws {
        let bench = try Bench()
        try bench.provider.change(["subject": "another", "token": ["t2"]])
        #expect(try bench.get().status == 403)
        #expect(bench.log(has: "another person has signed in"), "\(bench.proxy.process.errorOutput)")
        #expect(bench.provider.requests.contains("POST /revoke access_token 200"))
        #expect(try bench.get("/a").status == 200)
        #expect(bench.origin.log.requests.allSatisfy { $0.authorization != "Bearer t2" })
    }

    @Test func nobodyIsAskedUnlessTheServerIsToldTo() throws {
        let bench = try Bench([])
        let seen = try bench.get()
        #expect(seen.status == 403 && seen.proxyStatus.contains("`countersign enroll work --scope SCOPE` asks for it"))
        #expect(bench.pages.isEmpty && bench.provider.requests.count { $0.hasPrefix("POST /token") } == 1)
    }

    @Test func aServiceAsksNobody() throws {
        let bench = try Bench(environment: ["NOTIFY_SOCKET": "@countersign-tests-none"])
        #expect(bench.proxy.process.errorOutput.contains("--ask-scopes has no effect"))
        #expect(try bench.get().status == 403 && bench.pages.isEmpty)
    }

    // MARK: Metadata of the resource (RFC 9728)

    @Test func theMetadataNamesTheScopesThatTheChallengeDoesNot() throws {
        let bench = try Bench(origin: ["metadata": true, "issuer": "own", "unnamed": true])
        #expect(try bench.get().status == 403)
        #expect(try poll(seconds: 60) { try bench.get().status == 200 ? true : nil } == true)
        #expect(bench.pages.count == 1 && bench.pages.first?.contains("audit") == true, "\(bench.pages)")
        // Without a token.
        let asked = bench.origin.log.requests.filter { $0.path?.hasPrefix("/.well-known/") == true }
        #expect(asked.count == 1 && asked.allSatisfy { $0.authorization == nil })
    }

    @Test func aSiteThatAcceptsAnotherProviderOpensNoPage() throws {
        let bench = try Bench(origin: ["metadata": true, "issuer": "https://other.corp.example"])
        #expect(try bench.get().status == 403)
        #expect(bench.log(has: "does not accept tokens of"), "\(bench.proxy.process.errorOutput)")
        #expect(bench.pages.isEmpty)
    }

    @Test func metadataElsewhereIsNotFetched() throws {
        let other = try BearerOrigin(["metadata": true])
        let bench = try Bench(origin: ["metadata": "\(other.url)/.well-known/oauth-protected-resource"])
        #expect(try bench.get().status == 403)
        // The challenge names the scopes itself.
        #expect(try poll(seconds: 60) { try bench.get().status == 200 ? true : nil } == true)
        #expect(other.log.requests.isEmpty && bench.log(has: "which is another origin"))
    }
}
