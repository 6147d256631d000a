// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// A program with a minimal environment and its output in files. It is killed in `deinit` if it still runs.
package final class ChildProcess: Sendable {
    package let pid: pid_t
    package let outputPath: String
    package let errorPath: String
    private let name: String
    private let status = Mutex<Int32?>(nil)

    /// - Parameters:
    ///   - input: the program's standard input; empty if nil.
    ///   - capture: the path of the output files without their extensions `.out` and `.err`.
    package init(
        _ executable: String, _ arguments: [String], environment: [String: String] = [:], folder: String? = nil,
        input: String? = nil, capture: String
    ) throws {
        outputPath = capture + ".out"
        errorPath = capture + ".err"
        name = (executable as NSString).lastPathComponent
        _ = Reaper.shared
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, input ?? "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, outputPath, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        posix_spawn_file_actions_addopen(&actions, 2, errorPath, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        actions.closeAllButTheFirstThree()
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var noSignals = sigset_t()
        sigemptyset(&noSignals)
        posix_spawnattr_setsigmask(&attributes, &noSignals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let command = (folder.map { ["/usr/bin/env", "-C", $0] } ?? []) + [executable] + arguments
        let argv = CStrings(command)
        let envp = CStrings(Self.environment(adding: environment).map { "\($0.key)=\($0.value)" })
        var started: pid_t = 0
        let failure = posix_spawn(&started, command[0], &actions, &attributes, argv.pointers, envp.pointers)
        guard failure == 0 else {
            throw HarnessError("cannot start \"\(executable)\": \(String(cString: strerror(failure)))")
        }
        pid = started
        Reaper.shared.started(pid)
    }

    deinit { stop() }

    /// The environment of every child, without the machine's proxy and trust settings.
    package static func environment(adding own: [String: String] = [:]) -> [String: String] {
        var all = [
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent",
            "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
        ]
        all.merge(own) { _, new in new }
        return all
    }

    package var output: String { TextFile.text(outputPath) }
    package var errorOutput: String { TextFile.text(errorPath) }

    /// The exit status, 128 + n after signal n, or nil if it is still running.
    package var exitStatus: Int32? {
        status.withLock { known in
            if let known { return known }
            var raw: Int32 = 0
            guard waitpid(pid, &raw, WNOHANG) == pid else { return nil }
            let signal = raw & 0x7f
            known = signal == 0 ? (raw >> 8) & 0xff : 128 + signal
            Reaper.shared.ended(pid)
            return known
        }
    }

    package func send(_ signal: Int32) {
        if exitStatus == nil { kill(pid, signal) }
    }

    /// Waits until it exits. Returns nil if it does not within the limit.
    package func waitForExit(seconds: Double = patience) -> Int32? {
        poll(seconds: seconds) { self.exitStatus }
    }

    /// Sends SIGTERM, and SIGKILL three seconds later.
    package func stop() {
        guard exitStatus == nil else { return }
        kill(pid, SIGTERM)
        if waitForExit(seconds: 3) == nil {
            kill(pid, SIGKILL)
            _ = waitForExit(seconds: 3)
        }
    }

    /// Waits for a line of output that begins with `prefix` and returns the rest of that line, which a program may
    /// write in pieces.
    package func line(after prefix: String, seconds: Double = patience) throws -> String {
        let found = poll(seconds: seconds) { () -> String?? in
            let written = self.output
            let end = written.lastIndex(of: "\n") ?? written.startIndex
            for line in written[..<end].split(separator: "\n") where line.hasPrefix(prefix) {
                return String(line.dropFirst(prefix.count))
            }
            return self.exitStatus == nil ? nil : .some(nil)
        }
        guard case .some(.some(let rest)) = found else {
            let end = exitStatus.map { "exited with status \($0)" } ?? "is still running"
            throw HarnessError("\(name) did not print \"\(prefix)\" and \(end): \(output)\(errorOutput)")
        }
        return rest
    }
}

/// How many seconds a test waits for what must happen: longer than the busiest machine needs. Only a test that fails
/// waits that long.
package let patience = 240.0

/// Polls every few milliseconds until there is a value or the time is up.
package func poll<Answer>(seconds: Double = patience, _ question: () throws -> Answer?) rethrows -> Answer? {
    let end = ContinuousClock.now + .seconds(seconds)
    while true {
        if let answer = try question() { return answer }
        if ContinuousClock.now >= end { return nil }
        usleep(3000)
    }
}

extension posix_spawn_file_actions_t {
    /// SwiftNIO's sockets and Foundation's pipes are not close-on-exec. A child would keep those of other tests open,
    /// and a reader that waits for their end would wait until the child exits.
    package mutating func closeAllButTheFirstThree() {
        let listed = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        for descriptor in 3...(listed.compactMap { Int32($0) }.max() ?? 3) + 64 {
            posix_spawn_file_actions_addclose(&self, descriptor)
        }
    }
}
