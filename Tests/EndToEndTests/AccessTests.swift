// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Who may use the proxy on which address, and how it starts and stops.
@Suite(.waiting) struct AccessTests {
    private static let token = "kanarie-token-5d0c9a21"

    private func openURL() throws -> String {
        "http://unlisted.test.localhost:\(try Origins.shared.nginx.httpPort)/who"
    }

    /// Runs a program as the user nobody; Scripts/test uses sudo if it is not run by root.
    private func asNobody(_ command: [String], in scratch: TemporaryFolder) throws -> CommandResult {
        let drop = ["--reuid=65534", "--regid=65534", "--clear-groups"] + command
        if getuid() == 0 { return try Command.run(Tool.path("setpriv"), drop, in: scratch) }
        return try Command.run(Tool.path("sudo"), ["-n", Tool.path("setpriv")] + drop, in: scratch)
    }

    @Test func otherUserIsRefusedAndNothingIsSent() throws {
        let user = try Countersign()
        let proxy = try user.serve()
        let query = "nobody-\(proxy.port)"
        let curl = ["-q", "-sS", "-x", proxy.url, "-o", "/dev/null", "-w", "%{http_code}", try "\(openURL())?\(query)"]
        let seen = try asNobody([Tool.path("curl")] + curl, in: user.folder)
        #expect(seen.output == "403", "\(seen.said)")
        #expect(try Origins.shared.logged(query: query).isEmpty)
        let own = try proxy.get("\(openURL())?\(query)")
        #expect(own.status == 200, "\(own.said)")
    }

    @Test(arguments: ["http", "https"])
    func otherUserReadsWhyItIsRefused(_ scheme: String) throws {
        let user = try Countersign()
        let proxy = try user.serve()
        // A body that the proxy does not read must not destroy the response.
        let curl = ["-q", "-sS", "-v", "-x", proxy.url, "--data-binary", "@/etc/services", "\(scheme)://a.invalid/"]
        let seen = try asNobody([Tool.path("curl")] + curl, in: user.folder)
        #expect(seen.said.contains("403 Forbidden: this proxy serves user "), "\(seen.said)")
        #expect(seen.said.contains(", not user nobody; see --allow-user\""), "\(seen.said)")
    }

    @Test func allowedUserIsServedAndOthersAreNot() throws {
        let user = try Countersign()
        let proxy = try user.serve("--allow-user", "nobody", "--allow-user", "1")
        let query = "allowed-\(proxy.port)"
        let curl = ["-q", "-sS", "-x", proxy.url, "-o", "/dev/null", "-w", "%{http_code}", try "\(openURL())?\(query)"]
        let seen = try asNobody([Tool.path("curl")] + curl, in: user.folder)
        #expect(seen.output == "200", "\(seen.said)")
        let other = try user.serve("--allow-user", "1")
        let refused = try asNobody(
            [Tool.path("curl"), "-q", "-sS", "-x", other.url, "-o", "/dev/null", "-w", "%{http_code}", try openURL()],
            in: user.folder)
        #expect(refused.output == "403", "\(refused.said)")
    }

    @Test func refusedConnectionsDoNotFillTheLog() throws {
        let user = try Countersign()
        let proxy = try user.serve()
        let script = """
            import socket, sys
            for _ in range(200):
                with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10) as s:
                    s.send(b"GET")
                    s.recv(1)
            """
        let seen = try asNobody(["/usr/bin/python3", "-c", script, String(proxy.port)], in: user.folder)
        #expect(seen.status == 0, "\(seen.said)")
        func lines() -> [Substring] {
            proxy.process.errorOutput.split(separator: "\n").filter { $0.contains("refused ") }
        }
        #expect(lines().count == 1)
        #expect(
            lines().first?.hasSuffix("refused a connection from user 65534: this proxy serves only user \(getuid())")
                == true)
        proxy.process.send(SIGTERM)
        _ = proxy.process.waitForExit()
        #expect(lines().count == 2)
        #expect(lines().last?.hasSuffix("refused 199 connections from user 65534 since the last report") == true)
    }

    @Test func lackOfDescriptorsIsReportedAsSuch() throws {
        let user = try Countersign()
        let proxy = try user.serve()
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(proxy.process.pid)/fd").count
        let limited = try Command.run(
            Tool.path("prlimit"), ["--pid", String(proxy.process.pid), "--nofile=\(open + 20):\(open + 20)"],
            in: user.folder)
        #expect(limited.status == 0, "\(limited.said)")
        var connections = try (0..<100).map { _ in try RawConnection(port: proxy.port) }
        let isReported: Bool? = poll {
            proxy.process.errorOutput.contains("out of file descriptors") ? true : nil
        }
        #expect(isReported == true, "\(proxy.process.errorOutput)")
        #expect(!proxy.process.errorOutput.contains("unknown user"))
        let reports = proxy.process.errorOutput.split(separator: "\n").filter { $0.contains("descriptors") }
        #expect(reports.count <= 2, "\(proxy.process.errorOutput)")
        connections.removeAll()
        let isServed: Bool? = try poll { try proxy.get(openURL()).status == 200 ? true : nil }
        #expect(isServed == true)
    }

    @Test func otherUserIsRefusedOnTheUnixSocket() throws {
        let user = try Countersign()
        let path = user.folder.file("door")
        let proxy = try user.serve("--listen", "unix:\(path)")
        let query = "unix-nobody-\(proxy.port)"
        let script = """
            import socket, sys
            s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1])
            s.sendall(b"GET " + sys.argv[2].encode() + b" HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            print(s.recv(100).decode())
            """
        let seen = try asNobody(["/usr/bin/python3", "-c", script, path, "\(openURL())?\(query)"], in: user.folder)
        #expect(!seen.output.contains(" 200 "), "\(seen.said)")
        #expect(try Origins.shared.logged(query: query).isEmpty)
    }

    @Test func unixSocketServesItsOwner() throws {
        let site = try ChallengingOrigin.acme(.ntlm)
        let user = try Countersign()
        try user.enroll()
        try user.allow("https://door.test.localhost:\(site.port) domain=ACME")
        let path = user.folder.file("door")
        let proxy = try user.serve("--listen", "unix:\(path)")
        #expect(proxy.process.output.contains("countersign: listening on unix:\(path)\n"))
        let connection = try RawConnection(path: path)
        let url = "https://door.test.localhost:\(site.port)/echo"
        try connection.send(
            "GET \(url) HTTP/1.1\r\nHost: door.test.localhost:\(site.port)\r\nConnection: close\r\n\r\n")
        let seen = connection.receive()
        #expect(seen.hasPrefix("HTTP/1.1 200 "), "\(seen)")
    }

    @Test func tokenIsRequiredAndNotForwarded() throws {
        let origin = try ChallengingOrigin.acme(.open, certificate: nil)
        let user = try Countersign()
        let file = try user.folder.write("token", "\(Self.token)\n")
        chmod(file, 0o600)
        let proxy = try user.serve("--client-token-file", file)
        let url = "http://token.test.localhost:\(origin.port)/headers"
        let without = try proxy.get(url)
        #expect(without.status == 407 && without.values("Proxy-Authenticate").count == 1, "\(without.said)")
        for wrong in ["countersign:\(Self.token)x", "countersign:", "countersign:\(Self.token.dropLast())"] {
            #expect(try proxy.get(url, flags: ["-U", wrong]).status == 407)
        }
        #expect(
            try proxy.get("https://token.test.localhost:\(origin.port)/", flags: ["-w", "%{http_connect}"]).exit == 56)
        #expect(origin.log.requests.isEmpty)
        let seen = try proxy.get(url, flags: ["-U", "countersign:\(Self.token)"])
        #expect(seen.status == 200 && !seen.text.lowercased().contains("proxy-authorization"), "\(seen.said)")
    }

    @Test(arguments: [
        ["--listen", "0.0.0.0:0"], ["--listen", "[::]:0"], ["--listen", "192.0.2.1:0"],
        ["--listen", "0.0.0.0:0", "--unsafe-listen"],
        ["--listen", "127.0.0.1:99999"], ["--listen", "nonsense"], ["--no-such-flag"],
    ])
    func nonLoopbackAddressIsAUsageError(_ flags: [String]) throws {
        let done = try Countersign().run(["serve"] + flags)
        #expect(done.status == 64 && done.output.isEmpty && !done.error.isEmpty, "\(done.said)")
    }

    @Test func addressInUseFailsWithAMessage() throws {
        let user = try Countersign()
        let proxy = try user.serve()
        let done = try Countersign().run("serve", "--listen", "127.0.0.1:\(proxy.port)")
        #expect(done.status == 1, "\(done.said)")
        #expect(
            done.error.contains("\ncountersign: error: cannot listen on 127.0.0.1:\(proxy.port)"),
            "\(done.said)")
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func signalLetsRequestsInProgressFinish(_ signal: Int32) throws {
        let user = try Countersign()
        let proxy = try user.serve()
        let origin = try ChallengingOrigin.acme(.open, certificate: nil)
        let copy = user.folder.file("copy")
        let url = "http://slow.test.localhost:\(origin.port)/bytes/6000000"
        let download = try ChildProcess(
            Tool.path("curl"), ["-q", "-sS", "-x", proxy.url, "--limit-rate", "3M", "-o", copy, url],
            capture: user.folder.file("slow"))
        _ = poll { TextFile.bytes(copy).isEmpty ? nil : true }
        proxy.process.send(signal)
        let refused = poll { Loopback.answers(port: proxy.port) ? nil : true }
        #expect(refused == true)
        #expect(download.waitForExit() == 0, "\(download.errorOutput)")
        #expect(TextFile.bytes(copy).count == 6_000_000)
        #expect(proxy.process.waitForExit() == 0, "\(proxy.process.errorOutput)")
    }
}
