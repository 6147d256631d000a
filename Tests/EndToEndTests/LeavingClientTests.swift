// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Clients that leave while a site or a parent is judging their password: the verdict counts nevertheless.
@Suite(.waiting) struct LeavingClientTests {
    private let user: Countersign
    private let server: ChildProcess
    private let port: Int

    init() throws {
        user = try Countersign()
        server = try ChildProcess(
            try Tool.python(), [Tool.server("slow_verdict.py"), Countersign.password],
            capture: user.folder.file("server"))
        port = try Int(server.line(after: "listening ")) ?? 0
    }

    /// Resets its connection when it is killed, as a client does that has not read everything.
    private static let client = """
        import socket, struct, sys, time
        connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(f"{sys.argv[2]} HTTP/1.1\\r\\nHost: {sys.argv[3]}\\r\\n\\r\\n".encode())
        time.sleep(600)
        """

    /// A request whose client is killed as soon as the password has arrived for the `number`th time.
    private func leave(_ line: String, host: String, _ proxy: RunningProxy, asked number: Int) throws {
        let client = try ChildProcess(
            try Tool.python(), ["-c", Self.client, "\(proxy.port)", line, host],
            capture: user.folder.file("client-\(number)"))
        _ = try server.line(after: "asked \(number)")
        client.send(SIGKILL)
        try #require(client.waitForExit() != nil)
    }

    private func release() throws {
        let done = try Command.run(
            try Tool.path("curl"), ["-q", "-sS", "http://127.0.0.1:\(port)/release"], in: user.folder)
        try #require(done.output == "released", "\(done.said)")
    }

    /// Waits until `credential list` shows `wanted`.
    private func expectListed(_ wanted: String) throws {
        var listed = ""
        let isListed = try poll { () -> Bool? in
            listed = try user.succeed("credential", "list")
            return listed.contains(wanted) ? true : nil
        }
        #expect(isListed == true, "\(listed)")
    }

    /// As a browser does that cancels the request for a site's icon, again and again.
    @Test func aRightPasswordIsNotHeldBack() throws {
        try user.enroll()
        let url = "http://icons.test.localhost:\(port)"
        try user.allow("\(url) answer=basic plaintext=yes")
        let proxy = try user.serve()
        for number in 1...3 {
            try leave("GET \(url)/favicon.ico?\(number)", host: "icons.test.localhost", proxy, asked: number)
            try release()
        }
        try release()
        let seen = try proxy.get("\(url)/page")
        #expect(seen.status == 200 && seen.text == "ok", "\(seen.said)")
        #expect(try !user.succeed("credential", "list").contains("no answer"))
    }

    @Test func aWrongPasswordIsFound() throws {
        try user.enroll(password: Countersign.wrongPassword)
        let url = "http://icons.test.localhost:\(port)"
        try user.allow("\(url) answer=basic plaintext=yes")
        let proxy = try user.serve()
        try leave("GET \(url)/", host: "icons.test.localhost", proxy, asked: 1)
        try release()
        try expectListed("rejected at \(url)")
        #expect(try proxy.get("\(url)/").status == 401)
    }

    /// The client of a tunnel leaves.
    @Test(arguments: [true, false]) func aParentsVerdictCountsToo(isRight: Bool) throws {
        try user.enroll(password: isRight ? Countersign.password : Countersign.wrongPassword)
        try user.allow("proxy://127.0.0.1:\(port) plaintext=yes")
        let proxy = try user.serve("--parent", "http://127.0.0.1:\(port)")
        try leave("CONNECT tunnel.example:443", host: "tunnel.example:443", proxy, asked: 1)
        try release()
        if isRight {
            for number in 2...3 {
                try leave("CONNECT tunnel.example:443", host: "tunnel.example:443", proxy, asked: number)
                try release()
            }
            #expect(try !user.succeed("credential", "list").contains("no answer"))
        } else {
            try expectListed("rejected at proxy://127.0.0.1:\(port)")
        }
    }
}
