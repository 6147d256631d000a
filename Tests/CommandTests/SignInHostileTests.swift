// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Attacks on a sign-in and faults around it. Each is a clear error, and the earlier sign-in stays unchanged.
@Suite(.waiting) struct SignInHostileTests {
    /// A sandbox in which a person is signed in.
    private func signedIn(_ control: [String: any Sendable] = [:]) throws -> SignInSandbox {
        let bench = try SignInSandbox(control, profile: ["sites": ["https://api.corp.example"]])
        let first = try bench.enroll()
        guard first.status == 0 else { throw HarnessError(first.said) }
        return bench
    }

    /// Runs `body`, which must fail with `reason`, and checks that nothing has changed.
    private func expectNoChange(
        in bench: SignInSandbox, _ reason: String, _ body: () throws -> CommandResult
    ) throws {
        let before = try bench.status
        let stored = try bench.stored
        #expect(stored.signIns.count == 1 && stored.tokens.count == 1)
        let credentials = try bench.sandbox.succeed("credential", "list")
        let sites = try bench.sandbox.succeed("sites", "list")
        let result = try body()
        #expect(result.status == 1 && result.error.contains("countersign: error: "), "\(result.said)")
        #expect(result.error.contains(reason), "\(result.said)")
        #expect(!result.said.contains("canary"), "\(result.said)")
        let after = try bench.status
        #expect(before.count == 1 && after.count == 1)
        for key in ["signedIn", "account", "expires", "issuer"] {
            #expect(before.first?[key] as? String == after.first?[key] as? String)
        }
        // Not the tokens themselves: a failure would print them.
        let isSame = try bench.stored == stored
        #expect(isSame, "the stored tokens have changed")
        #expect(try bench.sandbox.succeed("credential", "list") == credentials)
        #expect(try bench.sandbox.succeed("sites", "list") == sites)
        let left = try FileManager.default.contentsOfDirectory(atPath: bench.file("home"))
            .filter { $0.hasSuffix(".new") || $0.hasSuffix(".tmp") }
        #expect(left.isEmpty, "\(left)")
    }

    // MARK: Codes

    /// The code of another sign-in, with this one's state: only the code verifier differs (RFC 7636).
    @Test func aCodeForAnotherVerifierIsOfNoUse() throws {
        let bench = try signedIn()
        try bench.write(
            browser: """
                #!/bin/sh
                other=$(echo "$1" | sed 's/code_challenge=[^&]*/code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM/')
                [ "$other" != "$1" ] || exit 1
                location=$(curl -sS --noproxy '*' -o /dev/null -w '%{redirect_url}' "$other")
                curl -sS --noproxy '*' -o /dev/null "$location"
                """)
        try expectNoChange(in: bench, "invalid_grant") { try bench.enroll() }
    }

    @Test func aCodeThatWasUsedIsOfNoUse() throws {
        let bench = try SignInSandbox()
        // Keeps the code, and later sends it instead of a new one.
        try bench.write(
            browser: """
                #!/bin/sh
                location=$(curl -sS --noproxy '*' -o /dev/null -w '%{redirect_url}' "$1")
                if [ -e code ]; then location=$(echo "$location" | sed "s/code=[^&]*/code=$(cat code)/"); fi
                echo "$location" | sed 's/.*code=\\([^&]*\\).*/\\1/' > code
                curl -sS --noproxy '*' -o /dev/null "$location"
                """)
        let first = try bench.enroll()
        #expect(first.status == 0, "\(first.said)")
        try expectNoChange(in: bench, "invalid_grant") { try bench.enroll() }
        #expect(bench.provider.requests.last == "POST /token authorization_code 400")
    }

    // MARK: Providers

    /// The provider closes the connection without a response.
    @Test(
        arguments: [
            ("/.well-known/openid-configuration", []), ("/push", []), ("/token", []), ("/keys", []),
            ("/device", ["--user-agent", "device"]),
        ] as [(String, [String])])
    func aProviderThatGoesAwayEndsTheSignIn(path: String, flags: [String]) throws {
        let bench = try signedIn(["push": true])
        var failures = [path: "close"]
        if path.contains("well-known") { failures["/.well-known/oauth-authorization-server"] = "close" }
        try bench.provider.change(["push": true, "fail": failures])
        try expectNoChange(in: bench, "sent no complete response") {
            try bench.run(["enroll", "profile.json", "--yes"] + flags)
        }
    }

    /// A byte a second never ends, and is always progress. The limit of the command is shorter than that of a request.
    @Test(arguments: ["/.well-known/openid-configuration", "/push", "/keys"])
    func aProviderThatDripsIsWaitedForAsLongAsTheCommandSays(path: String) throws {
        let bench = try signedIn(["push": true])
        var failures = [path: "drip"]
        if path.contains("well-known") { failures["/.well-known/oauth-authorization-server"] = "drip" }
        try bench.provider.change(["push": true, "fail": failures])
        try expectNoChange(in: bench, "did not answer within ") {
            let result = try bench.run(["enroll", "profile.json", "--yes", "--timeout", "2"], seconds: 400)
            // Earlier requests have used a part of it.
            #expect(["1", "2"].contains { result.error.contains("within \($0) seconds") }, "\(result.said)")
            return result
        }
    }

    /// The provider accepts the connection and says nothing.
    @Test(
        arguments: [
            ("/.well-known/openid-configuration", []), ("/push", []), ("/token", []),
            ("/device", ["--user-agent", "device"]),
        ] as [(String, [String])])
    func aProviderThatDoesNotAnswerEndsTheSignIn(path: String, flags: [String]) throws {
        let bench = try signedIn(["push": true])
        var failures = [path: "hang"]
        if path.contains("well-known") { failures["/.well-known/oauth-authorization-server"] = "hang" }
        try bench.provider.change(["push": true, "fail": failures])
        try expectNoChange(in: bench, "30 seconds") {
            try bench.run(["enroll", "profile.json", "--yes"] + flags, seconds: 400)
        }
    }

    // MARK: This machine

    /// The disk fills up between the beginning, when the vault can be written, and the end.
    @Test func aDiskThatFillsUpLeavesTheEarlierSignIn() throws {
        let bench = try signedIn()
        try bench.provider.change(["token": ["canary-" + String(repeating: "x", count: 16_000)]])
        // 8 KiB for each file.
        let command = "ulimit -f 16; exec countersign enroll profile.json --yes"
        try expectNoChange(in: bench, "vault") {
            try Command.run(
                "/usr/bin/setsid", ["--wait", "/bin/sh", "-c", command],
                environment: try bench.sandbox.environment(adding: bench.environment),
                folder: bench.sandbox.folder.path, in: bench.sandbox.folder)
        }
    }

    /// Both sign-ins have the same name: each is whole, and the last one stays.
    @Test func twoSignInsOfOneNameAtOnceLeaveOne() throws {
        let bench = try signedIn()
        let command = """
            countersign enroll profile.json --yes & first=$!
            countersign enroll profile.json --yes; second=$?
            wait $first && exit $second
            """
        let result = try Command.run(
            "/usr/bin/setsid", ["--wait", "/bin/sh", "-c", command],
            environment: try bench.sandbox.environment(adding: bench.environment), folder: bench.sandbox.folder.path,
            in: bench.sandbox.folder)
        #expect(result.status == 0, "\(result.said)")
        #expect(try bench.status.count == 1)
        #expect(try bench.sandbox.succeed("unenroll").contains("signed out"))
        #expect(
            bench.provider.requests.suffix(2) == ["POST /revoke refresh_token 200", "POST /revoke access_token 200"])
        // The provider responds like that to any token.
        let responses = bench.provider.revokedResponses.suffix(2).compactMap(\.self)
        #expect(responses.count == 2 && responses.first == responses.last, "\(responses)")
    }

    @Test func aPortOfAnotherProcessIsNotUsed() throws {
        let bench = try signedIn()
        let taken = try RefusingPort()
        try bench.sandbox.folder.write(
            "profile.json",
            try bench.provider.profile([
                "redirect_uri": "http://127.0.0.1:\(taken.number)/", "sites": ["https://api.corp.example"],
            ]))
        try expectNoChange(in: bench, "port \(taken.number), to which the profile redirects, is in use") {
            try bench.enroll()
        }
        #expect(bench.provider.requests.filter { $0.contains("/authorize") }.count == 1)
    }

    /// Idle connections, requests without end and wrong answers do not keep the browser's redirect out.
    @Test func anotherProcessThatCrowdsTheListenerDoesNotStopTheSignIn() throws {
        let bench = try SignInSandbox()
        try bench.write(
            browser: """
                #!/bin/sh
                exec '\(try Tool.python())' '\(Tool.server("crowd.py"))' "$1" > browser.seen 2>&1
                """)
        let result = try bench.enroll()
        #expect(result.status == 0, "\(result.said)\(TextFile.text(bench.file("browser.seen")))")
        #expect(TextFile.text(bench.file("browser.seen")).hasSuffix("303\n"))
    }
}
