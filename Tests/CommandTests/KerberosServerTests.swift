// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import Countersign

/// Commands that use the vault which the running `serve` has open, with Kerberos tickets of their own.
@Suite(.waiting) struct KerberosServerTests {
    private static let passphrase = "canary-passphrase"
    private static let warning = """
        countersign: warning: `countersign serve` runs with another KRB5CCNAME, so this command opens the vault itself

        """

    private let realm: KerberosRealm
    private let origin: BindingKerberosOrigin
    private let sandbox: Sandbox
    private let server: ChildProcess

    /// `serve` has the tickets of jdoe, and robot has others.
    init() throws {
        realm = try KerberosRealm(services: ["HTTP/www.test.localhost"])
        origin = try BindingKerberosOrigin(realm)
        sandbox = try Sandbox()
        try sandbox.folder.write("home/Certs/anchors/origin.pem", TextFile.bytes(TestPKI.shared.originAnchor))
        try sandbox.succeed("sites", "add", origin.url, "answer=negotiate")
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary-one\n")
        try sandbox.succeed("vault", "rekey", "--passphrase", "--password-stdin", input: "\(Self.passphrase)\n")
        try realm.kinit(cache: "tickets")
        let robot = try Command.run(
            try Tool.path("kinit"), ["-k", "-t", realm.robotKeytab, KerberosRealm.robot],
            environment: realm.environment(cache: "robots"), in: realm.folder)
        #expect(robot.status == 0, "\(robot.said)")
        let input = try sandbox.folder.write("passphrase", "\(Self.passphrase)\n")
        server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0", "--password-stdin"],
            environment: try sandbox.environment(adding: realm.environment(cache: "tickets")),
            folder: sandbox.folder.path, input: input, capture: sandbox.folder.file("serve"))
        _ = try server.line(after: "countersign: listening on ")
    }

    private func countersign(_ words: [String], cache: String, input: String = "") throws -> CommandResult {
        try Command.run(
            "/usr/bin/setsid", ["--wait", try Sandbox.executable] + words,
            environment: try sandbox.environment(adding: realm.environment(cache: cache)),
            folder: sandbox.folder.path, input: input, in: sandbox.folder)
    }

    private var request: [String] { ["--", "curl", "-sS", origin.url] }

    @Test func aCommandWithTheTicketsOfTheServerUsesTheServer() throws {
        let result = try countersign(["exec"] + request, cache: "tickets")
        #expect(result.output == "jdoe@CORP.TEST 0" && result.error.isEmpty, "\(result.said)")
        let explanation = try countersign(["explain", origin.url], cache: "tickets")
        #expect(explanation.output.contains("ticket of jdoe@CORP.TEST"), "\(explanation.said)")
        #expect(explanation.error.isEmpty)
        #expect(try countersign(["test", origin.url], cache: "tickets").status == 0)
    }

    @Test func aCommandWithOtherTicketsUsesThem() throws {
        for words in [["exec"] + request, ["explain", origin.url], ["test", origin.url]] {
            let asking = try countersign(words, cache: "robots")
            #expect(asking.error.hasPrefix(Self.warning), "\(words): \(asking.said)")
            #expect(asking.error.contains("the vault needs its passphrase"), "\(words): \(asking.said)")
        }
        let result = try countersign(
            ["exec", "--password-stdin"] + request, cache: "robots", input: "\(Self.passphrase)\n")
        #expect(result.output == "robot@CORP.TEST 0", "\(result.said)")
    }

    @Test func otherTicketsMatterToEachLineOfTheSite() throws {
        try sandbox.succeed("sites", "remove", origin.url)
        try sandbox.succeed("sites", "add", origin.url, "methods=POST", "answer=basic")
        try sandbox.succeed("sites", "add", origin.url, "methods=GET", "answer=negotiate")
        let asking = try countersign(["explain", origin.url], cache: "robots")
        #expect(asking.error.hasPrefix(Self.warning), "\(asking.said)")
    }

    /// Where no ticket can be the answer, other tickets do not matter.
    @Test func otherTicketsDoNotMatterWithoutNegotiate() throws {
        try sandbox.succeed("sites", "remove", origin.url)
        try sandbox.succeed("sites", "add", origin.url, "answer=basic")
        let result = try countersign(["exec", "--", "true"], cache: "robots")
        #expect(result.status == 0 && result.error.isEmpty, "\(result.said)")
        #expect(try countersign(["explain", origin.url], cache: "robots").error.isEmpty)
    }

    // MARK: A client keytab

    /// `explain` with the keys of robot, and without tickets.
    private func explain(configuration: String? = nil) throws -> CommandResult {
        var own = realm.environment(cache: "none")
        own["KRB5_CLIENT_KTNAME"] = realm.robotKeytab
        if let configuration { own["KRB5_CONFIG"] = configuration }
        return try Command.run(
            "/usr/bin/setsid", ["--wait", try Sandbox.executable, "explain", "--password-stdin", origin.url],
            environment: try sandbox.environment(adding: own), folder: sandbox.folder.path,
            input: "\(Self.passphrase)\n", in: sandbox.folder)
    }

    @Test func aClientKeytabObtainsTheTicketThatExplainShows() throws {
        let explained = try explain()
        #expect(explained.output.contains("yes: Kerberos ticket of robot@CORP.TEST, valid until "), "\(explained.said)")
    }

    @Test func aKDCThatDoesNotRunIsNotAMissingTicket() throws {
        realm.stop()
        let explained = try explain()
        #expect(explained.output.contains("no: no KDC responds; check the network"), "\(explained.said)")
    }

    @Test func aKDCThatRejectsTheClientKeytabIsNotAMissingTicket() throws {
        try realm.replaceKeys(of: KerberosRealm.robot)
        let explained = try explain()
        #expect(explained.output.contains("no: Kerberos: Preauthentication failed"), "\(explained.said)")
    }

    /// The library would wait for most of a minute.
    @Test func explainWaitsBrieflyForAKDC() throws {
        let silent = try SilentListener()
        let configuration = try sandbox.folder.write(
            "krb5.conf", KerberosRealm.configuration(kdc: "127.0.0.1:\(silent.port)"))
        let explained = try explain(configuration: configuration)
        #expect(silent.waitForMessage())
        #expect(explained.output.contains("no: Kerberos took too long; check the network"), "\(explained.said)")
    }

    // MARK: The variables

    private static func environment(_ variables: [String: String], folder: String = "/home/jdoe") -> KerberosEnvironment
    {
        KerberosEnvironment(variables, folder: folder)
    }

    @Test(
        arguments: [
            (["KRB5CCNAME": "FILE:/tmp/a"], ["KRB5CCNAME": "FILE:/tmp/a", "HOME": "/x"], []),
            (["KRB5CCNAME": "FILE:/tmp/a"], ["KRB5CCNAME": "FILE:/tmp/b"], ["KRB5CCNAME"]),
            ([:], ["KRB5CCNAME": ""], ["KRB5CCNAME"]),
            (
                ["KRB5_CONFIG": "/etc/a"], ["KRB5_KTNAME": "/k", "KRB5_CLIENT_KTNAME": "/k"],
                ["KRB5_CONFIG", "KRB5_KTNAME", "KRB5_CLIENT_KTNAME"]
            ),
        ] as [([String: String], [String: String], [String])])
    func theDifferencesAreNamed(one: [String: String], other: [String: String], names: [String]) {
        #expect(Self.environment(one).differences(from: Self.environment(other)) == names)
    }

    @Test(arguments: [
        ("FILE:/tmp/a", true), ("/tmp/a", true), ("DIR:/tmp/a", true), ("DIR::/tmp/a/tkt", true),
        ("KEYRING:persistent:1000", true), ("KCM:", true), ("/etc/krb5.conf:/etc/more.conf", true),
        ("FILE:tickets", false), ("tickets", false), ("DIR::tickets/tkt", false), ("/etc/krb5.conf:more.conf", false),
    ])
    func aRelativeFileNameDependsOnTheFolder(value: String, isSame: Bool) {
        let one = Self.environment(["KRB5CCNAME": value], folder: "/home/a")
        #expect((one == Self.environment(["KRB5CCNAME": value], folder: "/home/b")) == isSame)
    }
}
