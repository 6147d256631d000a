// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

@testable import Countersign

/// `countersign serve` as a process: listening addresses, signals, reloads, the vault, systemd.
@Suite(.waiting) struct ServeTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try sandbox.succeed("sites", "add", "https://localhost:1", "answer=basic")
    }

    /// The proxy's status for a CONNECT to a listed site that is down: 502 if it tried to connect, 503 while the vault
    /// is locked.
    private func connectStatus(_ server: ChildProcess, login: String = "") throws -> String {
        let port = try server.line(after: "countersign: listening on 127.0.0.1:")
        return try sandbox.sh(
            "curl -s -o /dev/null -w '%{http_connect}' -x http://\(login)127.0.0.1:\(port) https://localhost:1/"
        ).output
    }

    private func waitForLog(_ server: ChildProcess, _ text: String) throws {
        let isLogged: Bool? = poll { server.errorOutput.contains(text) ? true : nil }
        try #require(isLogged == true, "no \(text.debugDescription) in: \(server.errorOutput)")
    }

    @Test func startRemovesTheTemporaryFilesOfKilledWriters() throws {
        let abandoned = [
            "AllowedSites/work.sites.4711.1.new", "Certs/identities/laptop.pem.4711.1.new",
            "Certs/anchors/a.pem.4711.1.new", "breaker.4711.1.new", "vault.key.new",
        ]
        for name in abandoned { try sandbox.folder.write("home/\(name)", "x") }
        try #require(abandoned.allSatisfy { access("\(sandbox.home)/\($0)", F_OK) == 0 })
        let server = try sandbox.serve()
        #expect(abandoned.filter { access("\(sandbox.home)/\($0)", F_OK) == 0 } == [])
        server.send(SIGTERM)
        #expect(server.waitForExit() == 0)
    }

    // MARK: Listening addresses

    @Test func aSecondServerOfTheHomeNamesTheFirst() throws {
        let server = try sandbox.serve()
        let address = try server.line(after: "countersign: listening on ")
        let second = try sandbox.countersign("serve", "--listen", address)
        #expect(second.status == 1)
        #expect(
            second.error == """
                countersign: error: cannot listen on \(address): countersign serve (pid \(server.pid)) of this home is \
                listening there
                countersign: hint: use that one, stop it with `kill \(server.pid)`, or choose another address with --listen

                """, "\(second.said)")
    }

    @Test
    func everyAddressAcceptsConnectionsOnceItIsPrinted() throws {
        let socket = sandbox.folder.file("new/folder/door.sock")
        #expect(try sandbox.sh("mkdir new && mkdir -m 700 new/folder").status == 0)
        let server = try sandbox.serve("--listen", "[::1]:0", "--listen", "unix:\(socket)")
        let lines = server.output.split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines.first?.hasPrefix("countersign: listening on 127.0.0.1:") == true)
        #expect(lines.dropFirst().first?.hasPrefix("countersign: listening on [::1]:") == true)
        #expect(lines.last == "countersign: listening on unix:\(socket)")
        #expect(try connectStatus(server) == "502")
        // A request for the proxy itself.
        let overUnix = try sandbox.sh("curl -s -o /dev/null -w '%{http_code}' --unix-socket \(socket) http://a/")
        #expect(overUnix.output == "400", "\(overUnix.said)")
        #expect(try sandbox.sh("stat -c %a \(socket) new/folder").output == "600\n700\n")
    }

    @Test
    func portInUseIsAnErrorNamingTheAddress() throws {
        let port = try sandbox.serve().line(after: "countersign: listening on ")
        let server = try sandbox.serve()
        let taken = try server.line(after: "countersign: listening on ")
        let second = try sandbox.countersign("serve", "--home", "other", "--listen", taken)
        #expect(second.status == 1)
        #expect(second.error.contains("countersign: error: cannot listen on \(taken): Address already in use\n"))
        #expect(port != taken)
    }

    @Test
    func staleUnixSocketIsReplacedAndALiveOneIsNot() throws {
        let socket = sandbox.folder.file("door.sock")
        let first = try sandbox.serve("--listen", "unix:\(socket)")
        let second = try sandbox.countersign("serve", "--listen", "unix:\(socket)")
        #expect(second.status == 1)
        #expect(second.error == "countersign: error: another process listens on unix:\(socket)\n")
        first.send(SIGKILL)
        _ = first.waitForExit()
        #expect(access(socket, F_OK) == 0)
        _ = try sandbox.serve("--listen", "unix:\(socket)")
    }

    @Test
    func clientTokenIsRequired() throws {
        try sandbox.folder.write("token", "0123456789abcdef\n")
        chmod(sandbox.folder.file("token"), 0o600)
        let server = try sandbox.serve("--client-token-file", "token")
        #expect(try connectStatus(server) == "407")
        #expect(try connectStatus(server, login: "countersign:0123456789abcdeF@") == "407")
        #expect(try connectStatus(server, login: "countersign:0123456789abcdef@") == "502")
    }

    // MARK: Signals

    @Test(arguments: [SIGTERM, SIGINT])
    func signalStopsItWithStatusZeroAndCleansUp(_ signal: Int32) throws {
        let socket = sandbox.folder.file("door.sock")
        let server = try sandbox.serve("--listen", "unix:\(socket)")
        server.send(signal)
        #expect(server.waitForExit() == 0)
        #expect(access(socket, F_OK) != 0)
        #expect(access("\(sandbox.home)/run/control.sock", F_OK) != 0)
        #expect(
            !server.errorOutput.contains("error:") && !server.errorOutput.contains("warning:"), "\(server.errorOutput)")
    }

    /// With this configuration, no OpenSSL provider can create elliptic-curve keys from their parameters.
    @Test
    func keysLoadWithAnOpenSSLEngineConfiguredForAllAlgorithms() throws {
        try sandbox.succeed("exec", "--", "true")
        let configuration = try sandbox.folder.write(
            "openssl.cnf",
            """
            openssl_conf = all
            [all]
            engines = engines
            [engines]
            pkcs11 = token
            [token]
            engine_id = pkcs11
            MODULE_PATH = \(SoftToken.modulePath)
            default_algorithms = ALL

            """)
        let environment = try SoftToken().environment.merging(["OPENSSL_CONF": configuration]) { $1 }
        let server = try sandbox.serve(environment: environment)
        #expect(try connectStatus(server) == "502", "\(server.errorOutput)")
    }

    @Test
    func secondSignalStopsItImmediately() throws {
        let server = try sandbox.serve()
        let port = try server.line(after: "countersign: listening on 127.0.0.1:")
        // A request without a response delays the first signal's shutdown.
        let origin = try SilentOrigin()
        let client = try ChildProcess(
            "/usr/bin/curl", ["-s", "-x", "http://127.0.0.1:\(port)", "http://127.0.0.1:\(origin.port)/"],
            capture: sandbox.folder.file("client"))
        #expect(origin.waitForClient())
        server.send(SIGTERM)
        #expect(server.waitForExit(seconds: 1) == nil)
        server.send(SIGTERM)
        #expect(server.waitForExit() == 128 + SIGTERM)
        client.stop()
    }

    @Test
    func hangupReloadsTheHome() throws {
        let server = try sandbox.serve()
        server.send(SIGHUP)
        try waitForLog(server, "countersign: info: read \(sandbox.home) again: 1 site, 0 credentials, 0 identities\n")
        #expect(server.exitStatus == nil)
    }

    // MARK: Reloads

    @Test
    func invalidListKeepsThePreviousOne() throws {
        let log = sandbox.folder.file("access.log")
        let server = try sandbox.serve("--access-log", log)
        try sandbox.folder.write(
            "home/AllowedSites/work.sites", "https://localhost:2\nhttps://a.example awnser=basic\n")
        try waitForLog(server, "countersign: warning: keeping the previous list of sites\n")
        #expect(server.errorOutput.contains("error: AllowedSites/work.sites:2:19: unknown option \"awnser\"\n"))
        #expect(server.errorOutput.contains("hint: did you mean \"answer\"?\n"))
        #expect(try connectStatus(server) == "502")
        let entry: String? = poll { TextFile.lines(log).last }
        #expect(
            entry?.contains(#""decision":"intercept","rule":"AllowedSites/local.sites:1""#) == true, "\(entry ?? "")")

        try sandbox.folder.write("home/AllowedSites/work.sites", "https://localhost:2\n")
        try waitForLog(server, "again: 2 sites")
    }

    /// Replacing the policy closes all pooled connections, so it happens only on a change.
    @Test
    func rewritingAFileUnchangedHasNoEffect() throws {
        let server = try sandbox.serve()
        let good = sandbox.folder.text("home/AllowedSites/local.sites")
        // Each error is logged when the files are checked, so the unchanged list was checked between the two errors.
        for fault in ["one", "two"] {
            try sandbox.folder.write("home/AllowedSites/local.sites", "https://a.example \(fault)=\n")
            try waitForLog(server, "unknown option \"\(fault)\"")
            try sandbox.folder.write("home/AllowedSites/local.sites", good)
        }
        #expect(!server.errorOutput.contains("again:"), "\(server.errorOutput)")
    }

    @Test
    func invalidAnchorDoesNotStopOtherReloads() throws {
        let server = try sandbox.serve()
        try sandbox.folder.write("home/Certs/anchors/bad.pem", "hello")
        try waitForLog(server, "countersign: warning: keeping the previous trust anchors\n")
        try sandbox.succeed("sites", "add", "https://localhost:2")
        try waitForLog(server, "again: 2 sites")
    }

    @Test
    func newCredentialIsUsedWithoutARestart() throws {
        let server = try sandbox.serve()
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary\n")
        try waitForLog(server, "again: 1 site, 1 credential, 0 identities\n")
        try sandbox.succeed(
            "certificate", "import", "\(Tool.repository)/Certs/dev/pki/client-a.p12", "--name", "a", "--password-stdin",
            input: "fixture\n")
        try waitForLog(server, "again: 1 site, 1 credential, 1 identity\n")
        #expect(!server.errorOutput.contains("canary"))
    }

    // MARK: The vault

    @Test
    func lockedVaultInterceptsNothing() throws {
        let server = try sandbox.serve()
        #expect(try connectStatus(server) == "502")
        #expect(try sandbox.succeed("vault", "lock") == "vault locked\n")
        #expect(try connectStatus(server) == "503")
        #expect(try sandbox.succeed("vault", "status").contains("\nserver     process \(server.pid), locked\n"))
        // Changes to the home do not unlock it.
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary\n")
        try sandbox.succeed("sites", "add", "https://localhost:2")
        try waitForLog(server, "again: 2 sites, the vault is locked\n")
        #expect(try connectStatus(server) == "503")
        #expect(try sandbox.succeed("vault", "unlock") == "vault unlocked\n")
        #expect(try connectStatus(server) == "502")
        #expect(try sandbox.succeed("vault", "status").contains("\nserver     process \(server.pid), open\n"))
    }

    @Test
    func vaultWithAPassphraseStaysLockedUntilUnlock() throws {
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary\n")
        try sandbox.succeed("vault", "rekey", "--passphrase", "--password-stdin", input: "canary-passphrase\n")
        let server = try sandbox.serve()
        try waitForLog(server, "countersign: hint: run `countersign vault unlock`\n")
        #expect(try connectStatus(server) == "503")
        let wrong = try sandbox.countersign("vault", "unlock", "--password-stdin", input: "canary-wrong\n")
        #expect(wrong.status == 1)
        #expect(wrong.error.contains("the passphrase does not open the vault"))
        #expect(try connectStatus(server) == "503")
        try sandbox.succeed("vault", "unlock", "--password-stdin", input: "canary-passphrase\n")
        #expect(try connectStatus(server) == "502")
        #expect(!(server.errorOutput + wrong.said).contains("canary"))
    }

    @Test
    func passphraseCanComeFromStandardInput() throws {
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary\n")
        try sandbox.succeed("vault", "rekey", "--passphrase", "--password-stdin", input: "canary-passphrase\n")
        let wrong = try sandbox.countersign(
            "serve", "--listen", "127.0.0.1:0", "--password-stdin", input: "canary-wrong\n")
        #expect(wrong.status == 1)
        #expect(wrong.output.isEmpty)
        let input = try sandbox.folder.write("passphrase", "canary-passphrase\n")
        let server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0", "--password-stdin"],
            environment: try sandbox.environment(), folder: sandbox.folder.path, input: input,
            capture: sandbox.folder.file("serve"))
        #expect(try connectStatus(server) == "502")
    }

    // MARK: The control socket

    @Test
    func controlSocketIsPrivateAndRejectsInvalidRequests() throws {
        let server = try sandbox.serve()
        #expect(try sandbox.sh("stat -c %a home/run home/run/control.sock").output == "700\n600\n")
        for nonsense in [
            "hello", "{}", #"{"command":"open"}"#, String(repeating: "x", count: LocalSocket.lineBytes + 1),
        ] {
            let reply = try JSONDecoder().decode(
                ControlReply.self, from: Data(try #require(try answer(to: nonsense), "\(nonsense.prefix(30))")))
            #expect(reply.error?.hasPrefix("the request is malformed: ") == true)
        }
        let status = try #require(try answer(to: #"{"command":"status"}"#))
        var reply = try JSONDecoder().decode(ControlReply.self, from: Data(status))
        #expect(try #require(reply.since) <= Int64(time(nil)) && reply.version?.contains("(commit ") == true)
        (reply.since, reply.version) = (nil, nil)
        let address = server.output.split(separator: " ").last.map { $0.trimmingCharacters(in: .newlines) }
        var expected = ControlReply(isLocked: false, processIdentifier: server.pid, addresses: [try #require(address)])
        expected.operations = OperationTable.names
        expected.kerberos = KerberosEnvironment(try sandbox.environment(), folder: sandbox.folder.path)
        expected.knowsRoutes = true
        #expect(reply == expected)
    }

    @Test
    func envFindsTheRunningProxyAndItsToken() throws {
        let token = "0123456789abcdef"
        _ = try sandbox.sh("umask 077; echo \(token) > token")
        let server = try sandbox.serve("--client-token-file", "token")
        let address = try #require(server.output.split(separator: " ").last).trimmingCharacters(in: .newlines)
        let printed = try sandbox.sh("cd /; countersign env | sed -n 2p")
        #expect(printed.output == "export http_proxy='http://countersign:\(token)@\(address)'\n", "\(printed.said)")
        #expect(printed.error.isEmpty)
    }

    private func answer(to line: String) throws -> [UInt8]? {
        guard let socket = try LocalSocket.connect(to: "\(sandbox.home)/run/control.sock") else {
            throw HarnessError("nothing listens on the control socket")
        }
        _ = socket.send(line: Array(line.utf8))
        guard case .line(let reply) = socket.receiveLine() else { return nil }
        return reply
    }

    @Test
    func secondServerDoesNotTakeOverTheControlSocket() throws {
        let first = try sandbox.serve()
        let second = try sandbox.serve()
        try waitForLog(
            second,
            "countersign: warning: another server of this home is listening on \(sandbox.home)/run/control.sock\n")
        second.send(SIGTERM)
        #expect(second.waitForExit() == 0)
        #expect(try sandbox.succeed("vault", "status").contains("process \(first.pid), open"))
    }

    @Test
    func concurrentlyStartedServersShareOneCA() throws {
        let servers = try (0..<4).map { index in
            try ChildProcess(
                try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0"], environment: try sandbox.environment(),
                capture: sandbox.folder.file("at-once-\(index)"))
        }
        for server in servers { #expect(try connectStatus(server) == "502", "\(server.errorOutput)") }
        #expect(
            try sandbox.sh(
                "openssl verify -CAfile home/Certs/interception/root.pem home/Certs/interception/issuing.pem"
            ).status == 0)
        #expect(try sandbox.countersign("exec", "--", "true").status == 0)
    }

    // MARK: systemd

    @Test(arguments: [false, true])
    func systemdIsNotifiedOfStartAndStop(_ isAbstract: Bool) throws {
        let name = isAbstract ? "@countersign-\(UUID().uuidString)" : sandbox.folder.file("notify.sock")
        let socket = try NotifySocket(name)
        let server = try sandbox.serve(environment: ["NOTIFY_SOCKET": name])
        #expect(socket.receive() == "READY=1")
        server.send(SIGTERM)
        #expect(socket.receive() == "STOPPING=1")
        #expect(server.waitForExit() == 0)
    }
}
