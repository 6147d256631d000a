// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Signals sent to `countersign exec`.
@Suite(.waiting) struct ExecTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    private func start(_ script: String) throws -> ChildProcess {
        let process = try ChildProcess(
            try Sandbox.executable, ["exec", "--", "/bin/sh", "-c", script], environment: try sandbox.environment(),
            capture: sandbox.folder.file("exec"))
        _ = try process.line(after: "ready")
        return process
    }

    @Test(arguments: [(SIGTERM, "TERM"), (SIGINT, "INT"), (SIGHUP, "HUP"), (SIGQUIT, "QUIT")])
    func signalFromAProcessIsForwarded(_ signal: Int32, _ name: String) throws {
        let process = try start("trap 'echo caught; exit 3' \(name); echo ready; while :; do sleep 0.02; done")
        process.send(signal)
        #expect(process.waitForExit() == 3)
        #expect(process.output == "ready\ncaught\n")
    }

    @Test
    func deathBySignalGivesTheShellsExitStatus() throws {
        let process = try start("echo ready; exec sleep 30")
        process.send(SIGTERM)
        #expect(process.waitForExit() == 128 + SIGTERM)
    }

    @Test
    func proxyEndsWithTheCommand() throws {
        let process = try start("echo ready $http_proxy")
        let port = try #require(process.output.split(separator: ":").last.flatMap { Int($0.dropLast()) })
        #expect(process.waitForExit() == 0)
        #expect(!Loopback.answers(port: port))
    }

    @Test
    func commandInheritsOnlyOurInheritedDescriptors() throws {
        let plain = try sandbox.sh("ls /proc/self/fd 7</dev/null")
        let executed = try sandbox.sh("countersign exec -- ls /proc/self/fd 7</dev/null")
        #expect(plain.output.split(separator: "\n").last == "7")
        #expect(executed.output == plain.output, "\(executed.said)")
    }
}
