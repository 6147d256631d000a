// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `enroll https://api.example/`: from the 401 of a site to its token, without a profile.
@Suite(.waiting) struct SiteSignInTests {
    private final class Bench: Sendable {
        let provider: SignInProvider
        let site: BearerOrigin
        let user: Countersign
        let browser: String

        init(provider control: [String: any Sendable], site own: [String: any Sendable] = [:]) throws {
            provider = try SignInProvider(["token": ["t1"]].merging(control) { _, new in new }, isTLS: true)
            site = try BearerOrigin(
                ["tokens": ["t1": "admin"], "metadata": true, "issuer": provider.issuer].merging(own) { _, new in new })
            user = try Countersign()
            browser = try user.folder.write(
                program: "browser",
                "#!/bin/sh\nexec curl -sSLk --noproxy '*' --resolve "
                    + "provider.test.localhost:\(provider.port):127.0.0.1 -o /dev/null \"$1\"\n")
        }

        func enroll(_ words: String...) throws -> CommandResult {
            try user.run(["enroll"] + words, environment: ["BROWSER": browser])
        }

        /// The client that the provider was asked to register.
        var registration: [String: any Sendable]? {
            TextFile.lines(provider.log).lazy.compactMap { line in
                let entry = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: any Sendable]
                return entry?["registration"] as? [String: any Sendable]
            }.first
        }
    }

    @Test func theProviderThatThePersonNamesIsAsked() throws {
        let bench = try Bench(provider: ["register": [:] as [String: String]])
        let done = try bench.enroll(bench.site.url + "/mcp", "--yes", "--issuer", bench.provider.issuer)
        #expect(done.status == 0, "\(done.said)")
        let asked = try #require(bench.registration)
        #expect(asked["token_endpoint_auth_method"] as? String == "none")
        #expect(asked["scope"] as? String == "admin audit openid offline_access")
        // The site's request without a token, and its metadata, came without a credential.
        #expect(bench.site.log.requests.allSatisfy { $0.authorization == nil })
        let proxy = try RunningProxy(bench.user, [])
        #expect(try proxy.get(bench.site.url + "/mcp").status == 200)
        // The client is registered already.
        let again = try bench.enroll("bearer.test.localhost", "--yes")
        #expect(again.status == 0, "\(again.said)")
        #expect(bench.provider.requests.count { $0.hasPrefix("POST /register") } == 1)
        let ended = try bench.user.run("unenroll", "bearer.test.localhost", "--no-sign-out")
        #expect(ended.status == 0, "\(ended.said)")
    }

    /// A site could send the person anywhere.
    @Test func noProviderIsFollowedBlindly() throws {
        let bench = try Bench(provider: ["register": [:] as [String: String]])
        let unnamed = try bench.enroll(bench.site.url, "--yes")
        #expect(
            unnamed.status == 1 && unnamed.said.contains("pass --issuer \(bench.provider.issuer)"), "\(unnamed.said)")
        let other = try bench.enroll(bench.site.url, "--yes", "--issuer", "https://login.example")
        #expect(other.status == 1 && other.said.contains("does not accept tokens of https://login.example"))
        #expect(bench.provider.requests.isEmpty, "\(bench.provider.requests)")
    }

    @Test func aClientOfOnesOwnIsUsed() throws {
        let bench = try Bench(provider: [:])
        let none = try bench.enroll(bench.site.url, "--yes", "--issuer", bench.provider.issuer)
        #expect(none.status == 1 && none.said.contains("does not register clients by itself"), "\(none.said)")
        #expect(none.said.contains("pass --client-id"))
        let done = try bench.enroll(
            bench.site.url, "--yes", "--issuer", bench.provider.issuer, "--client-id", SignInProvider.client)
        #expect(done.status == 0, "\(done.said)")
    }

    @Test(arguments: [
        (["client_id": ""], "\"client_id\" is not the identifier of a client"),
        (["token_endpoint_auth_method": "client_secret_basic"], "registered a client with a secret"),
    ])
    func aRegistrationThatIsOfNoUseIsRefused(answer: [String: String], text: String) throws {
        let bench = try Bench(provider: ["register": answer])
        let done = try bench.enroll(bench.site.url, "--yes", "--issuer", bench.provider.issuer)
        #expect(done.status == 1 && done.said.contains(text), "\(done.said)")
    }
}
