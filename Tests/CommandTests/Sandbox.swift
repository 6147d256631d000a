// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation

/// A folder with a home, and commands that find the built executable in their path.
final class Sandbox: Sendable {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder("command")
    }

    var home: String { folder.file("home") }

    /// The executable: COUNTERSIGN_EXECUTABLE, or the one beside this test bundle.
    static var executable: String {
        get throws {
            let environment = ProcessInfo.processInfo.environment
            if let chosen = environment["COUNTERSIGN_EXECUTABLE"] { return chosen }
            let bundles = ProcessInfo.processInfo.arguments.filter { $0.hasSuffix(".xctest") }
            for bundle in bundles + [ProcessInfo.processInfo.arguments[0]] {
                let candidate = URL(fileURLWithPath: bundle).deletingLastPathComponent().path + "/countersign"
                if access(candidate, X_OK) == 0 { return candidate }
            }
            let built = "\(Tool.repository)/.build/debug/countersign"
            guard access(built, X_OK) == 0 else { throw HarnessError("no executable \"countersign\": run swift build") }
            return built
        }
    }

    /// The environment of the commands.
    func environment(adding own: [String: String] = [:]) throws -> [String: String] {
        let programs = URL(fileURLWithPath: try Self.executable).deletingLastPathComponent().path
        return [
            "PATH": "\(programs):/usr/bin:/bin", "HOME": folder.path, "COUNTERSIGN_HOME": home,
            "PKI": "\(Tool.repository)/Certs/dev/pki",
            // Without the Kerberos tickets of the user who runs the tests.
            "KRB5CCNAME": "FILE:\(folder.file("tickets"))",
        ].merging(own) { _, new in new }
    }

    /// Runs a line of sh in the folder, without a controlling terminal.
    func sh(_ command: String, input: String = "", seconds: Double = patience) throws -> CommandResult {
        try Command.run(
            "/usr/bin/setsid", ["--wait", "/bin/sh", "-c", command], environment: try environment(),
            folder: folder.path, input: input, in: folder, seconds: seconds)
    }

    /// Runs `countersign` in the folder.
    @discardableResult
    func countersign(_ arguments: String..., input: String = "") throws -> CommandResult {
        try Command.run(
            "/usr/bin/setsid", ["--wait", try Self.executable] + arguments, environment: try environment(),
            folder: folder.path, input: input, in: folder)
    }

    /// Runs `countersign`, expects status 0 and returns the output.
    @discardableResult
    func succeed(_ arguments: String..., input: String = "") throws -> String {
        let result = try Command.run(
            "/usr/bin/setsid", ["--wait", try Self.executable] + arguments, environment: try environment(),
            folder: folder.path, input: input, in: folder)
        guard result.status == 0 else {
            throw HarnessError("countersign \(arguments.joined(separator: " ")): \(result.said)")
        }
        return result.output
    }

    /// Starts `countersign serve` on a free port and waits until it is ready.
    func serve(_ flags: String..., environment own: [String: String] = [:]) throws -> ChildProcess {
        let server = try ChildProcess(
            try Self.executable, ["serve", "--listen", "127.0.0.1:0"] + flags,
            environment: try environment(adding: own), folder: folder.path,
            capture: folder.file("serve-\(UUID().uuidString)"))
        _ = try server.line(after: "countersign: listening on ")
        return server
    }
}
