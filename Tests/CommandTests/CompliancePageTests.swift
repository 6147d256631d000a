// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `countersign compliance remediate --user-agent embedded`, with a program in place of the window's.
@Suite(.waiting) struct CompliancePageTests {
    /// A sign-in whose service has a page that requires a password, with a CA that only the home trusts.
    private func bench(_ options: String) throws -> ComplianceBench {
        let bench = try ComplianceBench(["basic": "jdoe:canary-basic"], requires: false, isTLS: true)
        let sandbox = bench.bench.sandbox
        try sandbox.succeed("trust", "anchor", "add", TestPKI.shared.originAnchor)
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary-basic\n")
        try sandbox.succeed("sites", "add", bench.service.origin, options)
        let done = try bench.bench.enroll("--user-agent", "embedded", environment: window(bench.bench))
        guard done.status == 0 else { throw HarnessError("enroll: \(done.said)") }
        try bench.requirePolicy()
        return bench
    }

    /// Loads the service's page through the window's proxy and with the window's certificates alone, and is closed. Or
    /// it `fails`, and leaves the page to the person.
    private func window(_ bench: SignInSandbox, fails: Bool = false) throws -> [String: String] {
        try bench.webView(
            #"""
            field() { printf '%s' "$line" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
            case $line in
            *authorize*) sign_in;;
            *)
                \#(fails ? "exit 9" : "")
                curl -q -sS -m 60 --cacert "$2" --proxy "$(field proxy)" -o /dev/null "$(field url)" \
                    2> \#(bench.file("curl"))
                say '{"reason":"window","type":"closed"}';;
            esac
            """#)
    }

    private func remediate(_ bench: ComplianceBench) throws -> CommandResult {
        try bench.bench.run(
            ["compliance", "remediate", "work", "--user-agent", "embedded"], environment: window(bench.bench))
    }

    @Test(arguments: [false, true]) func aPageThatChallengesIsAnswered(throughServer: Bool) throws {
        let bench = try bench("answer=basic")
        let server = throughServer ? try bench.bench.serveWithPassphrase() : nil
        let done = try remediate(bench)
        #expect(done.status == 0, "\(done.said) \(TextFile.text(bench.bench.file("curl")))")
        let asked = bench.asked.withoutPolls
        #expect(asked == ["remediate silent", "remediate", "challenge", "page", "status"], "\(bench.asked)")
        #expect(!done.said.contains("canary"), "\(done.said)")
        #expect(server.map { $0.exitStatus == nil } ?? true)
    }

    /// A server does not prove the device to pages, so the command needs the vault.
    @Test func aServiceThatMayAskForTheDeviceNeedsThePassphrase() throws {
        let bench = try bench("answer=pkeyauth")
        let server = try bench.bench.serveWithPassphrase()
        let done = try remediate(bench)
        #expect(done.status == 1 && done.error.contains("the vault needs its passphrase"), "\(done.said)")
        #expect(bench.asked == ["remediate silent"] && server.exitStatus == nil, "\(bench.asked)")
    }

    /// The person goes on elsewhere.
    @Test func theProxyEndsWithTheWindow() throws {
        let bench = try bench("answer=basic")
        let sandbox = bench.bench.sandbox
        let child = try ChildProcess(
            try Sandbox.executable, ["compliance", "remediate", "work", "--user-agent", "embedded"],
            environment: try sandbox.environment(adding: window(bench.bench, fails: true)),
            folder: sandbox.folder.path, capture: bench.bench.file("remediate"))
        // That of the sign-in was there before.
        let opening = try #require(
            poll { bench.bench.heard.first { $0.contains(bench.service.origin) } },
            "\(child.errorOutput)")
        func field(_ pattern: Regex<(Substring, Substring)>) throws -> String {
            String(try #require(opening.firstMatch(of: pattern), "\(opening)").1)
        }
        let port = try field(/@127\.0\.0\.1:([0-9]+)/)
        let curl = try Tool.path("curl")
        let hasEnded = try poll {
            let words = ["-q", "-sS", "--noproxy", "*", "http://127.0.0.1:\(port)/"]
            return try Command.run(curl, words, in: sandbox.folder).status == 7 ? true : nil
        }
        #expect(hasEnded == true && child.exitStatus == nil, "\(child.errorOutput)")
        let page = try field(/"url":"([^"]*)"/)
        let resolved = "compliance.test.localhost:\(bench.service.port):127.0.0.1"
        let words = ["-q", "-sS", "-k", "--noproxy", "*", "--resolve", resolved, "-u", "jdoe:canary-basic", page]
        #expect(try Command.run(curl, words, in: sandbox.folder).status == 0)
        #expect(child.waitForExit() == 0, "\(child.errorOutput)")
    }
}
