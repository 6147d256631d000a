// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation

/// A sign-in whose profile names an EST service.
final class SignInCertificateBench: Sendable {
    let signIn: SignInSandbox
    let est: ESTServer

    /// `control` is that of the EST server.
    init(_ control: [String: any Sendable] = [:], provider: [String: any Sendable] = [:]) throws {
        est = try ESTServer(try Self.json(control))
        signIn = try SignInSandbox(provider)
        try write()
    }

    /// `own` replaces members of `est` in the profile; nil leaves out `est`.
    func write(_ own: [String: any Sendable]? = [:]) throws {
        var profile: [String: any Sendable] = ["name": "work", "sites": ["https://api.corp.example"]]
        if let own {
            let usual: [String: any Sendable] = [
                "server": est.address(), "anchor": TextFile.text(est.certificate("ca")), "sites": [est.address()],
            ]
            profile["est"] = usual.merging(own) { _, new in new }
        }
        try sandbox.folder.write("profile.json", try signIn.provider.profile(profile))
    }

    private static func json(_ control: [String: any Sendable]) throws -> String {
        let usual: [String: any Sendable] = ["auth": "bearer", "clientCertificate": "optional"]
        let all = usual.merging(control) { _, new in new }
        return String(decoding: try JSONSerialization.data(withJSONObject: all), as: UTF8.self)
    }

    func control(_ control: [String: any Sendable]) throws { try est.set(try Self.json(control)) }

    var sandbox: Sandbox { signIn.sandbox }
    func enroll(_ flags: String...) throws -> CommandResult {
        try signIn.run(["enroll", "profile.json", "--yes"] + flags)
    }

    var vault: VaultContents {
        get throws {
            try SealedVault(home: sandbox.home).open { throw HarnessError("the vault has a passphrase") }.contents
        }
    }

    var certificate: [String: Any]? {
        get throws { try signIn.status.first?["certificate"] as? [String: Any] }
    }

    var identity: Identity? {
        get throws {
            StoredIdentity(named: "work", in: try vault, home: Home(path: sandbox.home)).identity
        }
    }

    var hasFile: Bool { FileManager.default.fileExists(atPath: "\(sandbox.home)/Certs/identities/work.pem") }
    var sites: String { get throws { try sandbox.succeed("sites", "list", "--no-header") } }

    /// The client's name at the EST server's site, through a proxy.
    func visit(_ proxy: ChildProcess, port: String) throws -> String? {
        let said = try sandbox.sh(
            "curl -s -o body -w '%{http_code}' --cacert home/Certs/interception/bundle.pem "
                + "-x http://127.0.0.1:\(port) \(est.address())/.well-known/est/cacerts", seconds: 60)
        guard said.output == "200" else { throw HarnessError("\(said.said)\n\(proxy.errorOutput)") }
        return est.log.last?.client
    }

    /// Enrols an identity with a password.
    func enrollOther(
        as name: String = "laptop", credential: String = "est", control own: [String: any Sendable] = [:],
        _ flags: String..., status: Int32 = 0
    ) throws {
        try control(["auth": "basic"].merging(own) { _, new in new })
        try sandbox.succeed(
            "credential", "set", credential, "--user", ESTServer.user, "--password-stdin",
            input: ESTServer.password + "\n")
        let arguments =
            ["certificate", "enroll", name, "--est", est.address(), "--anchor", est.certificate("ca")]
            + ["--credential", credential] + flags
        let result = try signIn.run(arguments)
        guard result.status == status else { throw HarnessError(result.said) }
        try control([:])
    }

    /// Starts a command that is not waited for.
    func start(_ arguments: String..., capture: String) throws -> ChildProcess {
        try ChildProcess(
            try Sandbox.executable, arguments,
            environment: try sandbox.environment(adding: signIn.environment), folder: sandbox.folder.path,
            capture: sandbox.folder.file(capture))
    }

    /// Kills `enroll` while the server, which has the fault `slow`, keeps it waiting.
    func kill() throws {
        let seen = est.requests("simpleenroll").count
        let command = try start("enroll", "profile.json", "--yes", capture: "killed")
        guard poll({ est.requests("simpleenroll").count > seen ? true : nil }) == true else {
            throw HarnessError("no request was sent: \(command.errorOutput)")
        }
        command.send(SIGKILL)
        _ = command.waitForExit()
        guard try vault.pendingEnrollments["work"] != nil else { throw HarnessError("no request was left behind") }
    }

    func change(_ body: @Sendable (inout VaultContents) throws -> Void) throws {
        let vault = try SealedVault(home: sandbox.home).open { throw HarnessError("the vault has a passphrase") }
        try vault.update(body)
    }

    /// Makes the access token expire.
    func expireToken() throws {
        try change { contents in
            guard var record = contents.signIns["work"] else { throw HarnessError("there is no sign-in") }
            record.expires = 1
            try contents.updateSignIn(record)
        }
    }

    /// The requests that were sent with an access token.
    var tokensSent: Int { est.log.filter { $0.authorization == "Bearer" }.count }
}
