// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Providers without metadata, grants without a person, and the profiles that are built in.
@Suite(.waiting) struct ProviderProfileTests {
    private func endpoints(_ issuer: String, _ more: [String: any Sendable] = [:]) -> [String: any Sendable] {
        let usual: [String: any Sendable] = [
            "name": "git", "client_id": SignInProvider.client, "authorization_endpoint": "\(issuer)/authorize",
            "token_endpoint": "\(issuer)/token", "scopes": ["repo", "gist"],
        ]
        return usual.merging(more) { $1 }
    }

    private func write(_ profile: [String: any Sendable], to bench: SignInSandbox) throws {
        let data = try JSONSerialization.data(withJSONObject: profile, options: [.sortedKeys, .withoutEscapingSlashes])
        try bench.sandbox.folder.write("profile.json", String(decoding: data, as: UTF8.self))
    }

    /// As GitHub does it: no metadata, no ID token, scopes with commas, errors with status 200.
    @Test func aProviderWithoutMetadataNeedsEndpoints() throws {
        let bench = try SignInSandbox(["commas": true, "fail": ["/.well-known/openid-configuration": 404]])
        let issuer = bench.provider.issuer
        try write(endpoints(issuer, ["revocation_endpoint": "\(issuer)/revoke"]), to: bench)
        let result = try bench.enroll()
        #expect(result.status == 0 && result.error.contains("token endpoint  \(issuer)/token"), "\(result.said)")
        #expect(bench.provider.requests == ["GET /authorize 302", "POST /token authorization_code 200"])
        #expect(try bench.status[0]["scope"] as? String == "repo gist")
        #expect(try bench.status[0]["issuer"] as? String == issuer)
        #expect(try bench.sandbox.countersign("unenroll", "git").status == 0)
        #expect(bench.provider.requests.last == "POST /revoke access_token 200")
        try bench.provider.change(["secret": "canary-s", "error_status": 200])
    }

    @Test func anIDTokenIsVerifiedIfThereAreKeys() throws {
        let bench = try SignInSandbox()
        let issuer = bench.provider.issuer
        try write(
            endpoints(issuer, ["issuer": issuer, "jwks_uri": "\(issuer)/keys", "scopes": ["openid"]]), to: bench)
        let result = try bench.enroll()
        #expect(result.status == 0 && result.output.contains("signed in as jdoe@acme.example"), "\(result.said)")
        #expect(bench.provider.requests.last == "GET /keys 200")
    }

    @Test func faultsOfProfilesSayWhere() throws {
        let bench = try SignInSandbox()
        let token = ["token_endpoint": "https://id.example/t"]
        for (profile, words) in [
            (["authorization_endpoint": "https://id.example/a"], "\"authorization_endpoint\" needs \"token_endpoint\""),
            (token.merging(["jwks_uri": "https://id.example/k"]) { $1 }, "\"jwks_uri\" needs \"issuer\""),
            (token, "\"token_endpoint\" needs \"authorization_endpoint\""),
            (["token_endpoint": "http://id.example/t"], "it is not https"),
            (["token_endpoint_auth_method": "magic"], "must be one of \"none\", \"client_secret\""),
            (["grant_type": "password"], "must be one of \"authorization_code\", \"client_credentials\""),
            (["grant_type": "client_credentials"], "needs a client that can prove who it is"),
            (["assertion_file": "/x"], "\"assertion_file\" is for \"grant_type\""),
            (
                ["grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion_file": "x"],
                "must be the absolute path"
            ),
            (
                ["grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "prompt": "login"],
                "\"prompt\" is for the sign-in of a person"
            ),
        ] as [([String: String], String)] {
            var whole: [String: any Sendable] = ["client_id": "c"]
            if profile["token_endpoint"] == nil { whole["issuer"] = "https://id.example" }
            try write(whole.merging(profile) { $1 }, to: bench)
            let result = try bench.enroll()
            #expect(result.status == 1 && result.error.contains(words), "\(profile): \(result.said)")
            #expect(result.error.contains("line 1, column"), "\(result.said)")
        }
    }

    // MARK: Grants without a person

    private func grant(_ bench: SignInSandbox, _ name: String, _ more: [String: String]) throws {
        let usual: [String: any Sendable] = [
            "name": "robot", "issuer": bench.provider.issuer, "grant_type": name, "scopes": ["api"],
        ]
        try write(usual.merging(more) { $1 }, to: bench)
    }

    @Test func aClientSignsInForItselfAndServeRepeatsIt() throws {
        // `serve` renews ahead only what is valid. So that it is in time on a busy machine, tokens live for this long.
        let bench = try SignInSandbox(["secret": "canary-s", "lifetime": 40])
        try grant(
            bench, "client_credentials",
            ["client_id": SignInProvider.client, "token_endpoint_auth_method": "client_secret"])
        let teller = try bench.sandbox.folder.write(program: "teller", "#!/bin/sh\necho canary-s\n")
        let result = try bench.enroll("--client-secret-from", "exec:\(teller)")
        #expect(result.status == 0 && result.output.contains("signed in as countersign-tests"), "\(result.said)")
        #expect(!FileManager.default.fileExists(atPath: bench.file("browser.arguments")))
        let server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0"],
            environment: try bench.sandbox.environment(), folder: bench.sandbox.folder.path,
            capture: bench.file("serve"))
        _ = try server.line(after: "countersign: listening on ")
        let grants: Bool? = poll {
            bench.provider.requests.filter { $0 == "POST /token client_credentials 200" }.count >= 3 ? true : nil
        }
        #expect(grants == true, "\(bench.provider.requests)")
        #expect(try bench.status[0]["isRenewable"] as? Bool == true)
        let ended = try bench.sandbox.countersign("unenroll", "robot")
        // Nobody's browser is signed in.
        #expect(ended.status == 0 && !ended.said.contains("browser"), "\(ended.said)")
    }

    @Test(arguments: [
        ("urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion_file"),
        ("urn:ietf:params:oauth:grant-type:token-exchange", "subject_token_file"),
    ])
    func aTokenInAFileSignsAMachineIn(name: String, key: String) throws {
        let bench = try SignInSandbox(["assertion": "eyJh.eyJi.c2ln", "lifetime": 40])
        let file = bench.file("token")
        try grant(bench, name, [key: file])
        let missing = try bench.enroll()
        #expect(
            missing.status == 1 && missing.error.contains("cannot read the profile's file \(file)"), "\(missing.said)")
        // A profile must not be able to send another file of the person away.
        for text in [
            "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n", "canary", "", "canary a.b.c\n",
        ] {
            _ = try bench.sandbox.folder.write("token", text)
            let result = try bench.enroll()
            #expect(result.status == 1 && result.error.contains("has no JWT on its only line"), "\(result.said)")
            #expect(!result.said.contains("canary"))
        }
        #expect(!bench.provider.requests.contains { $0.hasPrefix("POST") })
        _ = try bench.sandbox.folder.write("token", "eyJh.eyJi.b2xk\n")
        let expired = try bench.enroll()
        #expect(expired.status == 1 && expired.error.contains("check that \(file) has a token"), "\(expired.said)")
        _ = try bench.sandbox.folder.write("token", "eyJh.eyJi.c2ln\n")
        let result = try bench.enroll()
        #expect(result.status == 0 && result.error.contains(file), "\(result.said)")
        // The file is read again: an old token is no end, and the next one is used.
        _ = try bench.sandbox.folder.write("token", "eyJh.eyJi.b2xk\n")
        let server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0"],
            environment: try bench.sandbox.environment(), folder: bench.sandbox.folder.path,
            capture: bench.file("serve"))
        _ = try server.line(after: "countersign: listening on ")
        let refused: Bool? = poll { bench.provider.requests.last?.hasSuffix("400") == true ? true : nil }
        #expect(refused == true, "\(bench.provider.requests)")
        #expect(try (bench.status[0]["state"] as? String)?.contains("ended") == false)
    }

    @Test func aMachineHasNoUserAgent() throws {
        let bench = try SignInSandbox()
        try grant(bench, "urn:ietf:params:oauth:grant-type:jwt-bearer", ["assertion_file": "/x"])
        for flags in [["--user-agent", "system"], ["--no-browser"], ["--redirect-port", "8765"]] {
            let result = try bench.run(["enroll", "profile.json", "--yes"] + flags)
            #expect(result.status == 1 && result.error.contains("leave \(flags[0]) out"), "\(result.said)")
        }
    }

    // MARK: The browser's return

    @Test func theRedirectPortIsChosen() throws {
        let bench = try SignInSandbox()
        let port = try Loopback.freePorts(1)[0]
        let result = try bench.enroll("--redirect-port", "\(port)")
        #expect(result.status == 0, "\(result.said)")
        #expect(
            TextFile.lines(bench.file("browser.arguments")).last?.contains("127.0.0.1%3A\(port)%2F") == true,
            "\(result.said)")
        let device = try bench.enroll("--user-agent", "device", "--redirect-port", "\(port)")
        #expect(device.status == 1 && device.error.contains("device opens none"), "\(device.said)")
    }

    @Test func withoutABrowserTheAddressIsPasted() throws {
        let bench = try SignInSandbox(profile: ["redirect_uri": "com.example.app:/done"])
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "enroll", bench.file("profile.json"), "--yes", "--no-browser"],
            environment: try bench.sandbox.environment(adding: bench.environment))
        try terminal.waits(for: "code_challenge_method=S256")
        let page = try #require(
            terminal.screen.split(whereSeparator: \.isWhitespace).last { $0.contains("/authorize?") })
        let sent = try Command.run(
            Tool.path("curl"),
            ["-q", "-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%header{location}", String(page)],
            in: bench.sandbox.folder)
        try terminal.when("paste the address", type: "\(sent.output)\n")
        try terminal.waits(for: "signed in as")
        #expect(
            terminal.waitForExit() == 0 && terminal.screen.contains("open this page in a browser:"),
            "\(terminal.screen)")
        #expect(!FileManager.default.fileExists(atPath: bench.file("browser.arguments")))
    }

    // MARK: Built in

    @Test func aProfileThatIsBuiltInNeedsAClientOfOnesOwn() throws {
        let bench = try SignInSandbox()
        for (arguments, words) in [
            (["google"], "the profile google needs your own client at the provider, as --client-id"),
            (["entra", "--client-id", "c"], "entra needs --tenant"),
            (["azure-devops", "--client-id", "c", "--tenant", "common"], "needs the identifier of a directory"),
            (["github", "--client-id", "c", "--tenant", "t"], "--tenant is for azure-devops and entra"),
            (["github", "--client-id", "a b"], "--client-id is not the identifier of a client"),
            (["profile.json", "--client-id", "c"], "profile.json is none"),
            (["github", "--client-id", "c"], "https://github.com/login/oauth/authorize"),
            (["bitbucket", "--client-id", "c"], "there is no terminal to ask for the secret of the client c"),
            (["./google"], "cannot read ./google"),
        ] {
            let result = try bench.run(["enroll"] + arguments + ["--yes"])
            #expect(result.status == 1 && result.error.contains(words), "\(result.said)")
        }
    }

    /// A file counts if it is written with a path.
    @Test func aFileOfThatNameNeedsAPath() throws {
        let bench = try SignInSandbox()
        try bench.sandbox.folder.write("google", try bench.provider.profile())
        #expect(try bench.run(["enroll", "google", "--yes"]).error.contains("needs your own client"))
        let result = try bench.run(["enroll", "./google", "--yes"])
        #expect(result.status == 0, "\(result.said)")
    }
}
