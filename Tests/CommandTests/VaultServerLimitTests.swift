// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import CountersignTestOrigin
import Foundation
import Testing

@testable import Countersign

/// A `serve` that has many commands, or that has been stopped with SIGSTOP.
@Suite(.waiting) struct VaultServerLimitTests {
    private let sandbox: Sandbox
    private let server: ChildProcess
    private static let passphrase = "canary-passphrase"

    init() throws {
        sandbox = try Sandbox()
        try sandbox.succeed("sites", "add", "https://localhost:1", "answer=basic")
        try sandbox.succeed("credential", "set", "--user", "jdoe", "--password-stdin", input: "canary-one\n")
        try sandbox.succeed("vault", "rekey", "--passphrase", "--password-stdin", input: "\(Self.passphrase)\n")
        server = try Self.serve(sandbox)
    }

    private static func serve(_ sandbox: Sandbox) throws -> ChildProcess {
        let input = try sandbox.folder.write("passphrase", "\(passphrase)\n")
        let server = try ChildProcess(
            try Sandbox.executable, ["serve", "--listen", "127.0.0.1:0", "--password-stdin"],
            environment: try sandbox.environment(), folder: sandbox.folder.path, input: input,
            capture: sandbox.folder.file("serve"))
        _ = try server.line(after: "countersign: listening on ")
        return server
    }

    // MARK: Many commands

    /// Starts proxies as `exec` does until the server has no more room for them.
    private func fill() throws -> [ServerProxy] {
        let vaultServer = try #require(VaultServer(of: Home(path: sandbox.home)))
        var proxies: [ServerProxy] = []
        var reasons: [String] = []
        while proxies.count <= ControlSocket.longOperations,
            let proxy = try vaultServer.openProxy(spoolBytes: 0, declined: { reasons.append($0) })
        {
            proxies.append(proxy)
        }
        #expect(reasons == ["`countersign serve` is busy with 128 other commands"])
        return proxies
    }

    @Test func manyRunningCommandsKeepNeitherShortOperationsNorLockOut() throws {
        let proxies = try fill()
        #expect(proxies.count == ControlSocket.longOperations)
        #expect(try sandbox.succeed("credential", "list").contains("jdoe"))
        #expect(try sandbox.succeed("explain", "localhost:1").contains("yes: credential \"enrollment\""))
        let more = try sandbox.countersign("exec", "--", "true")
        #expect(
            more.error == """
                countersign: warning: `countersign serve` is busy with 128 other commands, so this command opens the \
                vault itself
                countersign: error: the vault needs its passphrase: there is no terminal to ask for the vault's passphrase
                countersign: hint: pass it on standard input with --password-stdin

                """)
        try sandbox.succeed("vault", "lock")
        #expect(try sandbox.succeed("vault", "status").contains("locked"))
        try sandbox.succeed("vault", "unlock", "--password-stdin", input: "\(Self.passphrase)\n")
        // The end of one command makes room for the next.
        guard case .finished = proxies[0].end() else { throw HarnessError("the proxy did not end") }
        let next = try sandbox.countersign("exec", "--", "true")
        #expect(next.status == 0 && next.error.isEmpty, "\(next.said)")
        server.send(SIGTERM)
        #expect(server.waitForExit() == 0)
        #expect(!server.errorOutput.contains("ERROR"), "\(server.errorOutput)")
    }

    /// A connection that has not sent its request makes room for another one.
    @Test func silentConnectionsDoNotKeepLockOut() throws {
        var silent: [ControlConnection] = []
        for _ in 0..<ControlSocket.connections {
            silent.append(try ControlSocket.connect(to: Home(path: sandbox.home)))
        }
        // From this process: until a command has started on a busy machine, the silent ones may have reached their own
        // time limit.
        _ = try ControlSocket.ask(.lock, of: Home(path: sandbox.home))
        // The connection that has waited longest gets the reason. Which one that is depends on the threads that wait
        // for them.
        let reason = poll { () -> String? in
            for connection in silent where connection.waitForInput(seconds: 0) {
                if case .line(let line) = connection.receiveLine() { return String(decoding: line, as: UTF8.self) }
            }
            return nil
        }
        #expect(reason?.contains("the server is busy with 64 other commands") == true, "\(reason ?? "no reason")")
        #expect(try sandbox.succeed("vault", "status").contains("locked"))
    }

    @Test func aServerThatStopsRepliesToEveryCommandFirst() throws {
        let proxies = try fill()
        server.send(SIGTERM)
        #expect(server.waitForExit() == 0)
        let ends = proxies.map { $0.end() }
        let withReport = ends.filter { if case .stopped(_?) = $0 { true } else { false } }
        #expect(withReport.count == ControlSocket.longOperations, "\(ends)")
    }

    // MARK: A test request

    /// Starts `countersign test` of a site that never responds, in the server.
    private func testing(_ origin: SilentOrigin) throws -> ChildProcess {
        let test = try ChildProcess(
            try Sandbox.executable, ["test", "http://127.0.0.1:\(origin.port)"],
            environment: try sandbox.environment(), folder: sandbox.folder.path, capture: sandbox.folder.file("test"))
        #expect(origin.waitForClient())
        return test
    }

    @Test func aServerThatStopsEndsATestRequest() throws {
        let origin = try SilentOrigin()
        let test = try testing(origin)
        server.send(SIGTERM)
        #expect(test.waitForExit() == 1)
        #expect(
            test.errorOutput
                == "countersign: error: `countersign serve` was stopped before the site responded\n")
        #expect(server.waitForExit() == 0)
    }

    @Test func aTestRequestEndsWithItsCommand() throws {
        let origin = try SilentOrigin()
        let test = try testing(origin)
        let connection = try #require(origin.accepted())
        test.send(SIGKILL)
        // By itself, the request would end after a minute.
        #expect(connection.waitForEnd(seconds: 40))
    }

    // MARK: A stopped server

    @Test func execEndsAlthoughTheServerIsStopped() throws {
        let result = try sandbox.sh("countersign exec -- sh -c 'kill -STOP \(server.pid); exit 3'")
        #expect(result.status == 3)
        #expect(
            result.error == "countersign: warning: `countersign serve` does not respond; the command used it\n",
            "\(result.said)")
        server.send(SIGKILL)
    }

    @Test func execSaysThatTheServerHasEnded() throws {
        let result = try sandbox.sh("countersign exec -- sh -c 'kill -KILL \(server.pid); exit 3'")
        #expect(result.status == 3)
        #expect(
            result.error == "countersign: warning: `countersign serve` stopped while the command used it\n",
            "\(result.said)")
    }

    /// The command continues without the proxy, so that it may fail for a reason that nothing else shows.
    @Test func execSaysThatTheServerWasStopped() throws {
        let result = try sandbox.sh(
            "countersign exec -- sh -c 'kill -TERM \(server.pid); while [ -e /proc/\(server.pid)/exe ]; do sleep 0.1; "
                + "done; exit 3'")
        #expect(result.status == 3)
        #expect(
            result.error == "countersign: warning: `countersign serve` stopped while the command used it\n",
            "\(result.said)")
    }

    @Test func noCommandWaitsWithoutLimitForAStoppedServer() throws {
        server.send(SIGSTOP)
        defer { server.send(SIGKILL) }
        // Those that wait to be accepted, until the queue of the socket is full.
        var waiting: [ControlConnection] = []
        #expect(throws: CountersignError.self) {
            for _ in 0..<400 { waiting.append(try ControlSocket.connect(to: Home(path: sandbox.home))) }
        }
        for words in [["vault", "lock"], ["vault", "status"], ["credential", "list"], ["exec", "--", "true"]] {
            let result = try Command.run(
                "/usr/bin/setsid", ["--wait", try Sandbox.executable] + words,
                environment: try sandbox.environment(), folder: sandbox.folder.path, in: sandbox.folder)
            #expect(result.status == 1, "\(words): \(result.said)")
            let asks = result.error.contains("does not respond, so this command opens the vault itself\n")
            #expect(asks == (words[0] != "vault"), "\(words): \(result.said)")
        }
        #expect(!waiting.isEmpty)
    }

    @Test func anOperationEndsAlthoughTheServerIsStopped() throws {
        let place = try EnrolledSandbox()
        try place.sandbox.succeed(
            "vault", "rekey", "--passphrase", "--password-stdin", input: "\(Self.passphrase)\n")
        let server = try Self.serve(place.sandbox)
        defer { server.send(SIGKILL) }
        #expect(try place.enroll().status == 0)
        try place.control(["pending": 9, "retryAfter": "3600"])
        let refresh = try ChildProcess(
            try Sandbox.executable, ["certificate", "refresh", "laptop"], environment: try place.sandbox.environment(),
            folder: place.sandbox.folder.path, capture: place.sandbox.folder.file("refresh"))
        let isWaiting: Bool? = poll { refresh.errorOutput.contains("next poll at") ? true : nil }
        try #require(isWaiting == true, "\(refresh.errorOutput)")
        // It waits for longer than the server may be silent.
        #expect(refresh.waitForExit(seconds: 12) == nil, "\(refresh.errorOutput)")
        server.send(SIGSTOP)
        #expect(refresh.waitForExit() == 1)
        #expect(refresh.errorOutput.contains("error: the server of \(place.sandbox.home) does not respond"))
    }
}
