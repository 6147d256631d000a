// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import Dispatch
import Glibc

/// A command in the foreground: it has this process's terminal, streams and process group.
enum ChildProcess {
    /// Runs `words` and gives its status as a shell would: its own, or 128 and the number of the signal that ended it.
    /// Signals that a process sends to this one are passed on; those of the terminal reach the command by themselves.
    /// Throws 127 or 126, after saying why, when the command was not started.
    static func run(
        _ words: [String], environment: [String: String], descriptors: InheritedDescriptors
    ) async throws -> Int32 {
        let child = try start(words, environment, descriptors)
        let signals = Task {
            for await arrival in SignalWatch.arrivals() where arrival.isFromProcess { kill(child, arrival.number) }
        }
        let status = await withCheckedContinuation { continuation in
            DispatchQueue(label: "countersign.child").async { continuation.resume(returning: wait(for: child)) }
        }
        signals.cancel()
        return status
    }

    private static func start(
        _ words: [String], _ environment: [String: String], _ descriptors: InheritedDescriptors
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        descriptors.restrict(&actions)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The command begins as it would from a shell: no signal blocked, SIGPIPE not ignored.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var defaults = sigset_t()
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var arguments = words.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { (arguments + variables).forEach { free($0) } }
        var child: pid_t = 0
        let failure = posix_spawnp(&child, words[0], &actions, &attributes, &arguments, &variables)
        guard failure == 0 else {
            Console.error(Diagnostic("cannot run \(words[0]): \(String(cString: strerror(failure)))"))
            throw ExitCode(failure == ENOENT || failure == ENOTDIR ? 127 : 126)
        }
        return child
    }

    private static func wait(for child: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 {
            guard errno == EINTR else { return 1 }
        }
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }
}
