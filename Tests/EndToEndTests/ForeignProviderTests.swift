// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// A provider and a site that others have written: enrolment, answers, renewal and the end.
@Suite(.waiting) struct ForeignProviderTests {
    private struct Bench {
        let foreign: NanoProvider
        let user: Countersign
        let profile: String
        let browser: String

        init() throws {
            foreign = try NanoProvider()
            user = try Countersign()
            profile = try user.folder.write(
                "profile.json",
                """
                {"name": "work", "issuer": "\(foreign.issuer)", "client_id": "\(NanoProvider.client)",
                 "sites": ["\(foreign.site)"]}
                """)
            browser = try user.folder.write(
                program: "browser",
                """
                #!/bin/sh
                exec '\(try Tool.python())' '\(Tool.server("form_browser.py"))' --ca '\(try TestPKI.shared.originAnchor)' \
                "$1" username=\(NanoProvider.user) password=\(NanoProvider.password) > '\(user.folder.file("seen"))' 2>&1

                """)
        }

        func enroll(_ flags: String...) throws -> CommandResult {
            try user.run(["enroll", profile, "--yes"] + flags, environment: ["BROWSER": browser])
        }

        /// The access tokens that the site has received.
        var tokens: [String] { foreign.log.requests.compactMap(\.authorization).filter { $0.hasPrefix("Bearer ") } }
    }

    @Test func aSignInAtNanoIDPAnswersIsRenewedAndEnds() throws {
        let bench = try Bench()
        let signedIn = try bench.enroll()
        #expect(
            signedIn.status == 0 && signedIn.output.contains("signed in as jdoe"),
            "\(signedIn.said)\(bench.user.folder.text("seen"))\(bench.foreign.said)")
        let proxy = try bench.user.serve()
        let first = try proxy.get(bench.foreign.site + "/api/index.html")
        #expect(first.status == 200, "\(first.said)\(bench.foreign.said)")
        let token = try #require(bench.tokens.last)
        // The provider revokes the token. The site learns of it, and the proxy renews it.
        try bench.foreign.post(
            "/revoke", ["client_id": NanoProvider.client, "token": String(token.dropFirst("Bearer ".count))])
        let second = try proxy.get(bench.foreign.site + "/api/index.html")
        #expect(second.status == 200, "\(second.said)\(bench.foreign.said)")
        #expect(bench.tokens.last != token && Set(bench.tokens).count == 2)
        let ended = try bench.user.run("unenroll", "work")
        #expect(ended.status == 0 && !ended.error.contains("warning"), "\(ended.said)")
        #expect(bench.foreign.requests.suffix(2) == ["POST /revoke 200", "POST /revoke 200"])
        #expect(try bench.user.succeed("sites", "list", "--no-header").isEmpty)
    }

    /// The person enters the code in a browser of another machine.
    @Test func aDeviceSignsInAtNanoIDP() throws {
        let bench = try Bench()
        let child = try ChildProcess(
            try Countersign.executable,
            ["enroll", bench.profile, "--yes", "--events", "--user-agent", "device", "--home", bench.user.home],
            environment: bench.user.environment, capture: bench.user.folder.file("enroll"))
        let shown: [String: String]? = poll {
            let lines = child.output.split(separator: "\n").compactMap { line in
                try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String]
            }
            return lines.first { $0["event"] == "code" }
        }
        let code = try #require(shown?["code"], "\(child.output)\(child.errorOutput)\(bench.foreign.said)")
        try bench.foreign.post(
            "/device",
            [
                "user_code": code, "username": NanoProvider.user, "password": NanoProvider.password,
                "action": "authorize",
            ])
        #expect(child.waitForExit() == 0, "\(child.errorOutput)\(bench.foreign.said)")
        #expect(child.output.contains("\"event\":\"stored\""), "\(child.output)")
    }

    /// glewlwyd has its endpoints below a path, ES256 and one-time refresh tokens, and revokes nothing for a client
    /// without a secret.
    @Test func aSignInAtGlewlwydIsRenewedAndEnds() throws {
        let provider = try GlewlwydProvider()
        let origin = try BearerOrigin(["tokens": [String: String]()])
        let user = try Countersign()
        let profile = try user.folder.write(
            "profile.json",
            """
            {"name": "work", "issuer": "\(provider.issuer)", "client_id": "countersign", "scopes": ["openid"],
             "redirect_uri": "\(provider.redirect)", "sites": ["\(origin.url)"]}
            """)
        let seen = user.folder.file("seen")
        let browser = try user.folder.write(
            program: "browser",
            """
            #!/bin/sh
            export PASSWORD=\(GlewlwydProvider.password)
            exec '\(try Tool.python())' '\(Tool.server("glewlwyd_person.py"))' "$1" > '\(seen)' 2>&1

            """)
        let signedIn = try user.run(
            "enroll", profile, "--yes", environment: ["BROWSER": browser])
        #expect(
            signedIn.status == 0 && signedIn.output.contains("signed in"),
            "\(signedIn.said)\(TextFile.text(seen))\(provider.said)")
        // The site calls each token invalid, so the first one is renewed, once.
        let proxy = try user.serve()
        #expect(try proxy.get(origin.url + "/a/x").status == 401)
        let tokens = origin.log.requests.compactMap(\.authorization)
        #expect(tokens.count == 2 && Set(tokens).count == 2, "\(tokens.count) \(provider.said)")
        #expect(tokens.allSatisfy { $0.hasPrefix("Bearer ey") })
        let status = try user.run("status")
        #expect(status.status == 1 && status.output.contains("renewable"), "\(status.said)")
        #expect(status.output.contains("credential \"work\": rejected at"), "\(status.said)")
        let ended = try user.run("unenroll", "work")
        #expect(ended.status == 0 && ended.error.contains("the provider has not revoked the tokens"), "\(ended.said)")
        #expect(try user.succeed("sites", "list", "--no-header").isEmpty)
    }
}
