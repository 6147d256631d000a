// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignChallenges
import CountersignCookies
import CountersignCryptography
import CountersignHome
import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

@testable import Countersign

/// Commands that use the vault which the running `serve` has open. They have neither a terminal nor the passphrase.
@Suite(.waiting) struct VaultServerTests {
    private let sandbox: Sandbox
    private static let passphrase = "canary-passphrase"
    private static let needsPassphrase = """
        countersign: error: the vault needs its passphrase: there is no terminal to ask for the vault's passphrase
        countersign: hint: pass it on standard input with --password-stdin

        """

    init() throws {
        sandbox = try Sandbox()
        try sandbox.succeed("sites", "add", "https://localhost:1", "answer=basic")
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary-one\n")
        try sandbox.succeed(
            "vault", "rekey", "--passphrase", "--password-stdin", input: "\(Self.passphrase)\n")
    }

    /// Starts a server with an open vault.
    private func serve(_ flags: String...) throws -> ChildProcess { try Self.serve(sandbox, flags) }

    private static func serve(_ sandbox: Sandbox, _ flags: [String] = []) throws -> ChildProcess {
        let input = try sandbox.folder.write("passphrase", "\(passphrase)\n")
        let server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0", "--password-stdin"] + flags,
            environment: try sandbox.environment(), folder: sandbox.folder.path, input: input,
            capture: sandbox.folder.file("serve-\(UUID().uuidString)"))
        _ = try server.line(after: "countersign: listening on ")
        return server
    }

    private func client() throws -> ControlConnection {
        try ControlSocket.connect(to: Home(path: sandbox.home))
    }

    // MARK: Commands

    @Test
    func commandsNeedNoPassphraseWhileTheServerHasTheVaultOpen() throws {
        let server = try serve()
        defer { server.send(SIGTERM) }
        let fingerprint = "sha256:" + String(repeating: "5f", count: 32)
        let pki = "\(Tool.repository)/Certs/dev/pki"
        let script = """
            set -e
            exec < /dev/null
            echo canary-two | countersign credential set work --user ACME\\\\jdoe --password-stdin
            echo canary.token | countersign credential set api --token-stdin
            countersign credential list
            countersign credential remove work
            countersign trust allow printer.example --fingerprint \(fingerprint) --answer
            countersign trust list --no-header | cut -d' ' -f1
            countersign trust forget printer.example
            countersign certificate import --name laptop \(pki)/client-a.pem --key-file \(pki)/client-a.key.pem
            countersign certificate list --no-header | cut -d' ' -f1
            countersign certificate inspect laptop | grep -o 'in the vault'
            countersign certificate needs-refresh laptop || true
            countersign certificate refresh
            countersign certificate remove laptop
            countersign ca rotate --yes | tail -n 1
            countersign explain localhost:1 | tail -n 1
            countersign test localhost:1 || true
            """
        let result = try sandbox.sh(script)
        #expect(result.status == 0, "\(result.said)")
        #expect(!(result.said + server.errorOutput).contains("canary"))
        let lines = result.output.split(separator: "\n").map(String.init)
        #expect(lines.first == "credential \"work\" stored for ACME\\jdoe", "\(result.said)")
        for line in [
            "work        password  ACME\\jdoe  no", "api         token     -          no",
            "credential \"work\" removed", "printer.example:443",
            "printer.example:443: 1 trust exception removed", "laptop", "in the vault", "nothing is due",
            "identity \"laptop\" removed",
        ] { #expect(lines.contains(line), "no \(line) in \(result.said)") }
        #expect(result.output.contains("yes: credential \"enrollment\""), "\(result.said)")
        let log = server.errorOutput
        for change in [
            "set credential \"work\"", "removed credential \"work\"",
            "added a trust exception for \"printer.example\", port 443", "imported identity \"laptop\"",
            "replaced the interception CA",
        ] { #expect(log.contains(" has \(change)\n"), "no \(change) in \(log)") }
    }

    @Test
    func changeIsInEffectWhenTheCommandEnds() throws {
        let server = try serve()
        defer { server.send(SIGTERM) }
        try sandbox.succeed("credential", "remove", "enrollment")
        let without = try sandbox.succeed("explain", "--json", "localhost:1")
        #expect(without.contains("no credential \\\"enrollment\\\" is enrolled"), "\(without)")
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary-two\n")
        let with = try sandbox.succeed("explain", "--json", "localhost:1")
        #expect(!with.contains("no credential"), "\(with)")
        #expect(with.contains("credential \\\"enrollment\\\""), "\(with)")
    }

    @Test
    func commandsAskIfTheServerIsStoppedLockedOrToldTo() throws {
        #expect(try sandbox.countersign("credential", "list").error == Self.needsPassphrase)
        let server = try serve()
        #expect(try sandbox.succeed("credential", "list").contains("jdoe"))
        try sandbox.succeed("vault", "lock")
        #expect(try sandbox.countersign("credential", "list").error == Self.needsPassphrase)
        #expect(try sandbox.countersign("credential", "remove", "enrollment").error == Self.needsPassphrase)
        try sandbox.succeed("vault", "unlock", "--password-stdin", input: "\(Self.passphrase)\n")
        #expect(try sandbox.succeed("credential", "list").contains("jdoe"))
        server.send(SIGTERM)
        #expect(server.waitForExit() == 0)
        #expect(try sandbox.countersign("credential", "list").error == Self.needsPassphrase)
        let asking = try serve("--ask-passphrase")
        defer { asking.send(SIGTERM) }
        #expect(try sandbox.countersign("credential", "list").error == Self.needsPassphrase)
    }

    @Test
    func rekeyAsksAlthoughTheServerHasTheVaultOpen() throws {
        let server = try serve()
        defer { server.send(SIGTERM) }
        let result = try sandbox.countersign("vault", "rekey", "--key-file")
        #expect(result.error == Self.needsPassphrase, "\(result.said)")
    }

    @Test
    func commandsAskAfterTheServersPassphraseWasChanged() throws {
        let server = try serve()
        defer { server.send(SIGTERM) }
        try sandbox.succeed(
            "vault", "rekey", "--passphrase", "--password-stdin", input: "\(Self.passphrase)\ncanary-new\n")
        #expect(try sandbox.countersign("credential", "list").error == Self.needsPassphrase)
        #expect(
            try sandbox.succeed("credential", "list", "--password-stdin", input: "canary-new\n").contains("jdoe"))
    }

    @Test
    func aPassphraseOnStandardInputIsNeverTheSecret() throws {
        let server = try serve()
        defer { server.send(SIGTERM) }
        let wrong = try sandbox.countersign(
            "credential", "set", "--user", "other", "--password-stdin", input: "not it\nuser: other\n")
        #expect(wrong.status == 1)
        #expect(wrong.error.contains("the passphrase does not open the vault"), "\(wrong.said)")
        #expect(try sandbox.succeed("credential", "list").contains("  jdoe  "))
        try sandbox.succeed(
            "credential", "set", "--user", "other", "--password-stdin", input: "\(Self.passphrase)\ncanary-three\n")
        #expect(try sandbox.succeed("credential", "list").contains("  other  "))
        #expect(try Self.password(of: "enrollment", sandbox) == "canary-three")
    }

    @Test
    func commandsAtTheSameTimeAllPersist() throws {
        let server = try serve()
        let script = """
            for n in 1 2 3 4 5 6; do
              (echo canary-$n | countersign credential set name$n --user user$n --password-stdin) &
            done
            (printf '%s\\ncanary-7\\n' \(Self.passphrase) |
              countersign credential set name7 --user user7 --password-stdin) &
            wait
            """
        let result = try sandbox.sh(script)
        #expect(result.error.isEmpty, "\(result.said)")
        server.send(SIGTERM)
        #expect(server.waitForExit() == 0)
        for number in 1...7 { #expect(try Self.password(of: "name\(number)", sandbox) == "canary-\(number)") }
    }

    private static func password(of name: String, _ sandbox: Sandbox) throws -> String? {
        let vault = try Home(path: sandbox.home).vault.open { Secret(utf8: passphrase) }
        return vault.contents.credentials[name]?.password.utf8Text
    }

    @Test
    func execUsesAProxyOfTheServer() throws {
        let server = try serve()
        defer { server.send(SIGTERM) }
        let status = "curl -s -o /dev/null -w '%{http_connect}\\n'"
        let script = """
            set -e
            \(status) https://localhost:1/ || true
            bare=http://${https_proxy#*@}
            \(status) -x $bare https://localhost:1/ || true
            echo $bare > address
            touch ready
            while [ -e ready ]; do sleep 0.1; done
            exit 3
            """
        try sandbox.folder.write("child", script)
        // Not a descendant: it needs the token.
        let result = try sandbox.sh(
            """
            (while [ ! -e ready ]; do sleep 0.1; done
             \(status) -x $(cat address) https://localhost:1/ > other; rm ready) &
            countersign exec -- sh child; echo exit $?; wait; cat other
            \(status) -x $(cat address) https://localhost:1/
            """)
        // The listed site is down, and the proxy ends with its command.
        #expect(result.output == "502\n502\nexit 3\n407\n000\n", "\(result.said)")
        let asking = try sandbox.countersign("exec", "--access-log", "-", "--", "true")
        #expect(asking.error == Self.needsPassphrase, "\(asking.said)")
    }

    // MARK: Enrolment

    /// An EST server, and a server with an open vault.
    private func enrolling(_ control: [String: any Sendable] = [:]) throws -> (EnrolledSandbox, ChildProcess) {
        let place = try EnrolledSandbox(control)
        try place.sandbox.succeed(
            "vault", "rekey", "--passphrase", "--password-stdin", input: "\(Self.passphrase)\n")
        return (place, try Self.serve(place.sandbox))
    }

    @Test
    func theServerEnrolsAndRenews() throws {
        let (place, server) = try enrolling(["pending": 1, "retryAfter": "5"])
        defer { server.send(SIGTERM) }
        let enrolled = try place.enroll()
        #expect(enrolled.status == 0, "\(enrolled.said)")
        #expect(enrolled.output.hasPrefix("identity \"laptop\" enrolled: CN=jdoe"))
        #expect(enrolled.error.contains("has deferred its decision; next poll at 20"), "\(enrolled.said)")
        let before = try place.leaf()
        let renewed = try place.refresh("laptop")
        #expect(renewed.status == 0, "\(renewed.said)")
        #expect(renewed.output.hasPrefix("identity \"laptop\" refreshed: CN=jdoe"))
        #expect(try place.leaf() != before)
        #expect(try place.isVerified())
        let inspected = try place.sandbox.succeed("certificate", "inspect", "laptop")
        #expect(inspected.contains("in the vault") && inspected.contains(place.server.address()), "\(inspected)")
        for change in ["enrolled identity \"laptop\"", "renewed identity \"laptop\""] {
            #expect(server.errorOutput.contains(" has \(change)\n"), "\(server.errorOutput)")
        }
    }

    @Test
    func theUserChoosesTheAnchorsOfAnEnrolmentInTheServer() throws {
        let (place, server) = try enrolling()
        defer { server.send(SIGTERM) }
        let fingerprint = try #require(
            try Certificate.readPEM(TextFile.bytes(place.server.certificate("ca"))).first
        ).fingerprintText
        let unknown = try place.enrollWithoutAnchor()
        #expect(unknown.status == 1 && unknown.error.contains("was not confirmed"), "\(unknown.said)")
        #expect(try place.sandbox.countersign("certificate", "list").output.isEmpty)
        let chosen = try place.enrollWithoutAnchor("--fingerprint", fingerprint)
        #expect(chosen.status == 0, "\(chosen.said)")
    }

    @Test
    func aRenewalEndsWithTheCommandThatItIsFor() throws {
        let (place, server) = try enrolling()
        defer { server.send(SIGTERM) }
        #expect(try place.enroll().status == 0)
        try place.control(["pending": 9, "retryAfter": "3600"])
        let refresh = try ChildProcess(
            try Sandbox.executable, ["certificate", "refresh", "laptop"], environment: try place.sandbox.environment(),
            folder: place.sandbox.folder.path, capture: place.sandbox.folder.file("refresh"))
        let isWaiting: Bool? = poll { refresh.errorOutput.contains("next poll at") ? true : nil }
        try #require(isWaiting == true, "\(refresh.errorOutput)")
        refresh.send(SIGINT)
        _ = refresh.waitForExit()
        try place.control()
        // The request is still pending, for an hour. Whether the server still renews shows at the lock.
        let isFree: Bool? = poll {
            (try? RenewalLock.acquireIfFree("laptop", of: Home(path: place.sandbox.home))) == nil ? nil : true
        }
        #expect(isFree == true)
    }

    @Test
    func aLockEndsAnEnrolmentForACommand() throws {
        let (place, server) = try enrolling(["pending": 9, "retryAfter": "3600"])
        defer { server.send(SIGTERM) }
        let enroll = try ChildProcess(
            try Sandbox.executable,
            [
                "certificate", "enroll", "laptop", "--est", place.server.address(), "--anchor",
                place.server.certificate("ca"),
            ], environment: try place.sandbox.environment(), folder: place.sandbox.folder.path,
            capture: place.sandbox.folder.file("enroll"))
        let isWaiting: Bool? = poll { enroll.errorOutput.contains("next poll at") ? true : nil }
        try #require(isWaiting == true, "\(enroll.errorOutput)")
        try place.sandbox.succeed("vault", "lock")
        let status = try #require(enroll.waitForExit(), "the enrolment still waits")
        #expect(status == 1 && enroll.errorOutput.contains("lock"), "\(enroll.errorOutput)")
    }

    @Test
    func sitesAddKnowsTheCredentialsOfTheOpenVault() throws {
        let server = try serve()
        defer { server.send(SIGTERM) }
        let known = try sandbox.countersign("sites", "add", "https://a.example", "credential=enrollment")
        #expect(known.status == 0 && known.error.isEmpty, "\(known.said)")
        let unknown = try sandbox.countersign("sites", "add", "https://b.example", "credential=nobody")
        #expect(unknown.error.contains("\"nobody\""), "\(unknown.said)")
    }

    // MARK: The socket

    /// Every operation, with existing values, so that the requests cover all data that the server could reveal.
    private var everyOperation: [(any VaultOperation, Secret?)] {
        get throws {
            let key = try String(contentsOfFile: "\(Tool.repository)/Certs/dev/pki/client-a.key.pem", encoding: .utf8)
            let chain = try ClientPKI.chain()
            let enrollment = EnrollmentRequest(
                name: "est", server: "https://localhost:1", subject: "CN=x", alternativeNames: [],
                keySpecification: "any", credential: "enrollment", identity: nil, replaces: false,
                options: IdentityRenewal.Options(), serverAnchors: nil)
            let signIn = NewSignIn(
                name: "signed-in", profile: "{\"issuer\": \"http://127.0.0.1:1\", \"client_id\": \"c\"}", source: "",
                issuer: "http://127.0.0.1:1", subject: "", account: "", scope: "", sites: [], signedIn: 1, expires: 2,
                formerIssuer: nil)
            let canary = Secret(utf8: "canary-sign-in")
            let cookie = Cookie(
                Cookie.Identity(name: "sid", domain: "login.example", isHostOnly: true, path: "/"),
                value: Secret(utf8: "canary-cookie"), isSecure: true, isHTTPOnly: true, sameSite: .lax, expires: nil,
                stored: Int64(time(nil)))
            var shared = SharedSession(key: SharedSession.Key(group: "corp", host: "login.example"))
            shared.apply(.set(cookie))
            let session = (listed: ListedSession(shared), values: SessionValues.encoded([cookie]))
            let leaf = try #require(chain.first)
            var profile = NewProfile(
                record: ProfileRecord(
                    identifier: "example.corp", name: "Corp", organization: "", signer: nil, installed: 1))
            profile.record.identities = [
                .init(name: "profiled", leafSHA256: leaf.sha256Fingerprint, isBrought: true)
            ]
            profile.chains = [chain.map { Data($0.der) }]
            let profileKeys = ProfileKeys.encoded([try ClientPKI.pkcs8(ofPEM: key)])
            return [
                (ListNames(), nil), (ListCredentials(), nil),
                (SetCredential(name: "socket", user: "jdoe"), Secret(utf8: "canary-socket")),
                (SetToken(name: "token"), Secret(utf8: "canary-token")),
                (
                    SetAWSKeys(name: "aws"),
                    Secret(utf8: #"{"Version":1,"AccessKeyId":"AKIA","SecretAccessKey":"canary-token"}"#)
                ),
                (
                    SetPrincipal(name: "principal", principal: "jdoe@CORP.EXAMPLE", hasKeys: false),
                    Secret(utf8: "canary-socket")
                ),
                (ListTrustExceptions(), nil),
                (
                    AddTrustException(
                        .init(
                            host: "a.example", port: 443, leafSHA256: [UInt8](repeating: 1, count: 32), until: nil,
                            answers: true, made: 1)), nil
                ),
                (RemoveTrustExceptions(host: "a.example", port: 443), nil),
                (ImportIdentity(name: "socket", chain: chain, replaces: true), try ClientPKI.pkcs8(ofPEM: key)),
                (ListIdentities(), nil), (ShowIdentity(name: "socket"), nil), (ListRenewalStates(), nil),
                (RepairIdentity(name: "socket"), nil),
                (RefreshIdentity(name: "socket", options: IdentityRenewal.Options()), nil),
                (CheckEnrollment(name: "est", replaces: false), nil), (EnrollIdentity(enrollment), nil),
                (CheckSignIn(name: "signed-in", sites: [], obtainsCertificate: false), nil),
                (StoreSignIn(signIn), SignInTokens(access: canary, refresh: canary, identity: canary).encoded),
                (
                    StoreSiteToken(
                        signIn: "signed-in", subject: "", issuer: "http://127.0.0.1:1", client: "c",
                        for: SiteDemand(StepUp(maxAge: 0), of: Origin(scheme: .https, host: "a.example", port: 443)),
                        expires: 0),
                    SignInTokens(access: canary, refresh: canary, identity: canary).encoded
                ),
                (GiveToken(name: "signed-in"), nil), (PermitToken(name: "signed-in", isPermitted: true), nil),
                (ListTokenPermissions(), nil),
                (ListSignIns(), nil),
                (RemediateCompliance(name: "signed-in", isSilent: true, languages: "en", seconds: 1), nil),
                (RemoveSignIn(name: "signed-in"), nil),
                (StoreSignIn(signIn), SignInTokens(access: canary, refresh: canary, identity: canary).encoded),
                (WipeSignIn(name: "signed-in"), nil),
                (StoreSession(session.listed, replaces: false), session.values), (ListSessions(), nil),
                (ClearSessions(group: "corp", host: nil), nil),
                (InstallProfile(profile), profileKeys), (ListProfiles(), nil),
                (RemoveProfile(identifier: "example.corp"), nil),
                (RunProxy(spoolBytes: 0), nil),
                (EnsureAuthority(), nil), (RotateAuthority(), nil),
                (ReportPolicy(.explain(url: "https://localhost:1")), nil),
                (ReportPolicy(.test(url: "https://localhost:1")), nil), (RemoveIdentity(name: "socket"), nil),
                (RemoveCredential(name: "socket"), nil), (RemoveCredential(name: "token"), nil),
            ]
        }
    }

    /// The reply without the result, which must be one of the operation.
    private static func kind<Operation: VaultOperation>(
        of line: [UInt8], from operation: Operation
    ) throws -> OperationReply<Done> {
        _ = try JSONDecoder().decode(OperationReply<Operation.Result>.self, from: Data(line))
        return try JSONDecoder().decode(OperationReply<Done>.self, from: Data(line))
    }

    @Test
    func noOperationRevealsASecret() throws {
        let server = try serve()
        defer { server.send(SIGTERM) }
        // The CA and an identity with secrets that only the vault has.
        try sandbox.succeed("ca", "rotate", "--yes")
        let operations = try everyOperation
        #expect(Set(operations.map { type(of: $0.0).name }) == Set(OperationTable.names))
        var received: [UInt8] = []
        var results = 0
        for (operation, secret) in operations {
            let connection = try client()
            try #require(connection.send(.perform(operation), secret))
            reading: while connection.waitForInput(seconds: 60), case .line(let line) = connection.receiveLine() {
                received += line
                switch try Self.kind(of: line, from: operation) {
                case .progress: continue
                case .opened: connection.endSending()
                case .finished:
                    results += 1
                    break reading
                default: break reading
                }
            }
        }
        // Those that need an EST server, a compliance service or a permission fail, and a token for one site of nobody
        // in particular.
        #expect(results == operations.count - 5)
        let vault = try Home(path: sandbox.home).vault.open { Secret(utf8: Self.passphrase) }
        let contents = vault.contents
        var secrets = contents.credentials.values.map { $0.password.withBytes { Array($0) } }
        let keys = try #require(contents.interception)
        secrets += [keys.rootKey, keys.issuingKey, vault.tagKey].map { $0.withBytes { Array($0) } }
        secrets += [Array("canary".utf8), try ClientPKI.pkcs8(ofPEM: nil).withBytes { Array($0) }]
        let text = String(decoding: received, as: UTF8.self)
        #expect(text.contains("jdoe"))
        for secret in secrets {
            #expect(!text.contains(String(decoding: secret, as: UTF8.self)))
            // The middle of a key, so that it is found at any offset of the Base64.
            for offset in 0..<3 where secret.count > 24 {
                let part = Data(secret[(secret.count / 2 - 9 + offset)..<(secret.count / 2 + 9 + offset)])
                #expect(!text.contains(part.base64EncodedString()))
            }
            #expect(!text.contains(Hex.encode(secret)))
        }
    }

    @Test
    func malformedRequestsAreRefusedWithAReason() throws {
        let server = try serve()
        defer { server.send(SIGTERM) }
        func answer(to bytes: [UInt8]) throws -> String? {
            guard let socket = try LocalSocket.connect(to: "\(sandbox.home)/run/control.sock") else {
                throw HarnessError("nothing listens on the control socket")
            }
            _ = socket.send(line: bytes)
            guard case .line(let line) = socket.receiveLine() else { return nil }
            #expect(socket.receiveLine() == .nothing)
            return try JSONDecoder().decode(ControlReply.self, from: Data(line)).error
        }
        let unknown = "the request is malformed: it is not a command in JSON that this version knows"
        for nonsense in [
            "", "hello", "{}", #"{"command":"open"}"#, #"{"command":"perform"}"#,
            #"{"command":"perform","operation":{"readPassword":{"name":"enrollment"}}}"#,
            #"{"command":"perform","operation":{"setCredential":{"name":"a"}}}"#,
            #"{"command":"status","secretBytes":0}"#, #"{"command":"status","secretBytes":-1}"#,
            #"{"command":"unlock","secretBytes":65537}"#, #"{"command":"unlock","secretBytes":1e30}"#,
            String(repeating: "[", count: 100_000),
        ] {
            #expect(try answer(to: Array(nonsense.utf8)) == unknown, "\(nonsense.prefix(100))")
        }
        #expect(try answer(to: [0xFF, 0xFE, 0]) == unknown)
        // A secret that ends early is not stored.
        let connection = try client()
        connection.send(ControlMessage(.perform(SetCredential(name: "cut", user: "x")), secretBytes: 20))
        connection.endSending()
        #expect(connection.receiveLine() == .nothing)
        #expect(try !sandbox.succeed("credential", "list").contains("cut"))
        // The server is as before.
        #expect(try sandbox.succeed("vault", "status").contains("process \(server.pid), open"))
    }

    @Test(arguments: ["../../evil", "a/b", "", ".\u{0}"])
    func namesThatAreNoFileNamesAreRefused(_ name: String) throws {
        let server = try serve()
        defer { server.send(SIGTERM) }
        let vaultServer = try #require(VaultServer(of: Home(path: sandbox.home)))
        let key = try ClientPKI.pkcs8(ofPEM: nil)
        for (operation, secret): (any VaultOperation, Secret?) in [
            (ImportIdentity(name: name, chain: try ClientPKI.chain(), replaces: true), key),
            (RemoveIdentity(name: name), nil), (ShowIdentity(name: name), nil),
            (SetCredential(name: name, user: "x"), Secret(utf8: "canary")),
        ] {
            #expect(throws: ServerRefusal.self) {
                _ = try vaultServer.perform(operation, secret: secret)
            }
        }
    }

    /// Root may connect to every socket, and can become another user for that.
    @Test(.enabled(if: getuid() == 0))
    func otherUsersAreRefusedWithAReason() throws {
        let server = try serve()
        defer { server.send(SIGTERM) }
        _ = try sandbox.sh("chmod 755 . home home/run && chmod 666 home/run/control.sock")
        let script = """
            import socket
            s = socket.socket(socket.AF_UNIX)
            s.connect("home/run/control.sock")
            try:
                s.sendall(b'{"command":"perform","operation":{"listCredentials":{}}}\\n')
            except BrokenPipeError:
                pass
            print(s.recv(4096).decode())
            """
        try sandbox.folder.write("peer.py", script)
        let result = try sandbox.sh("setpriv --reuid 65534 --clear-groups python3 peer.py")
        #expect(
            result.output.contains("accepts commands from processes of user 0 only and not of user 65534"),
            "\(result.said)")
        #expect(!result.output.contains("jdoe"))
    }
}

/// The client certificate of the test PKI.
private enum ClientPKI {
    private static let folder = "\(Tool.repository)/Certs/dev/pki"

    static func chain() throws -> [Certificate] {
        let pem = try String(contentsOfFile: "\(folder)/client-a.pem", encoding: .utf8)
        return try IdentityFile.readCertificates(Array(pem.utf8))
    }

    /// PKCS#8 in PEM has the DER that the operation takes.
    static func pkcs8(ofPEM text: String?) throws -> Secret {
        let pem = try text ?? String(contentsOfFile: "\(folder)/client-a.key.pem", encoding: .utf8)
        let lines = pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }
        guard let der = Data(base64Encoded: lines.joined()) else { throw HarnessError("client-a.key.pem is not PEM") }
        return Secret(der)
    }
}
