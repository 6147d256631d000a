// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Synchronization
import Testing

/// `--parent`, `route` and `explain` with real parents.
@Suite(.waiting) struct RouteTests {
    private let sandbox: Sandbox

    init() throws {
        sandbox = try Sandbox()
        try FileManager.default.createDirectory(atPath: sandbox.home, withIntermediateDirectories: true)
    }

    private static func script(_ port: Int) -> String {
        """
        function FindProxyForURL(url, host) {
            if (host == "direct.corp.invalid") return "DIRECT";
            return "PROXY 127.0.0.1:\(port)";
        }
        """
    }

    /// The servers are on this machine, and are reached through the parent all the same.
    private static func parent(_ parent: String) -> [String: String] {
        ["COUNTERSIGN_PARENT": parent, "COUNTERSIGN_NO_PROXY": "<-loopback>"]
    }

    @Test func aScriptFromAWebServerDecidesAndItsLastCopyIsKept() throws {
        let isGone = Atomic(false)
        let server = try StatusServer { _ in
            isGone.load(ordering: .relaxed) ? .status(503, fields: []) : .body(Array(Self.script(8080).utf8))
        }
        let parent = "pac:" + server.url("/proxy.pac")
        func route(_ url: String) throws -> CommandResult { try sandbox.countersign("route", "--parent", parent, url) }
        #expect(try route("https://www.corp.invalid").output == "http://127.0.0.1:8080\n")
        #expect(try route("http://direct.corp.invalid/x").output == "direct\n")
        #expect(server.requests.allSatisfy { $0.path == "/proxy.pac" })
        isGone.store(true, ordering: .relaxed)
        let later = try route("https://www.corp.invalid")
        #expect(later.status == 0 && later.output == "http://127.0.0.1:8080\n")
        #expect(later.said.contains("was answered with status 503; the last good copy is used"), "\(later.said)")
        let other = try sandbox.countersign("route", "--parent", "pac:" + server.url("/other"), "www.corp.invalid")
        #expect(other.status == 1 && other.said.contains("--parent: no next hop"), "\(other.said)")
    }

    @Test func aRunningServerSaysWhatItDoes() throws {
        let parent = try SquidParent(.none)
        let origin = try StatusServer { _ in .body(Array("hello".utf8)) }
        let script = try sandbox.folder.write("proxy.pac", Self.script(parent.port))
        let server = try sandbox.serve("--parent", "pac:\(script)")
        let address = try server.line(after: "countersign: listening on ")
        let reply = try sandbox.sh("curl -sS --proxy http://\(address) \(origin.url("/a"))")
        #expect(reply.output == "hello", "\(reply.said)")
        #expect(parent.logged("GET").count == 1)
        #expect(try sandbox.succeed("route", "www.corp.invalid") == "http://127.0.0.1:\(parent.port)\n")
        #expect(try sandbox.succeed("route", "direct.corp.invalid") == "direct\n")
        #expect(try sandbox.succeed("route", "--parent", "direct", "www.corp.invalid") == "direct\n")
        let line = "route        http://127.0.0.1:\(parent.port) (script \(script))"
        #expect(try sandbox.succeed("explain", "www.corp.invalid").contains(line))
        let json = try sandbox.succeed("explain", "--json", "www.corp.invalid")
        #expect(json.contains("\"hop\" : \"http://127.0.0.1:\(parent.port)\""), "\(json)")
    }

    @Test func withoutASettingExplainIsSilentAndRouteIsDirect() throws {
        #expect(try sandbox.succeed("route", "www.corp.invalid") == "direct\n")
        #expect(try sandbox.succeed("route", "--json", "www.corp.invalid").contains("no parent is set"))
        #expect(try !sandbox.succeed("explain", "www.corp.invalid").contains("route"))
    }

    @Test func anEnrolmentGoesThroughTheParentOfTheVariable() throws {
        let parent = try SquidParent(.none)
        let place = try EnrolledSandbox(environment: Self.parent("http://127.0.0.1:\(parent.port)"))
        let enrolled = try place.enroll()
        #expect(enrolled.status == 0, "\(enrolled.said)")
        let target = place.server.address().dropFirst("https://".count)
        let logged = parent.logged("CONNECT")
        #expect(!logged.isEmpty && logged.allSatisfy { $0 == "200 \(target) -" }, "\(logged)")
        parent.stop()
        let failed = try place.enroll(name: "other")
        #expect(
            failed.status == 1 && failed.said.contains("no connection to the parent http://127.0.0.1:\(parent.port)"),
            "\(failed.said)")
    }

    // MARK: Desktops

    /// GNOME's own program stores the settings and prints them.
    @Test func theProxiesOfADesktopAreUsedAndItsVariablesOnlyWithoutThem() throws {
        let environment = try sandbox.environment(adding: [
            "HOME": sandbox.folder.path, "XDG_CONFIG_HOME": sandbox.folder.file("config"),
            "GSETTINGS_BACKEND": "keyfile", "http_proxy": "http://variable.corp.invalid:1",
        ])
        func set(_ settings: String...) throws {
            for setting in settings {
                let words = setting.split(separator: " ", maxSplits: 2).map(String.init)
                let schema = "org.gnome.system.proxy" + (words[0] == "." ? "" : words[0])
                let done = try Command.run(
                    try Tool.path("gsettings"), ["set", schema] + words.dropFirst(),
                    environment: environment, folder: sandbox.folder.path, in: sandbox.folder)
                try #require(done.status == 0, "\(done.said)")
            }
        }
        func route(_ url: String) throws -> String {
            let done = try Command.run(
                try Sandbox.executable, ["route", "--parent", "system", url], environment: environment,
                folder: sandbox.folder.path, in: sandbox.folder)
            return done.output + done.error
        }
        #expect(try route("http://www.corp.invalid") == "http://variable.corp.invalid:1\n")
        try set(
            ". mode manual", ".http host proxy.corp.invalid", ".http port 3128", ".socks host ::1", ".socks port 1080",
            ". ignore-hosts ['localhost', '10.0.0.0/8', '*.local']")
        #expect(try route("http://www.corp.invalid") == "http://proxy.corp.invalid:3128\n")
        #expect(try route("https://www.corp.invalid") == "socks5h://[::1]:1080\n")
        for host in ["10.1.2.3", "printer.local"] { #expect(try route("http://\(host)") == "direct\n") }
        let script = try sandbox.folder.write("proxy.pac", Self.script(8080))
        try set(". mode auto", ". autoconfig-url file://\(script)")
        #expect(try route("https://www.corp.invalid") == "http://127.0.0.1:8080\n")
        #expect(try route("https://direct.corp.invalid") == "direct\n")
        try set(". mode manual", ".http host \"two words\"")
        let fault = try route("http://www.corp.invalid")
        #expect(fault.contains("the desktop's proxy setting: ") && fault.contains("two words"), "\(fault)")
    }

    // MARK: Networks

    /// A machine with two networks, each with a parent: one is unplugged, with a connection that is kept, and plugged
    /// in again.
    @Test(arguments: [true, false])
    func aNetworkThatGoesAndComesChangesTheParentWithoutARestart(isScript: Bool) throws {
        let script = try sandbox.folder.write(
            "proxy.pac",
            """
            function FindProxyForURL(url, host) {
                if (isInNet(myIpAddress(), "10.99.1.0", "255.255.255.0")) return "PROXY 10.99.1.2:8080";
                return "PROXY 10.99.2.2:8080";
            }
            """)
        let parents = isScript ? "pac:\(script)" : "http://10.99.1.2:8080,http://10.99.2.2:8080"
        let result = try Command.run(
            try Tool.path("unshare"),
            ["-rn", Tool.client("networks.sh"), try Sandbox.executable, sandbox.folder.path, parents],
            environment: try sandbox.environment(), in: sandbox.folder)
        #expect(
            result.output == """
                at work: corp
                at home: home
                the request in between: home
                connections to corp: 0
                at work again: corp
                the same process

                """, "\(result.said)")
        let log = TextFile.text(sandbox.folder.file("serve.log"))
        #expect(log.components(separatedBy: "the network has changed").count == 3, "\(log)")
    }

    // MARK: Own requests through parents that demand something

    /// Lists `parent` with the credential `corp`.
    private func list(_ parent: String, _ options: String..., in sandbox: Sandbox, password: String) throws {
        let folder = "\(sandbox.home)/AllowedSites"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let line = (["proxy://\(parent)", "credential=corp"] + options).joined(separator: " ") + "\n"
        try Data(line.utf8).write(to: URL(fileURLWithPath: "\(folder)/parents.sites"))
        try sandbox.succeed(
            "credential", "set", "corp", "--user", SquidParent.user, "--password-stdin", input: password + "\n")
    }

    @Test(arguments: ["basic", "digest", "ntlm"])
    func anEnrolmentAnswersTheParentsChallenge(scheme: String) throws {
        let parent = try SquidParent(scheme == "basic" ? .basic : scheme == "ntlm" ? .ntlm(boundTo: nil) : .digest)
        let place = try EnrolledSandbox(environment: Self.parent("http://127.0.0.1:\(parent.port)"))
        let unlisted = try place.enroll()
        #expect(
            unlisted.status == 1
                && unlisted.said.contains("the parent http://127.0.0.1:\(parent.port) requires authentication"),
            "\(unlisted.said)")
        #expect(unlisted.said.contains("hint: list the parent"), "\(unlisted.said)")
        try list(
            "127.0.0.1:\(parent.port)", scheme == "ntlm" ? "domain=ACME plaintext=yes" : "plaintext=yes",
            in: place.sandbox,
            password: SquidParent.password)
        let enrolled = try place.enroll()
        #expect(enrolled.status == 0, "\(enrolled.said)")
        let target = place.server.address().dropFirst("https://".count)
        #expect(parent.logged("CONNECT").contains("200 \(target) jdoe"), "\(parent.logged("CONNECT"))")
    }

    /// Other processes must not try it again, and neither must this one.
    @Test func aRejectedPasswordForTheParentIsSentOnce() throws {
        let parent = try SquidParent(.basic)
        let place = try EnrolledSandbox(environment: Self.parent("http://127.0.0.1:\(parent.port)"))
        try list("127.0.0.1:\(parent.port)", "plaintext=yes", in: place.sandbox, password: "wrong")
        for _ in 0..<2 {
            let failed = try place.enroll()
            #expect(failed.status == 1 && failed.said.contains("407 Proxy Authentication Required"), "\(failed.said)")
        }
        let sent = parent.logged("CONNECT").filter { $0.hasSuffix(" jdoe") }
        #expect(sent.count == 1, "\(parent.logged("CONNECT"))")
        #expect(try place.sandbox.succeed("credential", "list").contains("rejected"))
    }

    @Test func anEnrolmentGoesThroughAParentWithTLS() throws {
        let parent = try ApacheParent()
        let name = "parent.test.localhost:\(parent.port)"
        let place = try EnrolledSandbox(environment: Self.parent("https://\(name)"))
        let untrusted = try place.enroll()
        #expect(untrusted.status == 1 && untrusted.said.contains(name), "\(untrusted.said)")
        #expect(parent.logged("CONNECT").isEmpty)
        try place.sandbox.succeed("trust", "anchor", "add", try TestPKI.shared.originAnchor)
        try list(name, in: place.sandbox, password: SquidParent.password)
        let enrolled = try place.enroll()
        #expect(enrolled.status == 0, "\(enrolled.said)")
        let tunnels = parent.logged("CONNECT")
        #expect(tunnels.contains { $0.hasPrefix("200 ") && $0.hasSuffix(" jdoe TLSv1.3") }, "\(tunnels)")
    }

    @Test func aDirectConnectionIsMadeIfNoListedParentIsThereAndTheSettingPermitsIt() throws {
        let closed = try RefusingPort()
        let parents = "http://127.0.0.1:\(closed.number)"
        for (isPermitted, setting) in [(false, parents), (true, "\(parents),direct")] {
            let place = try EnrolledSandbox(environment: Self.parent(setting))
            try list("127.0.0.1:\(closed.number)", "plaintext=yes", in: place.sandbox, password: "secret")
            let enrolled = try place.enroll()
            #expect((enrolled.status == 0) == isPermitted, "\(enrolled.said)")
            if !isPermitted { #expect(enrolled.said.contains("127.0.0.1:\(closed.number)"), "\(enrolled.said)") }
        }
    }
}
