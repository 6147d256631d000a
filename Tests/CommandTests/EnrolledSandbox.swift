// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Countersign
import CountersignCryptography
import Foundation
import CountersignTestOrigin
import Testing
import CountersignVault

/// A home, and an EST server that it can enrol at.
final class EnrolledSandbox: Sendable {
    let sandbox: Sandbox
    let server: ESTServer
    /// Added to the environment of the server and of every command.
    private let environment: [String: String]

    /// Asks for a password, and for a client certificate in its place.
    static let usual: [String: any Sendable] = ["auth": "basic", "clientCertificate": "optional"]

    /// - Parameters:
    ///   - control: more of est_server.py's keys.
    ///   - credential: the password that is enrolled for ESTServer.user; nil: none.
    init(
        _ control: [String: any Sendable] = [:], credential: String? = ESTServer.password,
        environment: [String: String] = [:]
    ) throws {
        sandbox = try Sandbox()
        self.environment = environment
        server = try ESTServer(try Self.text(control), environment: environment)
        if let credential { try set(credential: credential) }
    }

    /// Replaces what the server does.
    func control(_ control: [String: any Sendable] = [:]) throws { try server.set(try Self.text(control)) }

    private static func text(_ control: [String: any Sendable]) throws -> String {
        let all = usual.merging(control) { _, new in new }
        return String(decoding: try JSONSerialization.data(withJSONObject: all), as: UTF8.self)
    }

    func set(credential: String, named name: String = "enrollment") throws {
        try sandbox.succeed(
            "credential", "set", name, "--user", ESTServer.user, "--password-stdin", input: credential + "\n")
    }

    // MARK: Commands

    /// `certificate enroll laptop`, by the server's anchor unless told otherwise.
    func enroll(_ flags: String..., name: String = "laptop") throws -> CommandResult {
        let trusts = flags.contains("--anchor") || flags.contains("--fingerprint")
        return try run(
            ["enroll", name, "--est", server.address()]
                + (trusts ? [] : ["--anchor", server.certificate("ca")]) + flags)
    }

    func refresh(_ arguments: String...) throws -> CommandResult { try run(["refresh"] + arguments) }

    func needsRefresh(_ arguments: String...) throws -> CommandResult { try run(["needs-refresh"] + arguments) }

    /// `certificate` with its clock so many days ahead.
    func certificate(_ arguments: String..., daysAhead days: Int) throws -> CommandResult {
        try run(arguments, environment: try FakeTime.environment(days: days))
    }

    private func run(_ arguments: [String]) throws -> CommandResult {
        try run(arguments, environment: environment)
    }

    private func run(_ arguments: [String], environment own: [String: String]) throws -> CommandResult {
        // What waits for the command has its environment, and what is replaced by what waits has not: see FakeTime.
        let waiting =
            own.isEmpty
            ? ["/usr/bin/setsid", "--wait"]
            : own.map { "\($0.key)=\($0.value)" } + ["/usr/bin/setsid", "--fork", "--wait"]
        return try Command.run(
            "/usr/bin/env", waiting + [try Sandbox.executable, "certificate"] + arguments,
            environment: try sandbox.environment(), folder: sandbox.folder.path, in: sandbox.folder)
    }

    // MARK: What is there

    func chainPath(_ name: String = "laptop") -> String { "\(sandbox.home)/Certs/identities/\(name).pem" }

    var vault: OpenVault {
        get throws { try VaultFile(home: sandbox.home).open { throw HarnessError("the vault wants a passphrase") } }
    }

    /// The identity as a proxy would read it; nil where it is not whole.
    func identity(_ name: String = "laptop") throws -> Identity? {
        StoredIdentity(named: name, in: try vault.contents, home: Home(path: sandbox.home)).identity
    }

    /// The leaf of the chain's file.
    func leaf(_ name: String = "laptop") throws -> Certificate {
        try #require(try Certificate.readPEM(TextFile.bytes(chainPath(name))).first)
    }

    /// Whether the openssl command takes the file for a client's certificate of the server's authority; `at` in seconds since 1970.
    func isVerified(_ name: String = "laptop", by authority: String = "ca", at time: Int64? = nil) throws -> Bool {
        try openssl(
            ["verify", "-CAfile", server.certificate(authority), "-purpose", "sslclient"]
                + (time.map { ["-attime", String($0)] } ?? []) + [chainPath(name)]
        ).status == 0
    }

    func openssl(_ arguments: [String]) throws -> CommandResult {
        try Command.run(try Tool.path("openssl"), arguments, in: sandbox.folder)
    }

    /// Nothing of the name is left: no record, no chain.
    func hasNothing(of name: String = "laptop") throws -> Bool {
        let contents = try vault.contents
        return contents.enrollments[name] == nil && contents.pendingEnrollments[name] == nil
            && contents.identityKeys[name] == nil && access(chainPath(name), F_OK) != 0
    }
}
