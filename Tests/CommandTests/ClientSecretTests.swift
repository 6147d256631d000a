// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Clients with a secret: where it comes from, how it is sent, and what becomes of it.
@Suite(.waiting) struct ClientSecretTests {
    private static let secret = "canary client/secret+%"

    private func bench(
        _ control: [String: any Sendable] = [:], method: String = "client_secret", _ more: [String: any Sendable] = [:]
    ) throws -> SignInSandbox {
        let profile: [String: any Sendable] = ["name": "work", "token_endpoint_auth_method": method]
        return try SignInSandbox(
            ["secret": Self.secret].merging(control) { $1 }, profile: profile.merging(more) { $1 })
    }

    /// Writes the secret into a file, and a program that prints it.
    private func program(_ bench: SignInSandbox) throws -> String {
        _ = try bench.sandbox.folder.write("secret", Self.secret + "\nanother line\n")
        return try bench.sandbox.folder.write(program: "teller", "#!/bin/sh\ncat '\(bench.file("secret"))'\n")
    }

    private func enroll(_ bench: SignInSandbox, _ flags: String...) throws -> CommandResult {
        let teller = try program(bench)
        return try bench.run(["enroll", "profile.json", "--yes", "--client-secret-from", "exec:\(teller)"] + flags)
    }

    /// All requests of the client have it: tokens, their renewal, the new sign-in and the end.
    @Test(arguments: [
        ("client_secret", "basic"), ("client_secret", "post"), ("client_secret_basic", "basic"),
        ("client_secret_post", "post"),
    ])
    func theStoredSecretIsSentInTheWayOfTheProvider(method: String, wire: String) throws {
        let bench = try bench(["method": wire], method: method)
        let result = try enroll(bench)
        #expect(result.status == 0 && result.output.contains("signed in as jdoe@acme.example"), "\(result.said)")
        #expect(result.error.contains("with its secret") && !result.said.contains("canary"), "\(result.said)")
        let again = try bench.run(["enroll", "work", "--yes"])
        #expect(again.status == 0, "\(again.said)")
        let ended = try bench.run(["unenroll", "work"])
        #expect(ended.status == 0 && !ended.said.contains("warning"), "\(ended.said)")
        #expect(bench.provider.clients == [wire, wire, wire, wire], "\(bench.provider.requests)")
    }

    @Test func serveRenewsWithTheSecretAfterARestart() throws {
        let bench = try bench(["lifetime": 40])
        #expect(try enroll(bench).status == 0)
        for _ in 1...2 {
            let before = bench.provider.requests.count
            let server = try ChildProcess(
                try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0"],
                environment: try bench.sandbox.environment(), folder: bench.sandbox.folder.path,
                capture: bench.file("serve"))
            _ = try server.line(after: "countersign: listening on ")
            let isRenewed: Bool? = poll {
                bench.provider.requests.dropFirst(before).contains("POST /token refresh_token 200") ? true : nil
            }
            #expect(isRenewed == true, "\(bench.provider.requests)")
            // So that the second server has a token that it can renew.
            try bench.provider.change(["secret": Self.secret, "lifetime": 40])
            server.stop()
            #expect(try enroll(bench).status == 0)
        }
        #expect(!bench.provider.clients.contains("refused"))
    }

    @Test func aSecretOnStandardInputTakesThePlaceOfTheStoredOne() throws {
        let bench = try bench()
        #expect(try enroll(bench).status == 0)
        try bench.provider.change(["secret": "canary-newer"])
        let refused = try bench.run(["enroll", "work", "--yes"])
        #expect(refused.status == 1 && refused.error.contains("the stored one of \"work\""), "\(refused.said)")
        #expect(refused.error.contains("--client-secret-stdin"), "\(refused.said)")
        let result = try bench.run(["enroll", "work", "--yes", "--client-secret-stdin"], input: "canary-newer\n")
        #expect(result.status == 0 && !result.said.contains("canary"), "\(result.said)")
        #expect(try bench.stored.signIns["work"]?.clientSecret?.count == "canary-newer".utf8.count)
    }

    /// A profile that is read again must not send the secret to another place.
    @Test func theStoredSecretIsForItsProviderAndClientOnly() throws {
        let bench = try bench()
        #expect(try enroll(bench).status == 0)
        let other = try SignInProvider(["secret": Self.secret])
        let issuer = bench.provider.issuer
        for changes in [
            ["client_id": "another"],
            ["token_endpoint": "\(other.issuer)/token", "authorization_endpoint": "\(issuer)/authorize"],
        ] {
            var profile: [String: any Sendable] = ["name": "work", "token_endpoint_auth_method": "client_secret"]
            profile.merge(["scopes": ["files"]].merging(changes) { $1 }) { $1 }
            try bench.sandbox.folder.write("profile.json", try bench.provider.profile(profile))
            let result = try bench.run(["enroll", "work", "--yes"])
            #expect(
                result.status == 1 && result.error.contains("there is no terminal to ask for the secret"),
                "\(result.said)")
        }
        #expect(other.requests.isEmpty)
    }

    @Test func programsThatWriteNoSecretAreNamed() throws {
        let bench = try bench()
        _ = try bench.sandbox.folder.write(program: "silent", "#!/bin/sh\necho\n")
        for (program, words) in [
            (bench.file("missing"), "cannot run \(bench.file("missing"))"),
            ("/bin/false", "/bin/false ended with status 1"),
            (bench.file("silent"), "wrote no line"), ("/bin/sleep 30", "/bin/sleep did not end within 10 seconds"),
        ] {
            let result = try bench.run(
                ["enroll", "profile.json", "--yes", "--client-secret-from", "exec:\(program)"])
            #expect(result.status == 1 && result.error.contains(words), "\(result.said)")
        }
        #expect(bench.provider.requests.isEmpty)
        // No shell expands anything, and the secret is not the argument.
        for words in ["echo secret", "exec:echo secret", "hunter2"] {
            let result = try bench.run(["enroll", "profile.json", "--yes", "--client-secret-from", words])
            #expect(result.status == 64 && result.error.contains("absolute path"), "\(result.said)")
        }
    }

    @Test func aSecretForAClientWithoutOneIsRefused() throws {
        let bench = try bench(method: "none")
        let result = try enroll(bench)
        #expect(result.status == 1 && result.error.contains("a client secret is given"), "\(result.said)")
    }

    @Test func aProfileMustNotHaveTheSecret() throws {
        let bench = try bench(method: "client_secret", ["client_secret": "oops"])
        let result = try enroll(bench)
        #expect(result.status == 1 && result.error.contains("must not be in a profile"), "\(result.said)")
        #expect(result.error.contains("line 1, column") && !result.said.contains("oops"), "\(result.said)")
    }
}
