// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The reports of `exec` and `test` about sites whose challenge was not answered, and of the access log about
/// credentials.
@Suite(.waiting) struct UnansweredTests {
    private let sandbox: Sandbox
    private let origin: ChildProcess
    private let port: String

    init() throws {
        sandbox = try Sandbox()
        origin = try Self.origin(sandbox, [])
        port = try origin.line(after: "port ")
    }

    private static func origin(_ sandbox: Sandbox, _ files: [String]) throws -> ChildProcess {
        try ChildProcess(
            try Tool.path("python3"), [Tool.server("challenges.py")] + files.map(Tool.fixture),
            capture: sandbox.folder.file("origin-\(UUID().uuidString)"))
    }

    private var site: String { "http://localhost:\(port)" }

    /// The standard error of `exec -- curl`.
    private func exec(_ path: String) throws -> String {
        try sandbox.sh("countersign exec -- curl -s -o /dev/null \(site)/\(path)").error
    }

    private func enrol(_ password: String) throws {
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "\(password)\n")
    }

    private func test(_ url: String) throws -> (status: Int32, rows: [String: String]) {
        let result = try sandbox.sh("countersign test \(url)")
        var rows: [String: String] = [:]
        for line in result.output.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 1)
            rows[String(words[0])] = words.count > 1 ? words[1].trimmingCharacters(in: .whitespaces) : ""
        }
        return (result.status, rows)
    }

    // MARK: exec

    @Test func execNamesTheCommandForEachSiteThatWasNotAnswered() throws {
        #expect(
            try exec("basic") == """
                countersign: warning: no site is listed in \(sandbox.home)
                countersign: hint: `countersign sites add https://git.corp.example` lists one
                countersign: warning: \(site): no site is listed: `countersign sites add \(site) plaintext=yes`

                """)
        try sandbox.succeed("sites", "add", "https://other.example")
        #expect(
            try exec("basic")
                == "countersign: warning: \(site): not on the list: `countersign sites add \(site) plaintext=yes`\n")
        try sandbox.succeed("sites", "add", site)
        #expect(
            try exec("basic") == """
                countersign: warning: \(site): site is http and its line does not say plaintext=yes: set plaintext=yes \
                in AllowedSites/local.sites:2

                """)
        try sandbox.succeed("sites", "remove", site)
        try sandbox.succeed("sites", "add", site, "plaintext=yes", "answer=basic")
        #expect(
            try exec("basic") == """
                countersign: warning: \(site): no credential "enrollment" is enrolled: `countersign credential set \
                --user USER`

                """)
        #expect(
            try exec("negotiate") == """
                countersign: warning: \(site): origin offers Negotiate; the site's line permits basic: permit `negotiate` \
                with answer= in AllowedSites/local.sites:2

                """)
        #expect(
            try exec("unheard")
                == "countersign: warning: \(site): origin offers Unheard, which this version cannot answer\n")
        try enrol("wrong")
        #expect(
            try exec("basic") == """
                countersign: warning: \(site): credential "enrollment" was rejected: `countersign credential set \
                --user jdoe` with the right password

                """)
        #expect(
            try exec("basic") == """
                countersign: warning: \(site): credential "enrollment" was rejected here and has not changed since: \
                `countersign credential set --user jdoe` with the right password, or `countersign credential retry \
                enrollment` permits an attempt

                """)
        try enrol("secret")
        #expect(try exec("basic").isEmpty)
        #expect(try exec("open").isEmpty)
    }

    /// One success of a site hides neither another scheme, nor a request of the same realm that the site refuses.
    @Test func execNamesWhatASiteRefusedAlthoughItAcceptedOtherRequests() throws {
        try sandbox.succeed("sites", "add", site, "plaintext=yes", "answer=basic", "preempt=no")
        try enrol("secret")
        func exec(_ paths: String...) throws -> String {
            let urls = paths.map { "\(site)/\($0)" }.joined(separator: " ")
            return try sandbox.sh("countersign exec -- curl -s \(urls)").error
        }
        let unheard = "\(site)/unheard/a: origin offers Unheard, which this version cannot answer"
        #expect(try exec("unheard/a?key=canary", "basic") == "countersign: warning: \(unheard)\n")
        #expect(try exec("basic", "unheard/a", "unheard/b", "basic/b") == "countersign: warning: \(unheard)\n")
        #expect(
            try exec("basic", "basic/never", "basic/b") == """
                countersign: warning: \(site)/basic/never: credential "enrollment" is accepted here, but not for this \
                request

                """)
        #expect(try exec("basic", "basic/b").isEmpty)
    }

    /// The last request is answered before the site challenges it, as the one before it was.
    @Test func execForgetsARequestThatIsAnsweredUnasked() throws {
        try sandbox.succeed("sites", "add", site, "plaintext=yes", "answer=basic")
        let script = """
            curl -s \(site)/basic/a
            echo secret | countersign credential set --user jdoe --password-stdin
            until curl -sf \(site)/basic/b; do sleep 0.2; done
            """
        try sandbox.folder.write("once", script)
        try sandbox.folder.write("again", script + "\ncurl -sf \(site)/basic/a")
        #expect(
            try sandbox.sh("countersign exec -- sh once").error
                == "countersign: warning: \(site)/basic/a: no credential \"enrollment\" is enrolled: "
                + "`countersign credential set --user USER`\n")
        try sandbox.succeed("credential", "remove", "enrollment")
        let again = try sandbox.sh("countersign exec -- sh again")
        #expect(again.status == 0 && again.error.isEmpty, "\(again.said)")
    }

    @Test func execNamesTheIssuerThatIsNotTrusted() throws {
        let origin = try Self.origin(sandbox, ["origin-ec.pem", "origin-ec.key.pem"])
        let site = "https://localhost:\(try origin.line(after: "port "))"
        try sandbox.succeed("sites", "add", site)
        let failed = try sandbox.sh("countersign exec -- curl -s -o /dev/null \(site)/open")
        #expect(failed.status == 60)
        #expect(
            failed.error == """
                countersign: warning: \(site): issued by "CN=Origin root,O=Countersign test", which is not trusted: \
                `countersign trust anchor add FILE`

                """)
        let anchor = "\(sandbox.home)/Certs/anchors/root.crt"
        _ = try sandbox.sh("mkdir -p '\(sandbox.home)/Certs/anchors' && touch '\(anchor)'")
        let ignored = "Certs/anchors/root.crt is ignored, because its name does not end in .pem"
        #expect(try sandbox.sh("countersign exec -- curl -s -o /dev/null \(site)/open").error.contains(ignored))
        #expect(try sandbox.sh("countersign test \(site)/open").error.contains(ignored))
        let found = try test("\(site)/open")
        #expect(found.status == 1)
        #expect(found.rows["trust"] == "no: issued by \"CN=Origin root,O=Countersign test\", which is not trusted")
        #expect(found.rows["next"] == "`countersign trust anchor add FILE`")
        try sandbox.succeed("trust", "anchor", "add", Tool.fixture("origin-root.pem"))
        #expect(try sandbox.sh("countersign exec -- curl -s \(site)/open").said.contains("ok\n"))
        #expect(try test("\(site)/open").rows["trust"] == "yes: the certificate verifies")
    }

    // MARK: Clients that do not trust the CA

    /// A listed site with https, whose certificate verifies.
    private func interceptedSite() throws -> (site: String, origin: ChildProcess) {
        let origin = try Self.origin(sandbox, ["origin-ec.pem", "origin-ec.key.pem"])
        let site = "https://localhost:\(try origin.line(after: "port "))"
        try sandbox.succeed("trust", "anchor", "add", Tool.fixture("origin-root.pem"))
        try sandbox.succeed("sites", "add", site)
        return (site, origin)
    }

    @Test func execSaysThatAProgramDoesNotTrustTheCA() throws {
        let (site, origin) = try interceptedSite()
        defer { withExtendedLifetime(origin) {} }
        let other = Tool.fixture("client-a-root.pem")
        let failed = try sandbox.sh("countersign exec -- curl -s --cacert \(other) \(site)/open")
        #expect(failed.status == 60, "\(failed.said)")
        #expect(
            failed.error.contains(
                " does not trust the local CA: it left the TLS handshake for \(site) with the alert unknown_ca\n"),
            "\(failed.error)")
        let trusting = try sandbox.sh("countersign exec -- curl -s \(site)/open")
        #expect(trusting.status == 0 && !trusting.error.contains("CA"), "\(trusting.said)")
    }

    /// wget verifies the certificate when the handshake is over.
    @Test func execNamesAProgramThatLeavesAfterTheHandshakeIfItFailed() throws {
        let (site, origin) = try interceptedSite()
        defer { withExtendedLifetime(origin) {} }
        let other = Tool.fixture("client-a-root.pem")
        let wget = "wget -q -t 1 -O /dev/null"
        let failed = try sandbox.sh("countersign exec -- \(wget) --ca-certificate=\(other) \(site)/open")
        #expect(failed.status == 5, "\(failed.said)")
        let sentence = " ended the TLS connection to \(site) without a request; it may not trust the local CA\n"
        #expect(failed.error.contains(sentence), "\(failed.error)")
        // A command that succeeds may open connections in advance.
        let done = try sandbox.sh("countersign exec -- sh -c '\(wget) --ca-certificate=\(other) \(site)/open || true'")
        #expect(done.status == 0 && !done.error.contains("CA"), "\(done.said)")
        let trusting = try sandbox.sh("countersign exec -- \(wget) \(site)/open")
        #expect(trusting.status == 0 && !trusting.error.contains("CA"), "\(trusting.said)")
    }

    /// Programs that end at once may have no name any longer; this one goes on with its socket open.
    @Test(arguments: [true, false])
    func serveNamesTheProgramOnceAMinute(sendsAlert: Bool) throws {
        let (site, origin) = try interceptedSite()
        defer { withExtendedLifetime(origin) {} }
        let server = try sandbox.serve()
        let port = try server.line(after: "countersign: listening on 127.0.0.1:")
        let place = site.dropFirst("https://".count)
        let client = try ChildProcess(
            try Tool.path("python3"),
            [
                "-c",
                """
                import socket, ssl, sys, time
                kept = []
                for attempt in range(3):
                    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
                    kept.append(s.dup())
                    s.sendall(b"CONNECT %s HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n" % sys.argv[2].encode())
                    assert b" 200 " in s.recv(4096)
                    if sys.argv[3] == "alert":
                        try: ssl.create_default_context(cafile=sys.argv[4]).wrap_socket(s, server_hostname="localhost")
                        except ssl.SSLError: pass
                    else:
                        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                        hello = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
                        try: hello.do_handshake()
                        except ssl.SSLWantReadError: s.sendall(outgoing.read())
                        s.recv(1)
                        s.shutdown(socket.SHUT_WR)
                print("done", flush=True)
                time.sleep(60)
                """, port, String(place), sendsAlert ? "alert" : "end", Tool.fixture("client-a-root.pem"),
            ], capture: sandbox.folder.file("client"))
        let sentence =
            "python3 (pid \(client.pid)) "
            + (sendsAlert
                ? "does not trust the local CA: it left the TLS handshake for \(site) with the alert unknown_ca"
                : "left the TLS handshake for \(site) without an alert; it may not trust the local CA")
        // The hint follows in a line of its own.
        let logged: Bool? = poll {
            [sentence, "`countersign ca install`"].allSatisfy(server.errorOutput.contains) ? true : nil
        }
        #expect(logged == true, "\(server.errorOutput)\(client.errorOutput)")
        // After the two other handshakes.
        _ = try client.line(after: "don")
        server.send(SIGTERM)
        #expect(server.waitForExit() == 0)
        #expect(
            server.errorOutput.components(separatedBy: "left the TLS handshake").count == 2, "\(server.errorOutput)")
        client.send(SIGKILL)
    }

    // MARK: Tunnels

    /// The challenge of a site in a tunnel is not visible to the proxy.
    @Test func execNamesTunnelsOnlyIfTheCommandFailed() throws {
        let origin = try Self.origin(sandbox, ["origin-ec.pem", "origin-ec.key.pem"])
        let site = "https://localhost:\(try origin.line(after: "port "))"
        try sandbox.succeed("sites", "add", "https://other.example")
        let done = try sandbox.sh("countersign exec -- curl -sk -o /dev/null \(site)/basic")
        #expect(done.status == 0 && done.error.isEmpty, "\(done.said)")
        let failed = try sandbox.sh("countersign exec -- curl -skf -o /dev/null \(site)/basic")
        #expect(failed.status == 22)
        #expect(
            failed.error == "countersign: warning: \(site): not on the list: `countersign sites add \(site)`\n")
    }

    // MARK: test

    @Test func testShowsTheChecksAndWhatToDoNext() throws {
        try sandbox.succeed("sites", "add", site, "plaintext=yes", "answer=basic")
        var found = try test("\(site)/basic")
        #expect(found.status == 1)
        #expect(found.rows["site"] == site)
        #expect(found.rows["listed"] == "yes: listed at AllowedSites/local.sites:1")
        #expect(found.rows["permitted"] == "yes: basic is offered and permitted")
        #expect(found.rows["credential"] == "no: no credential \"enrollment\" is enrolled")
        #expect(found.rows["challenge"] == "Basic realm=\"tools\"")
        #expect(found.rows["answered"] == "no")
        #expect(found.rows["response"] == "401")
        #expect(found.rows["next"] == "`countersign credential set --user USER`")
        try enrol("wrong")
        found = try test("\(site)/basic")
        #expect(found.status == 1)
        #expect(found.rows["permitted"] == "yes: basic")
        #expect(found.rows["credential"] == "yes: \"enrollment\"")
        #expect(found.rows["answered"] == "basic with \"enrollment\": rejected")
        #expect(found.rows["next"] == "`countersign credential set --user jdoe` with the right password")
        try enrol("secret")
        found = try test("\(site)/basic")
        #expect(found.status == 0)
        #expect(found.rows["answered"] == "basic with \"enrollment\", realm \"tools\"")
        #expect(found.rows["response"] == "200")
        #expect(found.rows["next"] == "nothing: the site responded")
        let json = try sandbox.sh("countersign test --json \(site)/basic | jq -r '.ok, .answered, .status'")
        #expect(json.output == "true\nbasic with \"enrollment\", realm \"tools\"\n200\n", "\(json.said)")
    }

    @Test(arguments: [("ws", "http"), ("wss", "https")])
    func testSaysWhatToWriteForAWebSocket(scheme: String, counterpart: String) throws {
        let result = try sandbox.sh("countersign test \(scheme)://localhost:1/socket")
        #expect(result.status == 1)
        #expect(
            result.error == """
                countersign: error: the scheme "\(scheme)" is neither http nor https
                countersign: hint: for a WebSocket, write \(counterpart):// instead of \(scheme)://

                """)
    }

    @Test func testSaysThatNothingWasReached() throws {
        let found = try test("http://localhost:1")
        #expect(found.status == 1)
        #expect(found.rows["error"] == "localhost:1: connection refused")
        #expect(found.rows["answered"] == "no: no request was sent")
        #expect(found.rows["permitted"] == "not checked")
        #expect(found.rows["credential"] == "not checked")
        #expect(found.rows["next"] == "the site was not reached: check its name, its port and the network")
    }

    @Test func anOriginThatWantsKerberosIsNamed() throws {
        try sandbox.succeed("sites", "add", site, "plaintext=yes")
        try enrol("secret")
        #expect(
            try exec("negotiate")
                == "countersign: warning: \(site): the origin wants Kerberos; NTLM was refused: "
                + "`kinit` obtains a Kerberos ticket\n")
    }

    /// A fault on this machine does not count as a missing ticket: the password is not used instead.
    @Test(arguments: [
        ("printf garbage > tickets", "Unsupported credentials cache format version number (filename: FOLDER/tickets)"),
        (": > tickets", "Bad format in credentials cache (filename: FOLDER/tickets)"),
        ("mkdir tickets", "Bad format in credentials cache (filename: FOLDER/tickets)"),
        ("export KRB5CCNAME=NONE:tickets", "Unknown credential cache type"),
    ])
    func anUnreadableTicketCacheIsNamedAndPermitsNoOtherScheme(setting: String, sentence: String) throws {
        try sandbox.succeed("sites", "add", site, "plaintext=yes")
        try enrol("secret")
        let reason =
            "the Kerberos ticket cache cannot be read: "
            + sentence.replacingOccurrences(of: "FOLDER", with: sandbox.folder.path)
            + "; check KRB5CCNAME and the cache, or run kinit"
        let done = try sandbox.sh("\(setting); countersign exec -- curl -s \(site)/negotiate")
        #expect(done.error == "countersign: warning: \(site): \(reason)\n", "\(done.said)")
        let explained = try sandbox.sh("\(setting); countersign explain \(site)")
        #expect(explained.output.contains("no: \(reason)\n"), "\(explained.said)")
    }

    @Test func anUnreadableClientKeytabIsNamed() throws {
        try sandbox.succeed("sites", "add", site, "plaintext=yes")
        try enrol("secret")
        let keytab = sandbox.folder.file("keytab")
        let setting = "printf garbage > keytab; export KRB5_CLIENT_KTNAME=\(keytab);"
        let reason =
            "the client keytab \"\(keytab)\" cannot be read: it is not a keytab; check KRB5_CLIENT_KTNAME"
        let done = try sandbox.sh("\(setting) countersign exec -- curl -s \(site)/negotiate")
        #expect(done.error == "countersign: warning: \(site): \(reason)\n", "\(done.said)")
        #expect(try sandbox.sh("\(setting) countersign explain \(site)").output.contains("no: \(reason)\n"))
    }

    // MARK: The access log

    @Test func theLogNamesACredentialOnlyIfItWasUsed() throws {
        try sandbox.succeed("sites", "add", site, "plaintext=yes", "answer=basic")
        try enrol("secret")
        let result = try sandbox.sh(
            """
            countersign exec --access-log log -- sh -c 'curl -s \(site)/negotiate \(site)/basic'; \
            jq -r '"\\(.status) \\(.credential)"' log
            """)
        #expect(result.output == "ok\nok\n401 null\n200 enrollment\n", "\(result.said)")
    }

    @Test func hangUpOpensTheAccessLogAgain() throws {
        let server = try sandbox.serve("--access-log", "log")
        let proxy = try server.line(after: "countersign: listening on ")
        let request = "curl -s -o /dev/null -x http://\(proxy) \(site)/open"
        #expect(try sandbox.sh("\(request) && mv log log.1").status == 0)
        server.send(SIGHUP)
        let isThere: Bool? = poll { access(sandbox.folder.file("log"), F_OK) == 0 ? true : nil }
        #expect(isThere == true)
        let lines = try sandbox.sh("\(request); wc -l < log.1; wc -l < log; stat -c %a log")
        #expect(lines.output == "1\n1\n600\n", "\(lines.said)")
    }
}
