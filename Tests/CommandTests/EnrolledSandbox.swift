// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// A home and an EST server.
final class EnrolledSandbox: Sendable {
    let sandbox: Sandbox
    let server: ESTServer
    /// Extra environment variables for the server and all commands.
    private let environment: [String: String]

    /// The server requires a password or a client certificate.
    static let usual: [String: any Sendable] = ["auth": "basic", "clientCertificate": "optional"]

    /// - Parameters:
    ///   - control: extra configuration keys for est_server.py.
    ///   - credential: the password to store for ESTServer.user, or nil for none.
    init(
        _ control: [String: any Sendable] = [:], credential: String? = ESTServer.password,
        environment: [String: String] = [:]
    ) throws {
        sandbox = try Sandbox()
        self.environment = environment
        server = try ESTServer(try Self.text(control), environment: environment)
        if let credential { try set(credential: credential) }
    }

    /// Replaces the server's configuration.
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

    /// `certificate enroll laptop`, with the server's anchor unless `flags` choose another.
    func enroll(_ flags: String..., name: String = "laptop") throws -> CommandResult {
        let trusts = flags.contains("--anchor") || flags.contains("--fingerprint")
        return try run(
            ["enroll", name, "--est", server.address()]
                + (trusts ? [] : ["--anchor", server.certificate("ca")]) + flags)
    }

    /// `certificate enroll laptop` with no anchor but those in `flags`, and additional environment variables.
    func enrollWithoutAnchor(_ flags: String..., environment: [String: String] = [:]) throws -> CommandResult {
        try Command.run(
            "/usr/bin/setsid",
            ["--wait", try Sandbox.executable, "certificate", "enroll", "laptop", "--est", server.address()] + flags,
            environment: try sandbox.environment(adding: environment), folder: sandbox.folder.path,
            in: sandbox.folder)
    }

    func refresh(_ arguments: String...) throws -> CommandResult { try run(["refresh"] + arguments) }

    func needsRefresh(_ arguments: String...) throws -> CommandResult { try run(["needs-refresh"] + arguments) }

    /// Runs `certificate` with the clock set `days` ahead.
    func certificate(_ arguments: String..., daysAhead days: Int) throws -> CommandResult {
        try run(arguments, environment: try FakeTime.environment(days: days))
    }

    private func run(_ arguments: [String]) throws -> CommandResult {
        try run(arguments, environment: environment)
    }

    private func run(_ arguments: [String], environment own: [String: String]) throws -> CommandResult {
        // Only the innermost command gets these variables, not its wrappers; see FakeTime.
        let waiting =
            own.isEmpty
            ? ["/usr/bin/setsid", "--wait"]
            : own.map { "\($0.key)=\($0.value)" } + ["/usr/bin/setsid", "--fork", "--wait"]
        return try Command.run(
            "/usr/bin/env", waiting + [try Sandbox.executable, "certificate"] + arguments,
            environment: try sandbox.environment(), folder: sandbox.folder.path, in: sandbox.folder)
    }

    // MARK: State

    func chainPath(_ name: String = "laptop") -> String { "\(sandbox.home)/Certs/identities/\(name).pem" }

    var vault: OpenVault {
        get throws {
            try SealedVault(home: sandbox.home).open { throw HarnessError("unexpected request for a passphrase") }
        }
    }

    /// The identity as a proxy would load it, or nil if it is incomplete.
    func identity(_ name: String = "laptop") throws -> Identity? {
        StoredIdentity(named: name, in: try vault.contents, home: Home(path: sandbox.home)).identity
    }

    /// The leaf in the chain file.
    func leaf(_ name: String = "laptop") throws -> Certificate {
        try #require(try Certificate.readPEM(TextFile.bytes(chainPath(name))).first)
    }

    /// Whether openssl verifies the file as a client certificate issued by the server's CA, at the time `time` (seconds
    /// since 1970).
    func isVerified(_ name: String = "laptop", by authority: String = "ca", at time: Int64? = nil) throws -> Bool {
        try openssl(
            ["verify", "-CAfile", server.certificate(authority), "-purpose", "sslclient"]
                + (time.map { ["-attime", String($0)] } ?? []) + [chainPath(name)]
        ).status == 0
    }

    func openssl(_ arguments: [String]) throws -> CommandResult {
        try Command.run(try Tool.path("openssl"), arguments, in: sandbox.folder)
    }

    /// Whether neither a record nor a chain of that name exists.
    func hasNothing(of name: String = "laptop") throws -> Bool {
        let contents = try vault.contents
        return contents.enrollments[name] == nil && contents.pendingEnrollments[name] == nil
            && contents.identityKeys[name] == nil && access(chainPath(name), F_OK) != 0
    }
}
