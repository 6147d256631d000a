// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `status` in homes of every kind.
@Suite(.waiting) struct StatusTests {
    private let sandbox: Sandbox
    private static let passphrase = "canary-passphrase"

    init() throws { sandbox = try Sandbox() }

    private func report() throws -> [String: Any] {
        let result = try sandbox.countersign("status", "--json")
        let report = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        return try #require(report, "\(result.said)")
    }

    private func subjects() throws -> [String] {
        (try report()["problems"] as? [[String: Any]] ?? []).compactMap { $0["subject"] as? String }
    }

    private func enrol() throws {
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary-one\n")
    }

    @Test func aHomeThatDoesNotExistIsNotCreated() throws {
        let shown = try sandbox.succeed("status")
        #expect(shown.hasPrefix("home         \(sandbox.home) (does not exist yet)\n"), "\(shown)")
        #expect(shown.contains("\nproxy        not running; `countersign serve` starts it\n"), "\(shown)")
        #expect(shown.hasSuffix("\nNothing needs your attention.\n"), "\(shown)")
        #expect(!FileManager.default.fileExists(atPath: sandbox.home))
    }

    @Test func everythingInTheHomeIsCounted() throws {
        let pki = "\(Tool.repository)/Certs/dev/pki"
        try enrol()
        try sandbox.succeed("sites", "add", "https://git.corp.example", "answer=basic")
        try sandbox.succeed(
            "certificate", "import", "\(pki)/client-a.p12", "--name", "laptop", "--password-stdin", input: "fixture\n")
        let made = try sandbox.sh(
            """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out soon.pem -days 5 \
            -subj '/CN=Soon' -addext basicConstraints=critical,CA:TRUE
            """)
        #expect(made.status == 0, "\(made.said)")
        try sandbox.succeed("trust", "anchor", "add", "soon.pem")
        let shown = try sandbox.succeed("status")
        #expect(
            shown == """
                home         \(sandbox.home)
                proxy        not running; `countersign serve` starts it
                vault        open, with its key file
                sites        1 line: 1 basic
                credentials  enrollment (jdoe)
                identities   laptop (until 2044-01-01)

                Nothing needs your attention.

                Ends within 30 days:
                  \(shown.split(separator: "\n").first { $0.contains("Soon") }?.dropFirst(2) ?? "")
                      `countersign trust anchor add FILE` adds its successor

                """)
        #expect(shown.contains("  trust anchor \"CN=Soon\" in Certs/anchors/soon.pem ends 20"), "\(shown)")
        let report = try report()
        #expect((report["endings"] as? [[String: String]])?.map { $0["kind"] } == ["anchor"])
        #expect((report["identities"] as? [[String: Any]])?.map { $0["name"] as? String } == ["laptop"])
        #expect((report["signIns"] as? [Any])?.isEmpty == true)

        let server = try sandbox.serve()
        let warning = "countersign: warning: trust anchor \"CN=Soon\" in Certs/anchors/soon.pem ends 20"
        #expect(server.errorOutput.contains(warning), "\(server.errorOutput)")
    }

    @Test func aLockedVaultIsNamedWithoutItsPassphrase() throws {
        try enrol()
        try sandbox.succeed("vault", "rekey", "--passphrase", "--password-stdin", input: "\(Self.passphrase)\n")
        let closed = try sandbox.countersign("status")
        #expect(closed.status == 1 && closed.error.isEmpty, "\(closed.said)")
        #expect(closed.output.contains("\n  the vault needs its passphrase\n      `countersign serve` asks for it"))
        let opened = try sandbox.countersign("status", "--password-stdin", input: "\(Self.passphrase)\n")
        #expect(opened.status == 0 && opened.output.contains("\ncredentials  enrollment (jdoe)\n"), "\(opened.said)")

        let server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0", "--password-stdin"],
            environment: try sandbox.environment(), folder: sandbox.folder.path,
            input: try sandbox.folder.write("passphrase", "\(Self.passphrase)\n"),
            capture: sandbox.folder.file("serve"))
        let address = try server.line(after: "countersign: listening on ")
        let served = try sandbox.succeed("status")
        #expect(served.contains("\nproxy        listening on \(address)\n"), "\(served)")
        #expect(served.contains("\n             process \(server.pid) since 20"), "\(served)")
        #expect(served.contains("\nvault        open, with a passphrase\n") && served.contains("(jdoe)"), "\(served)")
        try sandbox.succeed("vault", "lock")
        let locked = try sandbox.countersign("status")
        #expect(locked.status == 1 && locked.output.contains("\nvault        locked\n"), "\(locked.said)")
        #expect(locked.output.contains("\n  the vault is locked\n      `countersign vault unlock`\n"), "\(locked.said)")
        #expect(try report()["signIns"] == nil)
    }

    @Test func aDamagedVaultHidesNothingElse() throws {
        try enrol()
        try sandbox.succeed("sites", "add", "https://git.corp.example")
        #expect(try sandbox.sh("printf x | dd of=home/vault bs=1 seek=200 conv=notrunc").status == 0)
        let shown = try sandbox.countersign("status")
        #expect(shown.status == 1 && shown.output.contains("\nvault        cannot be opened\n"), "\(shown.said)")
        #expect(shown.output.contains("\nsites        1 line: 1 any scheme\n"), "\(shown.said)")
        #expect(try subjects() == ["vault"])
    }

    @Test func anErrorInTheListIsShownWithItsPlace() throws {
        try sandbox.succeed("sites", "add", "https://git.corp.example")
        #expect(try sandbox.sh("echo 'https://a.example awnser=basic' >> home/AllowedSites/local.sites").status == 0)
        let shown = try sandbox.countersign("status")
        #expect(shown.status == 1 && shown.output.contains("\nsites        the list has errors\n"), "\(shown.said)")
        #expect(
            shown.output.contains("\n  AllowedSites/local.sites:2:19: unknown option \"awnser\"\n"), "\(shown.said)")
        #expect(try sandbox.sh("sed -i 2d home/AllowedSites/local.sites && countersign status").status == 0)
    }

    @Test func aRejectedCredentialIsShownUntilItChanges() throws {
        let origin = try ChildProcess(
            try Tool.path("python3"), [Tool.server("challenges.py")], capture: sandbox.folder.file("origin"))
        let site = "http://localhost:\(try origin.line(after: "port "))"
        try enrol()
        try sandbox.succeed("sites", "add", site, "plaintext=yes", "answer=basic")
        _ = try sandbox.sh("countersign exec -- curl -s -o /dev/null \(site)/basic")
        let shown = try sandbox.countersign("status")
        #expect(shown.status == 1, "\(shown.said)")
        #expect(
            shown.output.contains("\n  credential \"enrollment\": rejected at \(site) (basic, realm \"tools\") since"))
        #expect(
            shown.output.contains(
                """
                      `countersign credential set --user jdoe` with the right password
                      `countersign credential retry enrollment` permits an attempt

                """), "\(shown.said)")
        #expect(try subjects() == ["credential"])
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "secret\n")
        #expect(try sandbox.succeed("status").hasSuffix("\nNothing needs your attention.\n"))
    }

    @Test func theScreenFollowsTheHome() throws {
        let terminal = try PseudoTerminal(
            [try Sandbox.executable, "status", "--watch"], environment: try sandbox.environment())
        try terminal.waits(for: "sites        none listed;")
        try enrol()
        try sandbox.succeed("sites", "add", "https://git.corp.example")
        try terminal.waits(for: "sites        1 line: 1 any scheme\u{1B}[K")
        let refused = try sandbox.countersign("status", "--watch")
        #expect(refused.status == 1 && refused.error.contains("--watch needs a terminal"), "\(refused.said)")
        #expect(try sandbox.countersign("status", "--watch", "--json").status == 64)
    }

    @Test func aPausedHomeSaysHowToGoOn() throws {
        try sandbox.succeed("pause")
        let shown = try sandbox.countersign("status")
        #expect(shown.status == 1 && shown.output.contains("\n      `countersign resume`\n"), "\(shown.said)")
        try sandbox.succeed("resume")
        #expect(try sandbox.countersign("status").status == 0)
    }
}
