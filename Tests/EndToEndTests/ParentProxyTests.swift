// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `serve` behind parent proxies: squid with each scheme, tinyproxy and microsocks.
@Suite(.waiting) struct ParentProxyTests {
    private let user: Countersign
    /// An https site with the text `NONE`, and a plain one that shows its requests.
    private let site: String
    private let plain: String
    private let origin: ChildProcess

    init() throws {
        user = try Countersign()
        site = "https://parent.test.localhost:\(try Origins.shared.nginx.optionalPort)"
        let program = """
            import http.server
            class Shown(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def log_message(self, *_):
                    pass
                def answer(self, content):
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                def do_GET(self):
                    fields = [self.headers.get(name) for name in ("Proxy-Authorization", "Authorization")]
                    self.answer(f"{self.path} {fields}".encode())
                def do_POST(self):
                    self.answer(str(len(self.rfile.read(int(self.headers["Content-Length"])))).encode())
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shown)
            print("listening", server.server_port)
            server.serve_forever()
            """
        origin = try ChildProcess(try Tool.python(), ["-u", "-c", program], capture: user.folder.file("plain"))
        plain = try "http://127.0.0.1:\(origin.line(after: "listening "))"
        try user.allow(site)
    }

    /// Lists the parent, with the credential for it.
    private func list(_ port: Int, _ options: String = "", host: String = "127.0.0.1") throws {
        try user.enroll(SquidParent.user, password: SquidParent.password, name: "corp")
        try user.allow("proxy://\(host):\(port) credential=corp \(options)")
    }

    /// The origins are on this machine, and go through the parents all the same.
    private func serve(_ flags: String..., environment: [String: String] = [:]) throws -> RunningProxy {
        try RunningProxy(user, ["--no-proxy", "<-loopback>"] + flags, environment: environment)
    }

    private func expectEverythingWorks(_ proxy: RunningProxy) throws {
        for _ in 0..<3 {
            let intercepted = try proxy.get("\(site)/who")
            #expect(intercepted.status == 200 && intercepted.text == "NONE \n", "\(intercepted.said)")
        }
        let blind = try proxy.get("\(site.replacingOccurrences(of: "parent.", with: "other."))/who", flags: ["-k"])
        #expect(blind.status == 200 && blind.text == "NONE \n", "\(blind.said)")
        for number in 0..<3 {
            let shown = try proxy.get("\(plain)/\(number)?q=1")
            #expect(shown.status == 200 && shown.text == "/\(number)?q=1 [None, None]", "\(shown.said)")
        }
        let content = try user.folder.write("content", String(repeating: "x", count: 200_000))
        let posted = try Command.run(
            try Tool.path("curl"), ["-q", "-sS", "-x", proxy.url, "--data-binary", "@\(content)", "\(plain)/post"],
            in: user.folder)
        #expect(posted.output == "200000", "\(posted.said)")
        #expect(!proxy.process.errorOutput.contains("kanarie"))
    }

    // MARK: Schemes

    @Test func basicIsAnsweredForTunnelsAndPlainRequests() throws {
        let squid = try SquidParent(.basic)
        try list(squid.port, "plaintext=yes")
        try expectEverythingWorks(try serve("--parent", "http://127.0.0.1:\(squid.port)"))
        let tunnels = squid.logged("CONNECT")
        #expect(tunnels.filter { $0.hasPrefix("200 ") }.allSatisfy { $0.hasSuffix(" jdoe") }, "\(tunnels)")
        #expect(tunnels.count { $0.hasPrefix("407 ") } <= 2, "one challenge for each event loop: \(tunnels)")
        #expect(squid.logged("GET").count { $0.hasPrefix("407 ") } <= 2, "\(squid.logged("GET"))")
    }

    /// The parent's own 503 comes after it has examined the password.
    @Test(arguments: [SquidParent.Scheme.basic, .digest])
    func aParentWhoseOriginsAreDownIsStillAnswered(_ scheme: SquidParent.Scheme) throws {
        let squid = try SquidParent(scheme)
        try list(squid.port, "plaintext=yes")
        let proxy = try serve("--parent", "http://127.0.0.1:\(squid.port)")
        let closed = try Loopback.freePorts(1)[0]
        for number in 0..<4 {
            let plain = try proxy.get("http://127.0.0.1:\(closed)/\(number)")
            #expect(plain.status == 503, "\(plain.said)")
        }
        #expect(try proxy.get("\(plain)/up").status == 200)
        #expect(try !user.succeed("credential", "list").contains("no answer"))
    }

    @Test func digestIsAnswered() throws {
        let squid = try SquidParent(.digest)
        try list(squid.port, "plaintext=yes")
        try expectEverythingWorks(try serve("--parent", "http://127.0.0.1:\(squid.port)"))
        #expect(squid.logged("CONNECT").contains { $0.hasPrefix("200 ") && $0.hasSuffix(" jdoe") })
    }

    @Test func ntlmIsAnsweredOnOneConnection() throws {
        let squid = try SquidParent(.ntlm(boundTo: nil))
        try list(squid.port, "domain=ACME plaintext=yes")
        try expectEverythingWorks(try serve("--parent", "http://127.0.0.1:\(squid.port)"))
        #expect(squid.logged("CONNECT").contains { $0.hasPrefix("200 ") && $0.hasSuffix(" jdoe") })
    }

    @Test func sambaAcceptsNTLM() throws {
        let squid = try SquidParent(.samba)
        try list(squid.port, "domain=ACME plaintext=yes")
        try expectEverythingWorks(try serve("--parent", "http://127.0.0.1:\(squid.port)"))
        #expect(squid.logged("CONNECT").contains { $0.hasPrefix("200 ") && $0.hasSuffix("jdoe") })
    }

    @Test func ntlmIsAnsweredIfTheParentClosesTheConnectionOfItsFirstChallenge() throws {
        let squid = try SquidParent(.ntlmOnAnotherConnection)
        try list(squid.port, "domain=ACME plaintext=yes")
        try expectEverythingWorks(try serve("--parent", "http://127.0.0.1:\(squid.port)"))
        #expect(squid.logged("CONNECT").contains { $0.hasPrefix("200 ") && $0.hasSuffix(" jdoe") })
    }

    @Test func negotiateIsAnsweredWithATicketForTheParent() throws {
        let realm = try KerberosRealm(services: ["HTTP/parent.test.localhost"])
        let squid = try SquidParent(.negotiate(realm))
        try user.succeed(
            "credential", "set", "corp", "--principal", "\(KerberosRealm.user)@\(KerberosRealm.name)",
            "--password-stdin", input: KerberosRealm.password + "\n")
        try user.allow("proxy://parent.test.localhost:\(squid.port) credential=corp")
        let proxy = try serve(
            "--parent", "http://parent.test.localhost:\(squid.port)",
            environment: realm.environment(cache: "tickets"))
        try expectEverythingWorks(proxy)
        #expect(squid.logged("CONNECT").contains { $0.hasPrefix("200 ") && $0.contains("jdoe@CORP.TEST") })
    }

    /// Squid keeps the connection open, and does not go on with it.
    @Test(arguments: ["Basic", "Digest", "NTLM"]) func theFirstRequestMayHaveContent(scheme: String) throws {
        let squid = try SquidParent(scheme == "Basic" ? .basic : scheme == "Digest" ? .digest : .ntlm(boundTo: nil))
        try list(squid.port, (scheme == "NTLM" ? "domain=ACME " : "") + "plaintext=yes")
        let proxy = try serve("--parent", "http://127.0.0.1:\(squid.port)")
        let content = try user.folder.write("first", String(repeating: "x", count: 200_000))
        for _ in 0..<2 {
            let posted = try Command.run(
                try Tool.path("curl"),
                [
                    "-q", "-sS", "-x", proxy.url, "--data-binary", "@\(content)", "-w",
                    "%{stderr}%header{proxy-status}", "\(plain)/post",
                ],
                in: user.folder)
            #expect(posted.output == "200000", "\(posted.said)")
        }
    }

    // MARK: Unanswered challenges

    @Test func theChallengeOfAnUnlistedParentIsTheClients() throws {
        let squid = try SquidParent(.basic)
        let proxy = try serve("--parent", "http://127.0.0.1:\(squid.port)")
        let refused = try proxy.get("\(plain)/")
        #expect(refused.status == 407 && refused.values("Proxy-Authenticate") == ["Basic realm=\"corp\""])
        let curl = try Tool.path("curl")
        func fetch(_ url: String, _ flags: [String]) throws -> CommandResult {
            try Command.run(
                curl, ["-q", "-sS", "--cacert", proxy.anchor, "-x", proxy.url] + flags + [url], in: user.folder)
        }
        let tunnel = try fetch("\(site)/who", ["-v"])
        #expect(tunnel.said.contains("< HTTP/1.1 407 ") && tunnel.said.contains("refuses the connection"))
        // The client's own answer goes to the parent, and no further.
        let own = ["--proxy-user", "\(SquidParent.user):\(SquidParent.password)"]
        #expect(try fetch("\(site)/who", own).output == "NONE \n")
        #expect(try fetch("\(plain)/own", own).output == "/own [None, None]")
    }

    @Test func aRejectedPasswordIsSentOnce() throws {
        let squid = try SquidParent(.basic)
        try user.enroll(SquidParent.user, password: "wrong", name: "corp")
        try user.allow("proxy://127.0.0.1:\(squid.port) credential=corp plaintext=yes")
        let proxy = try serve("--parent", "http://127.0.0.1:\(squid.port)")
        for _ in 0..<3 { _ = try proxy.get("\(site)/who") }
        for _ in 0..<3 { #expect(try proxy.get("\(plain)/").status == 407) }
        let named = (squid.logged("GET") + squid.logged("CONNECT")).filter { $0.hasSuffix(" jdoe") }
        #expect(named.count == 1, "\(named)")
        #expect(!(try user.run("credential", "list").output.contains("  no\n")))
    }

    /// Only a ticket is useless to everyone else.
    @Test(arguments: ["Basic", "Digest", "NTLM"]) func anAnswerInTheClearNeedsPermission(scheme: String) throws {
        let squid = try SquidParent(scheme == "Basic" ? .basic : scheme == "Digest" ? .digest : .ntlm(boundTo: nil))
        try list(squid.port, "domain=ACME")
        let proxy = try serve("--parent", "http://127.0.0.1:\(squid.port)")
        let curl = try Command.run(
            try Tool.path("curl"), ["-q", "-sSv", "--cacert", proxy.anchor, "-x", proxy.url, "\(site)/who"],
            in: user.folder)
        let reason = "\(scheme) is sent to a parent without TLS only if its line says plaintext=yes"
        #expect(curl.said.contains(reason), "\(curl.said)")
        #expect(try proxy.get("\(plain)/").status == 407)
        #expect(!squid.logged("CONNECT").contains { $0.hasSuffix(" jdoe") })
    }

    /// The token that lets clients use this proxy is for this proxy alone.
    @Test func theClientTokenNeverReachesTheParent() throws {
        let file = try user.folder.write("token", "kanarie-client-token-1\n")
        chmod(file, 0o600)
        // The plain site stands in for the parent.
        let proxy = try serve("--parent", plain, "--client-token-file", file)
        let target = plain.replacingOccurrences(of: "127.0.0.1", with: "localhost") + "/token"
        let shown = try proxy.get(target, flags: ["--proxy-user", "me:kanarie-client-token-1"])
        #expect(shown.status == 200 && shown.text == "\(target) [None, None]", "\(shown.said)")
    }

    // MARK: Ways

    @Test func theNextParentIsUsedIfOneCannotBeReached() throws {
        let squid = try SquidParent(.basic)
        let dead = try Loopback.freePorts(1)[0]
        try list(squid.port, "plaintext=yes")
        try expectEverythingWorks(
            try serve(
                "--parent", "http://127.0.0.1:\(dead)", "--parent", "http://127.0.0.1:\(squid.port)"))
    }

    /// Fields for the missing parent do not reach the origin.
    @Test func aDirectConnectionIsMadeOnlyIfItIsPermitted() throws {
        let squid = try SquidParent(.basic)
        try list(squid.port, "plaintext=yes")
        let parent = "http://127.0.0.1:\(squid.port)"
        let (only, orDirect) = (
            try serve("--parent", parent), try serve("--parent", parent, "--parent", "direct")
        )
        for proxy in [only, orDirect] { #expect(try proxy.get("\(plain)/before").status == 200) }
        squid.stop()
        let refused = try only.get("\(plain)/after")
        #expect(refused.status == 502 && refused.proxyStatus.contains("127.0.0.1:\(squid.port)"), "\(refused.said)")
        let direct = try orDirect.get("\(plain)/after")
        #expect(direct.status == 200 && direct.text == "/after [None, None]", "\(direct.said)")
        #expect(try orDirect.get("\(site)/who").text == "NONE \n")
        #expect(orDirect.process.errorOutput.contains("cannot be used; it is tried last for five minutes"))
    }

    /// The plain site stands in for the other parent.
    @Test func whatIsMeantForOneParentDoesNotReachAnother() throws {
        let squid = try SquidParent(.basic)
        try list(squid.port, "plaintext=yes")
        let proxy = try serve("--parent", "http://127.0.0.1:\(squid.port)", "--parent", plain)
        #expect(try proxy.get("\(plain)/before").status == 200)
        squid.stop()
        for _ in 0..<3 {
            let shown = try proxy.get("\(plain)/after")
            #expect(shown.status == 200 && shown.text == "\(plain)/after [None, None]", "\(shown.said)")
        }
    }

    @Test func exceptionsGoDirectly() throws {
        let dead = try Loopback.freePorts(1)[0]
        let proxy = try user.serve(
            "--parent", "http://127.0.0.1:\(dead)", "--no-proxy", "127.0.0.0/8,<-loopback>")
        let shown = try proxy.get("\(plain)/x")
        #expect(shown.text == "/x [None, None]", "\(shown.said)")
        let refused = try proxy.get("\(site)/who")
        #expect(refused.status != 200, "a name is not in the network")
    }

    @Test func socksCarriesEverything() throws {
        let socks = try SOCKSParent(demandsPassword: true, in: user.folder)
        try list(socks.port)
        try expectEverythingWorks(try serve("--parent", "socks5://127.0.0.1:\(socks.port)"))
    }

    /// The parent resolves the name, and the C library knows no name below localhost.
    @Test func theSOCKSParentResolvesTheName() throws {
        let socks = try SOCKSParent(demandsPassword: false, in: user.folder)
        let proxy = try serve("--parent", "socks5h://127.0.0.1:\(socks.port)")
        let named = plain.replacingOccurrences(of: "127.0.0.1", with: "localhost")
        #expect(try proxy.get("\(named)/x").text.hasPrefix("/x"))
        #expect(try proxy.get("\(site)/who").status != 200)
    }

    @Test func aSOCKSParentThatRejectsThePasswordIsAskedOnce() throws {
        let socks = try SOCKSParent(demandsPassword: true, in: user.folder)
        try user.enroll(SquidParent.user, password: "wrong", name: "corp")
        try user.allow("proxy://127.0.0.1:\(socks.port) credential=corp")
        let proxy = try serve("--parent", "socks5h://127.0.0.1:\(socks.port)")
        for _ in 0..<2 {
            let refused = try proxy.get("\(plain)/")
            #expect(refused.status == 502 && refused.proxyStatus.contains("socks5h://127.0.0.1:\(socks.port)"))
        }
        #expect(!(try user.run("credential", "list").output.contains("  no\n")))
    }

    @Test func aScriptChooses() throws {
        let squid = try SquidParent(.none)
        let dead = try Loopback.freePorts(1)[0]
        let script = try user.folder.write(
            "proxy.pac",
            """
            function FindProxyForURL(url, host) {
                if (isInNet(host, "127.0.0.0", "255.0.0.0") && url.substring(0, 5) == "http:") return "DIRECT";
                return "PROXY 127.0.0.1:\(dead); PROXY 127.0.0.1:\(squid.port)";
            }
            """)
        try expectEverythingWorks(try serve("--parent", "pac:\(script)"))
        #expect(squid.logged("GET").isEmpty && squid.logged("CONNECT").count >= 2)
        let route = try Command.run(
            try Countersign.executable, ["route", "--parent", "pac:\(script)", site], in: user.folder)
        #expect(route.output == "http://127.0.0.1:\(dead)\nhttp://127.0.0.1:\(squid.port)\n", "\(route.said)")
    }

    // MARK: Several parents

    @Test func ifAParentGoesTheNextOneIsAnsweredAndTheClientDoesNotNotice() throws {
        let parents = [try SquidParent(.basic), try SquidParent(.basic)]
        try user.enroll(SquidParent.user, password: SquidParent.password, name: "corp")
        for parent in parents { try user.allow("proxy://127.0.0.1:\(parent.port) credential=corp plaintext=yes") }
        let proxy = try serve("--parent", parents.map { "http://127.0.0.1:\($0.port)" }.joined(separator: ","))
        try expectEverythingWorks(proxy)
        #expect(parents[1].logged("CONNECT").isEmpty && parents[1].logged("GET").isEmpty)
        parents[0].stop()
        for number in 0..<4 {
            let shown = try proxy.get("\(plain)/\(number)")
            #expect(shown.status == 200 && shown.text == "/\(number) [None, None]", "\(shown.said)")
        }
        try expectEverythingWorks(proxy)
        // It gets no password before it has demanded one.
        for method in ["CONNECT", "GET"] {
            let first = try #require(parents[1].logged(method).first)
            #expect(first.hasPrefix("407 ") && first.hasSuffix(" -"), "\(parents[1].logged(method))")
        }
    }

    // MARK: Interception

    /// The parent is another proxy of this kind.
    @Test func aParentThatInterceptsWorksIfItsCAIsAmongTheAnchorsAndExplainSaysSo() throws {
        let other = try Countersign()
        try other.allow(site)
        let parent = try other.serve()
        for (anchors, works) in [([parent.anchor], true), ([], false)] {
            let own = try Countersign(anchors: anchors)
            try own.allow(site)
            let proxy = try own.serve("--no-proxy", "<-loopback>", "--parent", parent.url)
            let response = try proxy.get("\(site)/who")
            #expect((response.status == 200 && response.text == "NONE \n") == works, "\(response.said)")
            let explained = try own.succeed("explain", site)
            let line = works ? "a parent may intercept TLS with CN=" : "a parent that intercepts TLS is not trusted"
            #expect(explained.contains("anchors      ") && explained.contains(line), "\(explained)")
        }
    }

    // MARK: WebSocket

    @Test func aWebSocketGoesThroughTheParent() throws {
        let squid = try SquidParent(.ntlm(boundTo: nil))
        try list(squid.port, "domain=ACME plaintext=yes")
        let port = try Origins.shared.nginx.httpsPort
        try user.allow("https://parent.test.localhost:\(port)")
        let proxy = try serve("--parent", "http://127.0.0.1:\(squid.port)")
        let echo = try WebSocketEcho()
        for (url, anchor) in [
            ("wss://parent.test.localhost:\(port)/websocket", proxy.anchor),
            ("wss://other.test.localhost:\(port)/websocket", try TestPKI.shared.originAnchor),
            ("ws://127.0.0.1:\(echo.port)/", "-"),
        ] {
            let done = try Command.run(
                Tool.python(), [Tool.server("websocket_client.py"), url, proxy.url, anchor], in: user.folder)
            #expect(
                done.status == 0 && done.output == "ok 4\n",
                "\(url): \(done.said)\(proxy.process.errorOutput)\(squid.logged("CONNECT"))")
        }
        let opened = squid.logged("CONNECT").filter { $0.hasPrefix("200 ") && $0.hasSuffix(" jdoe") }
        #expect(opened.count == 3, "\(squid.logged("CONNECT"))")
    }

    // MARK: TLS to the parent

    @Test func apacheWithTLSGetsBasic() throws {
        let apache = try ApacheParent()
        let parent = "https://parent.test.localhost:\(apache.port)"
        try list(apache.port, host: "parent.test.localhost")
        try expectEverythingWorks(try serve("--parent", parent))
        let tunnels = apache.logged("CONNECT")
        #expect(tunnels.contains { $0.hasPrefix("200 ") && $0.hasSuffix(" jdoe TLSv1.3") }, "\(tunnels)")
        #expect(tunnels.count { $0.hasPrefix("407 ") } <= 2, "one challenge for each event loop: \(tunnels)")
        #expect(apache.logged("GET").count { $0.hasPrefix("200 ") && $0.hasSuffix(" jdoe TLSv1.3") } == 3)
    }

    @Test func ntlmIsBoundToTheParentsCertificate() throws {
        let certificate = try TestPKI.shared.certificate("server")
        let squid = try SquidParent(.ntlm(boundTo: certificate))
        let front = try Front(to: squid.port, certificate: "server", in: user.folder)
        try list(front.port, "domain=ACME", host: "parent.test.localhost")
        try expectEverythingWorks(try serve("--parent", "https://parent.test.localhost:\(front.port)"))
        #expect(squid.logged("CONNECT").contains { $0.hasPrefix("200 ") && $0.hasSuffix(" jdoe") })
        #expect(squid.logged("GET").contains { $0.hasPrefix("200 ") && $0.hasSuffix(" jdoe") })
    }

    @Test(arguments: ["server-other", "server-name", "server-expired"])
    func aParentThatIsNotTrustedGetsNothing(certificate: String) throws {
        let squid = try SquidParent(.basic)
        let front = try Front(to: squid.port, certificate: certificate, in: user.folder)
        try list(front.port, host: "parent.test.localhost")
        let parent = "https://parent.test.localhost:\(front.port)"
        let script = try user.folder.write(
            "other.pac",
            "function FindProxyForURL(url, host) { return \"HTTPS parent.test.localhost:\(front.port); DIRECT\"; }")
        // An attacker in between could otherwise choose the next hop.
        for proxy in [try serve("--parent", parent), try serve("--parent", "pac:\(script)")] {
            let shown = try proxy.get("\(plain)/x")
            #expect(shown.status == 502, "\(shown.said)")
            #expect(shown.proxyStatus.contains("the parent \(parent): the server is not trusted"), "\(shown.said)")
            let tunnel = try Command.run(
                try Tool.path("curl"), ["-q", "-sSv", "--cacert", proxy.anchor, "-x", proxy.url, "\(site)/who"],
                in: user.folder)
            #expect(tunnel.said.contains("the server is not trusted"), "\(tunnel.said)")
        }
        #expect(squid.logged("CONNECT").isEmpty && squid.logged("GET").isEmpty)
    }

    /// An attacker in between could otherwise force the next hop, on which everything would be readable.
    @Test(arguments: ["", "; DIRECT", "; PROXY"])
    func aParentThatDoesNotSpeakTLSGetsNothing(fallback: String) throws {
        let squid = try SquidParent(.basic)
        try list(squid.port)
        let parent = "127.0.0.1:\(squid.port)"
        let next = fallback == "; PROXY" ? "\(fallback) \(parent)" : fallback
        let script = try user.folder.write(
            "tls.pac", "function FindProxyForURL(url, host) { return \"HTTPS \(parent)\(next)\"; }")
        let proxy = try serve("--parent", "pac:\(script)")
        for _ in 0..<2 {
            let shown = try proxy.get("\(plain)/x")
            #expect(shown.status == 502 && shown.proxyStatus.contains("https://\(parent)"), "\(shown.said)")
        }
        let tunnel = try Command.run(
            try Tool.path("curl"), ["-q", "-sSv", "--cacert", proxy.anchor, "-x", proxy.url, "\(site)/who"],
            in: user.folder)
        #expect(tunnel.said.contains("https://\(parent)"), "\(tunnel.said)")
        #expect(squid.logged("CONNECT").isEmpty && squid.logged("GET").isEmpty)
    }

    /// The client may have meant it for the first parent, to which it would have been encrypted.
    @Test func theClientsAnswerIsNotSentWithoutTLSIfAParentWithTLSIsAmongTheHops() throws {
        let refusing = try RefusingPort()
        defer { withExtendedLifetime(refusing) {} }
        let squid = try SquidParent(.basic)
        let script = try user.folder.write(
            "own.pac",
            "function FindProxyForURL(url, host) "
                + "{ return \"HTTPS 127.0.0.1:\(refusing.number); PROXY 127.0.0.1:\(squid.port)\"; }")
        let proxy = try serve("--parent", "pac:\(script)")
        for url in ["\(plain)/x", "\(plain)/x", "\(site)/who"] {
            let fetched = try Command.run(
                try Tool.path("curl"),
                [
                    "-q", "-sSv", "--cacert", proxy.anchor, "-x", proxy.url, "--proxy-user",
                    "\(SquidParent.user):\(SquidParent.password)", url,
                ], in: user.folder)
            #expect(fetched.said.contains("< HTTP/1.1 407 "), "\(fetched.said)")
        }
        for logged in [squid.logged("GET"), squid.logged("CONNECT")] {
            #expect(!logged.isEmpty && logged.allSatisfy { $0.hasPrefix("407 ") && $0.hasSuffix(" -") }, "\(logged)")
        }
    }

    /// TLS ended at the parent's port, where something else listens now.
    @Test func aParentThatLosesItsTLSGetsNoPassword() throws {
        let (first, second) = (try SquidParent(.basic), try SquidParent(.basic))
        let secured = try Front(to: first.port, certificate: "server", in: user.folder)
        let name = "parent.test.localhost:\(secured.port)"
        try list(secured.port, host: "parent.test.localhost")
        let script = try user.folder.write(
            "lost.pac", "function FindProxyForURL(url, host) { return \"HTTPS \(name); PROXY \(name)\"; }")
        let proxy = try serve("--parent", "pac:\(script)")
        _ = try proxy.get("\(plain)/first")
        for _ in 0..<4 { #expect(try proxy.get("\(plain)/secured").status == 200) }
        secured.stop()
        // Ends the connections that it still passes on.
        first.stop()
        let open = try Front(to: second.port, certificate: nil, port: secured.port, in: user.folder)
        for _ in 0..<4 {
            let shown = try proxy.get("\(plain)/open")
            #expect(shown.status == 502, "\(shown.said)")
        }
        #expect(second.logged("GET").isEmpty)
        open.stop()
    }

    /// A request from before the script's decision does not prevent answers to later ones.
    @Test func theParentThatAScriptNamesIsAnsweredForPlainRequests() throws {
        let squid = try SquidParent(.basic)
        try list(squid.port, "plaintext=yes")
        let script = try user.folder.write(
            "plain.pac", "function FindProxyForURL(url, host) { return \"PROXY 127.0.0.1:\(squid.port)\"; }")
        let proxy = try serve("--parent", "pac:\(script)")
        _ = try proxy.get("\(plain)/first")
        for _ in 0..<3 {
            let shown = try proxy.get("\(plain)/later")
            #expect(shown.status == 200 && shown.text == "/later [None, None]", "\(shown.said)")
        }
    }

    @Test func tinyproxyForwardsAndTunnels() throws {
        let port = try Loopback.freePorts(1)[0]
        let conf = try user.folder.write(
            "tinyproxy.conf", "Port \(port)\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nLogLevel Critical\n")
        let tinyproxy = try ChildProcess(
            try Tool.path("tinyproxy"), ["-d", "-c", conf], capture: user.folder.file("tinyproxy"))
        defer { tinyproxy.stop() }
        #expect(poll { Loopback.answers(port: port) ? true : nil } == true)
        let proxy = try serve("--parent", "http://127.0.0.1:\(port)")
        #expect(try proxy.get("\(plain)/x?y").text == "/x?y [None, None]")
        // tinyproxy knows no name below localhost, and says so.
        let curl = try Tool.path("curl")
        let blind = site.replacingOccurrences(of: "parent.test.localhost", with: "127.0.0.1") + "/who"
        let tunnel = try Command.run(curl, ["-q", "-sSk", "-x", proxy.url, blind], in: user.folder)
        #expect(tunnel.output == "NONE \n", "\(tunnel.said)")
        let refused = try Command.run(
            curl, ["-q", "-sSv", "--cacert", proxy.anchor, "-x", proxy.url, "\(site)/who"], in: user.folder)
        #expect(refused.said.contains("refuses the connection to parent.test.localhost"), "\(refused.said)")
    }

    // MARK: Faults

    @Test func faultsNameTheSetting() throws {
        for (flags, said) in [
            (["--parent", "ftp://x:1"], "--parent"), (["--parent", "http://u:p@x:1"], "--parent"),
            (["--no-proxy", "10.0.0.0/99", "--parent", "direct"], "--no-proxy"),
            (["--parent", "socks4://x"], "--parent"),
        ] {
            let done = try user.run(["serve", "--listen", "127.0.0.1:0"] + flags)
            #expect(done.status != 0 && done.error.contains(said), "\(done.said)")
        }
    }

    /// Each gives an error that names the parent, in time.
    @Test func aParentThatAnswersNonsenseIsNamed() throws {
        let program = """
            import socket, sys, threading
            server = socket.socket()
            server.bind(("127.0.0.1", 0))
            server.listen(16)
            print("listening", server.getsockname()[1])
            def serve(client):
                client.recv(4096)
                client.sendall(sys.argv[1].encode().decode("unicode_escape").encode("latin-1"))
                client.close()
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
            """
        let all = ["hello\\r\\n\\r\\n", "", "HTTP/1.1 200", "HTTP/1.1 503 Busy\\r\\n\\r\\nno"]
        for (number, nonsense) in all.enumerated() {
            let parent = try ChildProcess(
                try Tool.python(), ["-u", "-c", program, nonsense], capture: user.folder.file("nonsense-\(number)"))
            defer { parent.stop() }
            let place = try "127.0.0.1:\(parent.line(after: "listening "))"
            let proxy = try serve("--parent", "http://\(place)")
            let said = try Command.run(
                try Tool.path("curl"),
                ["-q", "-sSv", "--max-time", "30", "--cacert", proxy.anchor, "-x", proxy.url, "\(site)/who"],
                in: user.folder
            ).said
            #expect(said.contains("< HTTP/1.1 502 ") && said.contains(place), "\(nonsense): \(said)")
        }
    }
}
