// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignTestOrigin
import CountersignVault
import Foundation

/// A home, a provider, and a browser that is a script around curl.
final class SignInSandbox: Sendable {
    let sandbox: Sandbox
    let provider: SignInProvider

    /// Follows redirects as a browser does, and keeps its arguments and the pages that it has seen.
    private static let browser = """
        #!/bin/sh
        printf '%s\\n' "$#" "$1" >> browser.arguments
        curl -sSL --noproxy '*' -w '\\n%{http_code}\\n' "$1" >> browser.seen 2>&1
        """

    init(
        _ control: [String: any Sendable] = [:], profile: [String: any Sendable] = [:], browser: String? = nil,
        isTLS: Bool = false
    ) throws {
        sandbox = try Sandbox()
        provider = try SignInProvider(control, isTLS: isTLS)
        try sandbox.folder.write("profile.json", try provider.profile(profile))
        try write(browser: browser ?? Self.browser)
    }

    func write(browser: String) throws {
        _ = try sandbox.folder.write(program: "browser", browser)
    }

    func file(_ name: String) -> String { sandbox.folder.file(name) }

    var environment: [String: String] { ["BROWSER": file("browser")] }

    /// Runs `countersign enroll profile.json --yes`, without a terminal.
    func enroll(_ flags: String..., environment own: [String: String] = [:]) throws -> CommandResult {
        try run(["enroll", "profile.json", "--yes"] + flags, environment: own)
    }

    func run(
        _ arguments: [String], input: String? = nil, environment own: [String: String] = [:], seconds: Double = patience
    ) throws -> CommandResult {
        try Command.run(
            "/usr/bin/setsid", ["--wait", try Sandbox.executable] + arguments,
            environment: try sandbox.environment(adding: environment.merging(own) { _, new in new }),
            folder: sandbox.folder.path, input: input, in: sandbox.folder, seconds: seconds)
    }

    /// Gives the vault a passphrase, and starts a server that has it open. Commands have neither a terminal nor the
    /// passphrase.
    func serveWithPassphrase() throws -> ChildProcess {
        let passphrase = "canary-passphrase\n"
        try sandbox.succeed("credential", "set", "spare", "--user", "jdoe", "--password-stdin", input: "canary-spare\n")
        try sandbox.succeed("vault", "rekey", "--passphrase", "--password-stdin", input: passphrase)
        let server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0", "--password-stdin"],
            environment: try sandbox.environment(), folder: sandbox.folder.path,
            input: try sandbox.folder.write("passphrase", passphrase), capture: file("serve"))
        _ = try server.line(after: "countersign: listening on ")
        return server
    }

    /// The vault's records of the sign-ins, with their tokens.
    struct Stored: Equatable {
        let signIns: [String: SignInRecord]
        let tokens: [String: TokenCredential]
    }

    var stored: Stored {
        get throws {
            let vault = try SealedVault(home: sandbox.home).open { throw HarnessError("there is a passphrase") }
            return Stored(signIns: vault.contents.signIns, tokens: vault.contents.tokens)
        }
    }

    /// `countersign status --json`.
    var status: [[String: Any]] {
        get throws {
            let result = try sandbox.countersign("status", "--json")
            let report = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
            guard let rows = report?["signIns"] as? [[String: Any]] else { throw HarnessError(result.said) }
            return rows
        }
    }
}
