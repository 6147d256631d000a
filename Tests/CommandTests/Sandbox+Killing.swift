// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

extension Sandbox {
    /// Runs `countersign ARGUMENTS` under strace, which kills it at the `count`th call of `call` in one thread. Returns
    /// nil if it was killed, and otherwise the number of these calls in all threads: on a busy machine, several threads
    /// may share them, and then the last calls of the run are not reached.
    func callsUnlessKilled(
        at call: String, _ count: Int, _ arguments: [String], environment own: [String: String] = [:]
    ) throws -> Int? {
        let log = folder.file("calls")
        // Pinned to one processor, so that the tasks share few threads.
        let result = try Command.run(
            try Tool.path("taskset"),
            [
                "-c", Self.processor, try Tool.path("strace"), "-f", "-qq", "-o", log, "-e", "trace=\(call)",
                "-e", "inject=\(call):signal=KILL:when=\(count)", try Self.executable,
            ] + arguments, environment: try environment(adding: own), folder: folder.path, in: folder)
        guard result.status == 0 else {
            try #require(result.status == 128 + SIGKILL, "\(call) \(count): \(result.said)")
            return nil
        }
        return TextFile.lines(log).filter { $0.contains(" \(call)(") }.count
    }

    /// The first processor that this process may use.
    private static let processor: String = {
        let line = TextFile.lines("/proc/self/status").first { $0.hasPrefix("Cpus_allowed_list:") } ?? ""
        return String(line.dropFirst("Cpus_allowed_list:".count).drop { $0.isWhitespace }.prefix { $0.isNumber })
    }()
}
