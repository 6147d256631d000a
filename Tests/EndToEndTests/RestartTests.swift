// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignVault
import Foundation
import Testing

/// A running proxy that a new process replaces.
@Suite(.waiting) struct RestartTests {
    /// The processes that have taken over, in the order of the log of all of them.
    static func successors(_ process: ChildProcess) -> [Int32] {
        process.errorOutput.split(separator: "\n").compactMap { line in
            guard line.hasSuffix(" has taken over") else { return nil }
            return line.split(separator: " ").dropLast(3).last.flatMap { Int32($0) }
        }
    }

    /// Plain http. Sends `abcdef`, in three seconds if that is wanted.
    private static func origin(_ user: Countersign) throws -> ChildProcess {
        let program = """
            import http.server, os, sys, time
            class Slow(http.server.BaseHTTPRequestHandler):
                def log_message(self, *_):
                    pass
                def do_GET(self):
                    self.send_response(200)
                    self.send_header("Content-Length", "6")
                    self.end_headers()
                    for piece in (b"ab", b"cd", b"ef"):
                        self.wfile.write(piece)
                        self.wfile.flush()
                        while self.path.endswith("slow") and not os.path.exists(sys.argv[1]):
                            time.sleep(0.05)
            class Server(http.server.ThreadingHTTPServer):
                request_queue_size = 128
            server = Server(("127.0.0.1", 0), Slow)
            print("listening", server.server_port)
            server.serve_forever()
            """
        return try ChildProcess(
            try Tool.python(), ["-u", "-c", program, user.folder.file("gate")], capture: user.folder.file("origin"))
    }

    /// Ends the last process; the first one is ended by its owner.
    private static func end(_ proxy: RunningProxy) {
        for process in successors(proxy.process) { kill(process, SIGTERM) }
    }

    private static func isGone(_ process: Int32) -> Bool { kill(process, 0) != 0 }

    /// Restarts the process that has the sockets, and returns the next one.
    private static func restart(_ proxy: RunningProxy, _ count: Int) throws -> Int32 {
        kill(successors(proxy.process).last ?? proxy.process.pid, SIGUSR2)
        let all = poll { successors(proxy.process).count >= count ? successors(proxy.process) : nil }
        return try #require(all?.last, "\(proxy.process.errorOutput)")
    }

    @Test(.timeLimit(.minutes(15))) func noConnectionIsRefusedDuringThreeRestarts() throws {
        let user = try Countersign()
        let origin = try Self.origin(user)
        let url = try "http://127.0.0.1:\(origin.line(after: "listening "))/"
        let proxy = try user.serve()
        defer { Self.end(proxy) }
        let folder = user.folder
        let stop = folder.file("stop")
        // Each request opens a connection of its own; the loop ends when the file is there.
        let loop = try folder.write(
            program: "loop",
            """
            #!/bin/sh
            while [ ! -e "\(stop)" ]; do
                curl -q -sS --max-time 30 -o /dev/null -w '%{http_code} %header{proxy-status}\\n' -x \(proxy.url) \
                    \(url) 2>&1
            done
            """)
        let clients = try (0..<3).map { try ChildProcess(loop, [], capture: folder.file("loop-\($0)")) }
        var answered = 0
        func count() -> Int { clients.reduce(0) { $0 + TextFile.lines($1.outputPath).count } }
        for number in 1...3 {
            _ = poll { count() >= answered + 30 ? true : nil }
            _ = try Self.restart(proxy, number)
            answered = count()
        }
        _ = poll { count() >= answered + 30 ? true : nil }
        try folder.write("stop", "")
        for client in clients { _ = client.waitForExit() }
        let lines = clients.flatMap { TextFile.lines($0.outputPath) }
        #expect(lines.count >= 120 && lines.allSatisfy { $0.hasPrefix("200 ") }, "\(Set(lines))")
        #expect(poll { Self.isGone(Self.successors(proxy.process)[0]) ? true : nil } == true)
        #expect(proxy.process.waitForExit() == 0)
        // The commands reach the process that is there now.
        let locked = try user.run("vault", "lock")
        #expect(locked.status == 0, "\(locked.said)")
    }

    /// The content comes slowly, and the process that began it ends after it.
    @Test(.timeLimit(.minutes(15))) func aRequestInFlightIsFinishedByTheFormerProcess() throws {
        let user = try Countersign()
        let proxy = try user.serve()
        defer { Self.end(proxy) }
        let origin = try Self.origin(user)
        let url = try "http://127.0.0.1:\(origin.line(after: "listening "))/"
        let client = try ChildProcess(
            Tool.path("curl"), ["-q", "-sSN", "-x", proxy.url, url + "slow"],
            capture: user.folder.file("client"))
        _ = poll { client.output.isEmpty ? nil : true }
        _ = try Self.restart(proxy, 1)
        #expect(client.exitStatus == nil, "it is still in flight")
        try user.folder.write("gate", "")
        #expect(client.waitForExit() == 0 && client.output == "abcdef", "\(client.errorOutput)")
        #expect(proxy.process.waitForExit() == 0)
        #expect(try proxy.get(url).text == "abcdef")
    }

    @Test func aProcessThatCannotStartLeavesTheFormerOneAtWork() throws {
        let user = try Countersign()
        let origin = try Self.origin(user)
        let url = try "http://127.0.0.1:\(origin.line(after: "listening "))/"
        let proxy = try user.serve()
        let before = try proxy.get(url).status
        try user.writeSites("https://[\n")
        kill(proxy.process.pid, SIGUSR2)
        let said = poll {
            proxy.process.errorOutput.contains("the restart has failed, and this process goes on") ? true : nil
        }
        #expect(said == true, "\(proxy.process.errorOutput)")
        #expect(proxy.process.errorOutput.contains("the new process has ended with status 1"))
        #expect(try proxy.get(url).status == before && proxy.process.exitStatus == nil)
        // It can be tried again.
        try user.writeSites("")
        _ = try Self.restart(proxy, 1)
        defer { Self.end(proxy) }
        #expect(try proxy.get(url).status == before)
    }

    @Test func anOpenVaultWithAPassphraseIsNotHandedOver() throws {
        let user = try Countersign()
        try user.enroll()
        let passphrase = "canary-passphrase\n"
        let rekeyed = try user.run("vault", "rekey", "--passphrase", "--password-stdin", input: passphrase)
        #expect(rekeyed.status == 0, "\(rekeyed.said)")
        let file = try user.folder.write("passphrase", passphrase)
        let server = try ChildProcess(
            try Countersign.executable,
            ["serve", "--listen", "127.0.0.1:0", "--home", user.home, "--password-stdin"],
            environment: user.environment, input: file, capture: user.folder.file("serve-open"))
        let port = try server.line(after: "countersign: listening on 127.0.0.1:")
        server.send(SIGUSR2)
        // The hint is written after the warning.
        let said = poll { server.errorOutput.contains("hint: stop `countersign serve") ? true : nil }
        #expect(said == true && server.errorOutput.contains("without its passphrase"), "\(server.errorOutput)")

        // A locked one stays locked, and is unlocked in the new process.
        #expect(try user.run("vault", "lock").status == 0)
        server.send(SIGUSR2)
        let next = poll {
            server.errorOutput.contains("has taken over") ? server.waitForExit() : nil
        }
        #expect(next == 0, "\(server.errorOutput)")
        let unlocked = try user.run("vault", "unlock", "--password-stdin", input: passphrase)
        #expect(unlocked.status == 0, "\(unlocked.said)")
        let used = try Command.run(
            Tool.path("curl"), ["-q", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:\(port)/"],
            in: user.folder)
        #expect(used.status == 0, "\(used.said)")
        for process in Self.successors(server) { kill(process, SIGTERM) }
    }

    /// sd_listen_fds(3), as systemd does it.
    @Test func theSocketsOfTheServiceManagerAreUsed() throws {
        let user = try Countersign()
        let path = user.folder.file("proxy.sock")
        let program = """
            import os, socket, sys
            tcp = socket.socket()
            tcp.bind(("127.0.0.1", 0))
            tcp.listen()
            local = socket.socket(socket.AF_UNIX)
            local.bind(sys.argv[1])
            local.listen()
            os.dup2(tcp.fileno(), 10); os.dup2(local.fileno(), 11)
            os.dup2(10, 3); os.dup2(11, 4)
            os.environ.update(LISTEN_FDS="2", LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES="a:b")
            os.execv(sys.argv[2], sys.argv[2:])
            """
        let server = try ChildProcess(
            try Tool.python(), ["-c", program, path, try Countersign.executable, "serve", "--home", user.home],
            environment: user.environment, capture: user.folder.file("activated"))
        let port = try server.line(after: "countersign: listening on 127.0.0.1:")
        _ = try server.line(after: "countersign: listening on unix:\(path)")
        let origin = try Self.origin(user)
        let url = try "http://127.0.0.1:\(origin.line(after: "listening "))/"
        // curl knows no proxy at a Unix-domain socket; a request without a host of its own is one to the proxy itself.
        for (flags, status) in [(["-x", "http://127.0.0.1:\(port)"], "200"), (["--unix-socket", path], "400")] {
            let done = try Command.run(
                Tool.path("curl"), ["-q", "-sS", "-o", "/dev/null", "-w", "%{http_code}"] + flags + [url],
                in: user.folder)
            #expect(done.status == 0 && done.output == status, "\(flags): \(done.said)")
        }
        server.send(SIGTERM)
        #expect(server.waitForExit() == 0, "\(server.errorOutput)")
        #expect(FileManager.default.fileExists(atPath: path), "the file is the service manager's")
    }
}
