// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// The result of a program that has exited.
package struct CommandResult: Sendable {
    package let status: Int32
    package let output: String
    package let error: String

    /// All its output, for the message of a failed expectation.
    package var said: String { "exit \(status)\n\(output)\n\(error)" }
}

package enum Command {
    private static let counter = Mutex(0)

    /// Runs a program. Kills it and throws if it does not exit within the limit.
    package static func run(
        _ executable: String, _ arguments: [String], environment: [String: String] = [:], folder: String? = nil,
        input: String? = nil, in scratch: TemporaryFolder, seconds: Double = patience
    ) throws -> CommandResult {
        let number = counter.withLock { count in
            count += 1
            return count
        }
        let capture = scratch.file("command-\(number)")
        var inputPath: String?
        if let input { inputPath = try scratch.write("command-\(number).in", input) }
        let child = try ChildProcess(
            executable, arguments, environment: environment, folder: folder, input: inputPath, capture: capture)
        guard let status = child.waitForExit(seconds: seconds) else {
            child.stop()
            let command = ([executable] + arguments).joined(separator: " ")
            throw HarnessError("\(command) did not exit within \(seconds) s: \(child.errorOutput)")
        }
        return CommandResult(status: status, output: child.output, error: child.errorOutput)
    }

    /// Runs `body` on a thread that may block. Swift's own threads are as many as the processors: a test that blocks
    /// one for long keeps the others waiting, and some of those have time limits.
    package static func detached<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }
}

/// Finds other programs and the files of the checkout.
package enum Tool {
    /// The path of an installed program. Throws an error that says how to install it if it is missing.
    package static func path(_ name: String) throws -> String {
        for folder in ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/bin", "/usr/local/sbin"] {
            let candidate = "\(folder)/\(name)"
            if access(candidate, X_OK) == 0 { return candidate }
        }
        throw HarnessError("\(name) is not installed; run Scripts/test, which installs it")
    }

    /// A Python with pyspnego, requests and websockets: COUNTERSIGN_TEST_PYTHON, or the one that Scripts/test sets up.
    package static func python() throws -> String {
        let chosen = ProcessInfo.processInfo.environment["COUNTERSIGN_TEST_PYTHON"]
        let path = chosen ?? "\(repository)/.build/venv/bin/python"
        guard access(path, X_OK) == 0 else {
            throw HarnessError("no Python for the test servers at \"\(path)\"; run Scripts/test, which sets it up")
        }
        return path
    }

    /// The package's root folder.
    package static let repository = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

    /// A file of Tests/TestOrigin/Servers.
    package static func server(_ name: String) -> String { "\(repository)/Tests/TestOrigin/Servers/\(name)" }

    /// A file of Tests/TestOrigin/Clients.
    package static func client(_ name: String) -> String { "\(repository)/Tests/TestOrigin/Clients/\(name)" }

    /// A file of Certs/dev/pki.
    package static func fixture(_ name: String) -> String { "\(repository)/Certs/dev/pki/\(name)" }
}
