// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// Identities with keys in a token, which locks itself after a few wrong PINs.
@Suite(.waiting) struct RefreshTokenTests {
    private let sandbox: Sandbox
    private let token: SoftToken

    init() throws {
        sandbox = try Sandbox()
        token = try SoftToken()
        try token.take("client-a", id: "a1")
        let imported = try certificate("import", SoftToken.uri("client-a"), "--name", "card", "--password-stdin")
        try #require(imported.status == 0, "\(imported.said)")
    }

    private func certificate(_ arguments: String...) throws -> CommandResult {
        try Command.run(
            "/usr/bin/setsid", ["--wait", try Sandbox.executable, "certificate"] + arguments,
            environment: try sandbox.environment(adding: token.environment), folder: sandbox.folder.path,
            input: SoftToken.pin + "\n", in: sandbox.folder)
    }

    private var vault: OpenVault {
        get throws {
            try SealedVault(home: sandbox.home).open { throw HarnessError("unexpected request for a passphrase") }
        }
    }

    private func serve() throws -> ChildProcess { try sandbox.serve(environment: token.environment) }

    @Test func rejectedPINIsTriedOnceAcrossAllProcesses() throws {
        let key = try #require(try vault.contents.tokenKeys["card"])
        let pin = Secret(utf8: "canary-wrong")
        try vault.update {
            try $0.setTokenKey(TokenKey(name: "card", uri: key.uri, pin: pin, leafSHA256: key.leafSHA256))
        }
        // These commands need no key.
        for command in ["list", "needs-refresh"] {
            let result = try certificate(command)
            #expect(result.output.contains("card") && result.error.isEmpty, "\(result.said)")
        }
        #expect(try certificate("inspect", "card").status == 0)
        #expect(try vault.contents.tokenKeys["card"]?.isPINRefused == false)

        let first = try serve()
        #expect(
            try poll { try vault.contents.tokenKeys["card"]?.isPINRefused == true ? true : nil } == true)
        #expect(first.errorOutput.contains("the token refuses the PIN"), "\(first.errorOutput)")
        first.send(SIGTERM)
        #expect(first.waitForExit() == 0)
        let second = try serve()
        #expect(
            poll { second.errorOutput.contains("refused the PIN before") ? true : nil } == true,
            "\(second.errorOutput)")
        second.send(SIGTERM)
        #expect(second.waitForExit() == 0)

        let again = try certificate(
            "import", SoftToken.uri("client-a"), "--name", "card", "--replace", "--password-stdin")
        #expect(again.status == 0, "\(again.said)")
        #expect(try vault.contents.tokenKeys["card"]?.isPINRefused == false)
    }

    @Test func enrolmentDoesNotReplaceATokenKey() throws {
        let before = try #require(try vault.contents.tokenKeys["card"])
        let result = try certificate(
            "enroll", "card", "--replace", "--est", "https://127.0.0.1:1", "--anchor",
            try TestPKI.shared.originAnchor)
        #expect(result.status == 1 && result.error.contains("is in a token"), "\(result.said)")
        #expect(try vault.contents.tokenKeys["card"] == before)
        #expect(try vault.contents.pendingEnrollments.isEmpty)
    }
}
