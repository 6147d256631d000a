// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// A site that requires more of an access token than scopes: claims, or a stronger or more recent sign-in (RFC 9470).
@Suite(.waiting) struct StepUpTests {
    private final class Bench: Sendable {
        let provider: SignInProvider
        /// It requires something for /pay.
        let payroll: BearerOrigin
        let wiki: BearerOrigin
        let user: Countersign
        let proxy: RunningProxy
        let opened: String

        static let claims = #"{"access_token":{"acrs":{"essential":true,"value":"c1"}}}"#
        static let browser = "exec curl -sSL --noproxy '*' -o /dev/null \"$1\""

        /// The provider issues the tokens t1, canary-second and t3. The last two suffice for /pay.
        init(_ flags: [String] = [], demand: [String: any Sendable], provider control: [String: any Sendable] = [:])
            throws
        {
            provider = try SignInProvider(
                ["token": ["t1", "canary-second", "t3"]].merging(control) { _, new in new })
            let valid = ["t1": "openid", "canary-second": "openid", "t3": "openid"]
            let stepUp = demand.merging(["tokens": ["canary-second", "t3"]]) { old, _ in old }
            payroll = try BearerOrigin(["tokens": valid, "step_up": ["/pay": stepUp]])
            wiki = try BearerOrigin(["tokens": valid])
            user = try Countersign()
            opened = user.folder.file("opened")
            let profile = try user.folder.write(
                "profile.json", try provider.profile(["name": "work", "sites": [payroll.url, wiki.url]]))
            let program = try user.folder.write(
                program: "browser", "#!/bin/sh\necho \"$1\" >> '\(opened)'\n\(Self.browser)\n")
            let done = try user.run(["enroll", profile, "--yes"], environment: ["BROWSER": program])
            guard done.status == 0 else { throw HarnessError(done.said) }
            proxy = try RunningProxy(user, flags, environment: ["BROWSER": program])
        }

        func pay() throws -> HTTPClient.Response { try proxy.get(payroll.url + "/pay") }

        /// Of the pages after the first sign-in.
        var pages: [String] { Array(TextFile.lines(opened).dropFirst()) }

        func asked(_ name: String) -> [String] {
            let items = pages.last.flatMap { URLComponents(string: $0)?.queryItems } ?? []
            return items.filter { $0.name == name }.compactMap { $0.value?.replacingOccurrences(of: "+", with: " ") }
        }

        /// The token that a site gets.
        func token(at origin: BearerOrigin, _ path: String = "/a") throws -> String? {
            _ = try proxy.get(origin.url + path)
            return origin.log.requests.last?.authorization
        }

        func log(has text: String) -> Bool {
            poll { self.proxy.process.errorOutput.contains(text) ? true : nil } == true
        }

        /// Lets the token for one site expire.
        func expire() throws {
            let vault = try SealedVault(home: user.home).open { throw HarnessError("there is a passphrase") }
            try vault.update { contents in
                guard var record = contents.signIns["work"], let token = record.siteTokens.first else { return }
                record.siteTokens = [
                    SiteTokenRecord(
                        host: token.host, port: token.port, stepUp: token.stepUp, access: token.access, expires: 1,
                        obtained: 1)
                ]
                try contents.updateSignIn(record)
            }
        }

        func enroll(_ options: [String]) throws -> CommandResult {
            try user.run(
                ["enroll", "work", "--yes"] + options, environment: ["BROWSER": user.folder.file("browser")],
                seconds: 120)
        }
    }

    private static let claims: [String: any Sendable] = [
        "error": "insufficient_claims", "claims": Data(Bench.claims.utf8).base64EncodedString(),
    ]
    private static let level: [String: any Sendable] = [
        "error": "insufficient_user_authentication", "acr_values": "phr phrh", "max_age": "300",
    ]

    /// The refresh token suffices, the client waits, and nobody is asked.
    @Test func claimsAreObtainedWithoutAPerson() throws {
        let bench = try Bench(demand: Self.claims)
        let seen = try bench.pay()
        #expect(seen.status == 200, "\(seen.said) \(bench.proxy.process.errorOutput)")
        #expect(bench.pages.isEmpty)
        #expect(bench.provider.tokenParameters.last?.claims == Bench.claims)
        // The other site keeps the token of the sign-in.
        #expect(try bench.token(at: bench.wiki) == "Bearer t1")
        #expect(try bench.token(at: bench.payroll) == "Bearer canary-second")
        #expect(bench.provider.requests.count { $0.hasPrefix("POST /token refresh_token") } == 1)
        #expect(!bench.proxy.process.errorOutput.contains("canary-second"))
    }

    /// The provider is asked once, and the client is told the command.
    @Test func claimsThatTheProviderDoesNotGiveAreAskedForOnce() throws {
        let bench = try Bench(demand: Self.claims)
        try bench.provider.change(["error": "interaction_required"])
        for _ in 0..<3 {
            let seen = try bench.pay()
            #expect(seen.status == 401, "\(seen.said)")
            let command = "countersign enroll work --claims \(Base64URL.encode(Array(Bench.claims.utf8))) --site "
            #expect(seen.proxyStatus.contains(command), "\(seen.proxyStatus)")
        }
        #expect(bench.provider.requests.count { $0.hasPrefix("POST /token refresh_token") } == 1)
        #expect(try bench.token(at: bench.wiki) == "Bearer t1")
    }

    @Test func aStrongerSignInIsAskedFor() throws {
        let bench = try Bench(["--ask-scopes"], demand: Self.level, provider: ["acr": "phrh", "age": 10])
        let first = try bench.pay()
        #expect(first.status == 401 && first.proxyStatus.contains("a page may open"), "\(first.said)")
        let seen = try poll { try bench.pay().status == 200 ? true : nil }
        #expect(seen == true, "\(bench.proxy.process.errorOutput)")
        #expect(bench.pages.count == 1)
        #expect(bench.asked("acr_values") == ["phr phrh"] && bench.asked("max_age") == ["300"], "\(bench.pages)")
        #expect(try bench.token(at: bench.wiki) == "Bearer t1")
        #expect(bench.log(has: "has an access token for \(bench.payroll.url) alone now"))
    }

    /// RFC 9470 §5: a provider that ignores the level is noticed before the token is used.
    @Test(arguments: [["acr": "pwd", "age": 10] as [String: any Sendable], ["acr": "phr", "age": 4000], [:]])
    func aWeakerSignInChangesNothing(control: [String: any Sendable]) throws {
        let bench = try Bench(["--ask-scopes"], demand: Self.level, provider: control)
        #expect(try bench.pay().status == 401)
        #expect(bench.log(has: "the token that \(bench.payroll.url) requires was not obtained"))
        #expect(bench.log(has: "the provider says that you have signed in"))
        #expect(try bench.token(at: bench.payroll) == "Bearer t1")
        #expect(bench.provider.requests.contains("POST /revoke access_token 200"))
    }

    /// Without a person at the server, the client gets the command, and it helps.
    @Test func theCommandGetsATokenForThisSite() throws {
        let bench = try Bench(demand: Self.level, provider: ["acr": "phr", "age": 10])
        let seen = try bench.pay()
        let options = ["--acr-values", "phr phrh", "--max-age", "300", "--site", bench.payroll.url]
        let command = "`countersign enroll work --acr-values 'phr phrh' --max-age 300 --site \(bench.payroll.url)`"
        #expect(seen.status == 401 && seen.proxyStatus.contains(command), "\(seen.proxyStatus)")
        let done = try bench.enroll(options)
        #expect(done.status == 0, "\(done.said)")
        #expect(try bench.pay().status == 200)
        #expect(try bench.token(at: bench.wiki) == "Bearer t1")
        #expect(try bench.token(at: bench.payroll) == "Bearer canary-second")
    }

    @Test func theCommandSaysWhatIsWrong() throws {
        let bench = try Bench(demand: Self.level, provider: ["acr": "phr", "age": 10])
        let cases: [([String], String)] = [
            (["--site", "https://elsewhere.example"], "does not get the token of \"work\""),
            (["--site", "http://127.0.0.1"], "is not https"),
            (["--site", "payroll"], "is not the URL of a site"),
            (["--claims", "[]"], "--claims must be a JSON object"),
            (["--max-age", "-1"], "--max-age"), (["--acr-values", "a\"b"], "--acr-values must be names"),
        ]
        for (options, text) in cases {
            let done = try bench.enroll(options)
            #expect(done.status != 0 && done.said.contains(text), "\(options): \(done.said)")
        }
        try bench.provider.change(["subject": "another", "acr": "phr", "age": 10])
        let other = try bench.enroll(["--acr-values", "phr", "--site", bench.payroll.url])
        #expect(other.status != 0 && other.said.contains("another person has signed in"), "\(other.said)")
        #expect(bench.pages.count == 1)
        #expect(try bench.token(at: bench.payroll) == "Bearer t1")
    }

    /// The refresh token renews it with the same demand; if that is refused, the token of the sign-in takes its place.
    @Test func aTokenForOneSiteIsRenewedBeforeItIsSentExpired() throws {
        let bench = try Bench(demand: Self.claims)
        #expect(try bench.pay().status == 200)
        try bench.expire()
        let renewed = try poll { try bench.token(at: bench.payroll) == "Bearer t3" ? true : nil }
        #expect(renewed == true, "\(bench.proxy.process.errorOutput)")
        #expect(bench.provider.tokenParameters.last?.claims == Bench.claims)
        try bench.provider.change(["error": "interaction_required"])
        try bench.expire()
        let former = try poll { try bench.token(at: bench.payroll) == "Bearer t1" ? true : nil }
        #expect(former == true, "\(bench.proxy.process.errorOutput)")
    }

    /// A person may have signed in for the token. It is not lost while the provider is down.
    @Test func anOutageLosesNoTokenForOneSite() throws {
        let bench = try Bench(demand: Self.claims)
        #expect(try bench.pay().status == 200)
        try bench.provider.change(["fail": ["/token": 503]])
        try bench.expire()
        let refused = try poll { () throws -> String? in
            let seen = try bench.pay()
            return seen.proxyStatus.contains("cannot be renewed") ? seen.proxyStatus : nil
        }
        #expect(refused?.contains("for \(bench.payroll.url) has expired") == true, "\(refused ?? "")")
        try bench.provider.change(["token": ["t3"]])
        let renewed = try poll { try bench.pay().status == 200 ? true : nil }
        #expect(renewed == true && bench.pages.isEmpty, "\(bench.proxy.process.errorOutput)")
        #expect(bench.provider.tokenParameters.last?.claims == Bench.claims)
        #expect(try bench.token(at: bench.payroll) == "Bearer t3")
    }

    /// Each of two sites with demands of their own waits for its own token, and neither gets the other's.
    @Test func twoSitesThatWaitAtOnceGetTheirOwnTokens() throws {
        let bench = try Bench(demand: Self.claims)
        let other = try BearerOrigin([
            "tokens": ["t1": "openid", "canary-second": "openid", "t3": "openid"],
            "step_up": ["/pay": Self.claims.merging(["tokens": ["canary-second", "t3"]]) { old, _ in old }],
        ])
        try bench.user.succeed("sites", "add", "\(other.url) answer=bearer credential=work")
        let isListed = try poll { try bench.token(at: other) == "Bearer t1" ? true : nil }
        #expect(isListed == true)
        try bench.provider.change(["token": ["canary-second", "t3"], "hold": ["refresh_token": 2]])
        let clients = try [bench.payroll.url, other.url].enumerated().map { index, url in
            try ChildProcess(
                Tool.path("curl"),
                [
                    "-q", "-sS", "-m", "100", "-o", "/dev/null", "-w", "%{http_code}\n", "--cacert",
                    bench.proxy.anchor, "-x", bench.proxy.url, "\(url)/pay",
                ], capture: bench.user.folder.file("client-\(index)"))
        }
        for client in clients {
            #expect(client.waitForExit() == 0 && client.output == "200\n", "\(client.output)")
        }
        let sent = [bench.payroll, other].map { $0.log.requests.last?.authorization ?? "" }
        #expect(Set(sent) == ["Bearer canary-second", "Bearer t3"], "\(sent)")
        #expect(try bench.token(at: bench.payroll) == sent[0] && bench.token(at: other) == sent[1])
    }
}
