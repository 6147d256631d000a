// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

extension Sandbox {
    /// Runs `countersign ARGUMENTS` under strace, which kills it at its `count`th call of `call`. Returns whether it
    /// was killed.
    func isKilled(at call: String, _ count: Int, _ arguments: [String]) throws -> Bool {
        // Pinned to one processor, so that all tasks share one thread: strace counts calls per thread.
        let result = try Command.run(
            try Tool.path("taskset"),
            [
                "-c", Self.processor, try Tool.path("strace"), "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)",
                "-e", "inject=\(call):signal=KILL:when=\(count)", try Self.executable,
            ] + arguments, environment: try environment(), folder: folder.path, in: folder)
        guard result.status == 0 else {
            try #require(result.status == 128 + SIGKILL, "\(call) \(count): \(result.said)")
            return true
        }
        return false
    }

    /// The first processor that this process may use.
    private static let processor: String = {
        let line = TextFile.lines("/proc/self/status").first { $0.hasPrefix("Cpus_allowed_list:") } ?? ""
        return String(line.dropFirst("Cpus_allowed_list:".count).drop { $0.isWhitespace }.prefix { $0.isNumber })
    }()
}
