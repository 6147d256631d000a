// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// `serve --ask-scopes`: the server asks a person for a scope that an access token lacks, while the request that has
/// shown the lack goes on.
@Suite(.waiting) struct ScopeRequestTests {
    private final class Bench: Sendable {
        let provider: SignInProvider
        let origin: BearerOrigin
        let user: Countersign
        let proxy: RunningProxy
        let opened: String
        /// A browser with the option to wait waits for this file.
        let gate: String

        /// A browser in which the person signs in when the test says so.
        static let waits =
            """
            for _ in $(seq 600); do if [ -e "$gate" ]; then break; fi; sleep 0.1; done
            exec curl -sSL --noproxy '*' -o /dev/null "$1"
            """

        /// The provider issues the tokens t1, canary-second and t3; t1 does not have the scopes `admin` and `audit`.
        init(
            _ flags: [String] = ["--ask-scopes"],
            valid: [String: String] = ["t1": "openid", "canary-second": "openid admin audit"],
            origin control: [String: any Sendable] = [:], profile own: [String: any Sendable] = [:],
            sites: [String] = [], environment: [String: String] = [:],
            browser script: String = "exec curl -sSL --noproxy '*' -o /dev/null \"$1\""
        ) throws {
            provider = try SignInProvider(["token": ["t1", "canary-second", "t3"]])
            var control = control
            control["tokens"] = valid
            if control["issuer"] as? String == "own" { control["issuer"] = provider.issuer }
            origin = try BearerOrigin(control)
            user = try Countersign()
            opened = user.folder.file("opened")
            let fields: [String: any Sendable] = ["name": "work", "sites": [origin.url] + sites]
            let profile = try user.folder.write(
                "profile.json", try provider.profile(fields.merging(own) { _, new in new }))
            let plain = try user.folder.write(
                program: "plain", "#!/bin/sh\nexec curl -sSL --noproxy '*' -o /dev/null \"$1\"\n")
            gate = user.folder.file("gate")
            let browser = try user.folder.write(
                program: "browser", "#!/bin/sh\necho \"$1\" >> '\(opened)'\ngate='\(gate)'\n\(script)\n")
            let done = try user.run(["enroll", profile, "--yes"], environment: ["BROWSER": plain])
            guard done.status == 0 else { throw HarnessError(done.said) }
            proxy = try RunningProxy(
                user, flags, environment: ["BROWSER": browser].merging(environment) { _, new in new })
        }

        func get(_ path: String = "/admin") throws -> HTTPClient.Response { try proxy.get(origin.url + path) }

        var pages: [String] { TextFile.lines(opened) }

        /// The values of a parameter in the request that the last page has made.
        func asked(_ name: String) -> [String] {
            let items = pages.last.flatMap { URLComponents(string: $0)?.queryItems } ?? []
            return items.filter { $0.name == name }.compactMap(\.value)
        }

        /// The token that the site gets now.
        func tokenInUse() throws -> String? {
            _ = try get("/a")
            return origin.log.requests.last?.authorization
        }

        func log(has text: String) -> Bool {
            poll { self.proxy.process.errorOutput.contains(text) ? true : nil } == true
        }
    }

    @Test func theResponseGoesOnAndTheNextRequestSucceeds() throws {
        let bench = try Bench()
        let vault = try SealedVault(home: bench.user.home).open { throw HarnessError("there is a passphrase") }
        try vault.update { contents in
            guard var record = contents.signIns["work"] else { return }
            record.userAgent = ""
            try contents.updateSignIn(record)
        }
        let first = try bench.get()
        #expect(
            first.status == 403 && first.proxyStatus.contains("a page may open that asks you for it"), "\(first.said)")
        let seen = try poll { try bench.get().status == 200 ? true : nil }
        #expect(seen == true, "\(bench.proxy.process.errorOutput)")
        #expect(bench.pages.count == 1 && bench.pages.first?.contains("admin") == true, "\(bench.pages)")
        // The request repeats the token's previous scopes.
        #expect(bench.asked("scope") == ["openid+offline_access+admin+audit"])
        #expect(bench.log(has: "the access token of \"work\" has the scope admin audit now"))
        #expect(!bench.proxy.process.errorOutput.contains("canary-second"))
        try vault.reload()
        #expect(vault.contents.signIns["work"]?.userAgent == "system")
    }

    @Test func severalRequestsOpenOnePage() throws {
        let bench = try Bench(browser: "sleep 2; exec curl -sSL --noproxy '*' -o /dev/null \"$1\"")
        for _ in 0..<5 { #expect(try bench.get().status == 403) }
        #expect(try poll { try bench.get().status == 200 ? true : nil } == true)
        #expect(bench.pages.count == 1)
    }

    /// The token stays, and there is no further question about the same scopes.
    @Test func aPersonWhoDeclinesIsNotAskedAgain() throws {
        let bench = try Bench()
        try bench.provider.change(["error": "access_denied"])
        #expect(try bench.get().status == 403)
        #expect(bench.log(has: "the scope that"), "\(bench.proxy.process.errorOutput)")
        let again = try bench.get()
        #expect(
            again.status == 403
                && again.proxyStatus.contains("`countersign enroll work --scope admin --scope audit` asks for it"))
        #expect(bench.pages.count == 1)
        #expect(try bench.get("/a").status == 200)
    }

    /// Otherwise the sites would get another person's token.
    @Test func anotherPersonChangesNothing() throws {
        let bench = try Bench()
        try bench.provider.change(["subject": "another", "token": ["canary-second"]])
        #expect(try bench.get().status == 403)
        #expect(bench.log(has: "another person has signed in"), "\(bench.proxy.process.errorOutput)")
        #expect(bench.provider.requests.contains("POST /revoke access_token 200"))
        #expect(try bench.get("/a").status == 200)
        #expect(bench.origin.log.requests.allSatisfy { $0.authorization != "Bearer canary-second" })
    }

    @Test func nobodyIsAskedUnlessTheServerIsToldTo() throws {
        let bench = try Bench([])
        let seen = try bench.get()
        #expect(
            seen.status == 403
                && seen.proxyStatus.contains("`countersign enroll work --scope admin --scope audit` asks for it"))
        #expect(bench.pages.isEmpty && bench.provider.requests.count { $0.hasPrefix("POST /token") } == 1)
    }

    @Test func aServiceAsksNobody() throws {
        let bench = try Bench(environment: ["NOTIFY_SOCKET": "@countersign-tests-none"])
        #expect(bench.proxy.process.errorOutput.contains("--ask-scopes has no effect"))
        #expect(try bench.get().status == 403 && bench.pages.isEmpty)
    }

    // MARK: How often

    private static let valid = ["t1": "openid", "canary-second": "openid admin audit"]

    /// A page that opens again and again would train the person to agree.
    @Test func aSiteThatVariesItsScopesOpensOnePage() throws {
        let bench = try Bench(origin: ["scope": "first"])
        try bench.provider.change(["error": "access_denied"])
        #expect(try bench.get().status == 403)
        #expect(bench.log(has: "was not obtained"), "\(bench.proxy.process.errorOutput)")
        for scope in ["second", "third"] {
            try bench.origin.change(["tokens": Self.valid, "scope": scope])
            let seen = try bench.get()
            #expect(seen.proxyStatus.contains("requires \\\"\(scope)\\\""), "\(seen.proxyStatus)")
            #expect(seen.proxyStatus.contains("--scope \(scope)` asks for it"), "\(seen.proxyStatus)")
        }
        #expect(bench.pages.count == 1)
    }

    @Test func aScopeThatTheTokenHasOpensNoPage() throws {
        let bench = try Bench(origin: ["scope": "openid"])
        #expect(try bench.get().status == 403)
        #expect(bench.log(has: "has granted it before"), "\(bench.proxy.process.errorOutput)")
        #expect(bench.pages.isEmpty)
    }

    // MARK: What stays unchanged

    /// The list plays no part in this. The stored tokens must not be revoked at the provider, either.
    @Test func theTokensAreStoredThoughAListIsFaulty() throws {
        let bench = try Bench()
        try bench.user.folder.write("home/AllowedSites/faulty.sites", "git.corp.example answer=nonsense\n")
        #expect(try bench.get().status == 403)
        #expect(bench.log(has: "has the scope admin audit now"), "\(bench.proxy.process.errorOutput)")
        #expect(bench.provider.requests.allSatisfy { !$0.contains("/revoke") }, "\(bench.provider.requests)")
        #expect(try poll { try bench.get().status == 200 ? true : nil } == true)
    }

    /// A site decides when the page opens, and must not decide that it and others are listed again.
    @Test func aLineThatThePersonHasRemovedStaysRemoved() throws {
        let bench = try Bench(sites: ["https://second.corp.example"])
        let list = "home/AllowedSites/signed-in.work.sites"
        let lines = TextFile.lines(bench.user.folder.file(list))
        let edited = lines.filter { !$0.contains("second.corp.example") }
        try #require(edited.count == lines.count - 1)
        try bench.user.folder.write(list, edited.map { "\($0)\n" }.joined())
        #expect(try bench.get().status == 403)
        #expect(try poll { try bench.get().status == 200 ? true : nil } == true)
        #expect(TextFile.lines(bench.user.folder.file(list)) == edited)
    }

    /// Without an ID token, a browser that is signed in with another account would go unnoticed.
    @Test func nobodyIsAskedIfTheProviderDoesNotSayWhoSignsIn() throws {
        let bench = try Bench(profile: ["scopes": ["offline_access"]])
        #expect(try bench.get().status == 403)
        #expect(bench.log(has: "does not ask for the scope openid"), "\(bench.proxy.process.errorOutput)")
        #expect(bench.pages.isEmpty)
    }

    /// A token that lacks a scope of the one before, and one that cannot be renewed.
    @Test(arguments: [
        ["scope": "openid admin audit"] as [String: any Sendable], ["refresh": false],
        ["scope": "openid offline_access"],
    ])
    func aTokenThatCanDoLessChangesNothing(control: [String: any Sendable]) throws {
        let bench = try Bench()
        try bench.provider.change(control.merging(["token": ["canary-second"]]) { old, _ in old })
        #expect(try bench.get().status == 403)
        #expect(bench.log(has: "nothing was changed"), "\(bench.proxy.process.errorOutput)")
        #expect(try bench.tokenInUse() == "Bearer t1")
        // The provider may end the sign-in with one of its tokens.
        #expect(bench.provider.requests.allSatisfy { !$0.contains("/revoke") }, "\(bench.provider.requests)")
    }

    /// The metadata names a resource that is none of the profile's (RFC 8707): the token is for this site alone.
    @Test func theTokenIsForTheResourceOfTheMetadata() throws {
        let resource = "https://api.corp.example/"
        let bench = try Bench(origin: ["metadata": true, "issuer": "own"], profile: ["resources": [resource]])
        #expect(try bench.get().status == 403)
        #expect(try poll { try bench.get().status == 200 ? true : nil } == true)
        #expect(bench.asked("resource") == [resource, bench.origin.url])
        let vault = try SealedVault(home: bench.user.home).open { throw HarnessError("there is a passphrase") }
        #expect(vault.contents.tokens["work"]?.token == Secret(utf8: "t1"))
        #expect(vault.contents.signIns["work"]?.siteTokens.map(\.resource) == [bench.origin.url])
    }

    /// Another process is about to change the sign-in when the tokens arrive.
    @Test func aSignInThatWasRemovedMeanwhileStaysRemoved() throws {
        let bench = try Bench()
        let lock = open(bench.user.folder.file("home/run/refresh-sign-in-work.lock"), O_RDWR | O_CREAT, 0o600)
        try #require(lock >= 0 && flock(lock, LOCK_EX) == 0)
        defer { close(lock) }
        #expect(try bench.get().status == 403)
        let isIssued = poll {
            bench.provider.requests.count { $0.hasPrefix("POST /token") } == 2 ? true : nil
        }
        try #require(isIssued == true, "\(bench.proxy.process.errorOutput)")
        let vault = try SealedVault(home: bench.user.home).open { throw HarnessError("there is a passphrase") }
        try vault.update { _ = $0.removeSignIn(named: "work") }
        flock(lock, LOCK_UN)
        #expect(bench.log(has: "was changed meanwhile"), "\(bench.proxy.process.errorOutput)")
        try vault.reload()
        #expect(vault.contents.signIns.isEmpty && vault.contents.tokens.isEmpty)
    }

    /// The page stays open, without a redirect.
    @Test func aServerStopsWhileAPageIsOpen() throws {
        let bench = try Bench(browser: Bench.waits)
        #expect(try bench.get().status == 403)
        #expect(poll { bench.pages.isEmpty ? nil : true } == true, "\(bench.proxy.process.errorOutput)")
        bench.proxy.process.send(SIGTERM)
        #expect(bench.proxy.process.waitForExit() == 0)
        #expect(!bench.proxy.process.errorOutput.contains("was not obtained"), "\(bench.proxy.process.errorOutput)")
        try bench.user.folder.write("gate", "")
    }

    // MARK: Metadata of the resource (RFC 9728)

    @Test func theMetadataNamesTheScopesThatTheChallengeDoesNot() throws {
        let bench = try Bench(origin: ["metadata": true, "issuer": "own", "unnamed": true])
        #expect(try bench.get().status == 403)
        #expect(try poll { try bench.get().status == 200 ? true : nil } == true)
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
        #expect(try poll { try bench.get().status == 200 ? true : nil } == true)
        #expect(other.log.requests.isEmpty && bench.log(has: "which is another origin"))
    }
}
