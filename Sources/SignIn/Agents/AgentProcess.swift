// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import Dispatch
import Glibc

/// A program that was started in a session of its own, so that Ctrl-C in the terminal does not end it.
struct AgentProcess: Sendable {
    let identifier: pid_t
    private let hasEnded = DispatchSemaphore(value: 0)

    /// Starts `words[0]`, which is a path. No shell is involved. Without `input` and `output`, which stay open in this
    /// process, there is no input and the output is discarded; standard error always is.
    init(
        _ words: [String], environment: [String: String], input: Int32? = nil, output: Int32? = nil
    ) throws(SignInError) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in [input, output, nil].enumerated() {
            if let descriptor {
                posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(number))
            } else {
                posix_spawn_file_actions_addopen(&actions, Int32(number), "/dev/null", O_RDWR, 0)
            }
        }
        // Sockets of this process may be open without close-on-exec.
        _ = csn_close_from(&actions, 3)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for number in [SIGPIPE, SIGXFSZ] { sigaddset(&signals, number) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        // POSIX_SPAWN_SETSID of <spawn.h>, which the Glibc module leaves out.
        posix_spawnattr_setflags(&attributes, Int16(flags) | 0x80)
        var arguments = words.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var child: pid_t = 0
        let failure = posix_spawn(&child, words[0], &actions, &attributes, &arguments, &variables)
        guard failure == 0 else {
            throw SignInError(.noAgent, "cannot run \(words[0]): \(String(cString: strerror(failure)))")
        }
        identifier = child
    }

    /// Waits for the end of the program. Returns its status, or 128 plus the signal that ended it; nil if the task was
    /// cancelled before. Call it once.
    func status() async -> Int32? {
        let (statuses, ended) = AsyncStream<Int32>.makeStream()
        DispatchQueue(label: "countersign.agent").async { [self] in
            ended.yield(wait())
            ended.finish()
            hasEnded.signal()
        }
        for await status in statuses { return status }
        return nil
    }

    /// Waits until the program has ended, after ``status()`` was called.
    func waitForEnd(within limit: DispatchTimeInterval) async {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "countersign.agent.end").async { [hasEnded] in
                if hasEnded.wait(timeout: .now() + limit) == .success { hasEnded.signal() }
                continuation.resume()
            }
        }
    }

    private func wait() -> Int32 {
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0 {
            guard errno == EINTR else { return 1 }
        }
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    /// Ends the program and everything that it has started in its session.
    func end() { kill(-identifier, SIGTERM) }

    /// The path of a program: `name` itself if it has a slash, else the first in `PATH` that can be executed.
    static func path(of name: String, in environment: [String: String]) -> String? {
        if name.contains("/") { return access(name, X_OK) == 0 ? name : nil }
        let folders = (environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":")
        return folders.lazy.filter { $0.hasPrefix("/") }.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }
}
