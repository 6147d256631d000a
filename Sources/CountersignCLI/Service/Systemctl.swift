// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCLinux
import CountersignHome
import FoundationEssentials
import Glibc

/// The user's instance of systemd, by its program `systemctl`.
enum Systemctl {
    /// `systemctl --user` with these words.
    static func command(_ words: [String]) -> [String] { ["systemctl", "--user"] + words }

    /// Throws if there is no instance to talk to.
    static func check() throws(CountersignError) {
        try run(["show-environment"], isQuiet: true)
    }

    /// Runs `systemctl --user` with these words. Throws with the first line of its errors if it fails.
    static func run(_ words: [String], isQuiet: Bool = false) throws(CountersignError) {
        let result = try ToolProcess.run(command(words), isQuiet: isQuiet)
        guard result.status != 0 else { return }
        let line = result.said.split(separator: "\n").first.map(String.init) ?? "status \(result.status)"
        throw CountersignError(.environment, "\(command(words).joined(separator: " ")): \(line)", hint: hint(line))
    }

    private static func hint(_ line: String) -> String {
        if line.contains("bus") || line.contains("systemd as init system") {
            return "there is no systemd for your user here: log in as this user, not with su or sudo, or run "
                + "`countersign serve` yourself"
        }
        return "`countersign service logs` shows the service's messages"
    }
}

/// Another program, run to its end.
enum ToolProcess {
    /// Its status, and what it wrote to standard error. Its standard output is this program's, or nothing if it
    /// `isQuiet`. With `sharesErrors`, so are its errors.
    static func run(
        _ words: [String], isQuiet: Bool = false, sharesErrors: Bool = false
    ) throws(CountersignError) -> (status: Int32, said: String) {
        var ends: [Int32] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw .system(errno, "cannot run \(words[0])") }
        defer { close(ends[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if isQuiet { posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) }
        if !sharesErrors { posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO) }
        _ = csn_close_from(&actions, 3)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var defaults = sigset_t()
        sigemptyset(&defaults)
        for number in [SIGPIPE, SIGXFSZ] { sigaddset(&defaults, number) }
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        var arguments = words.map { strdup($0) } + [nil]
        var variables = ProcessInfo.processInfo.environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var child: pid_t = 0
        let failure = posix_spawnp(&child, words[0], &actions, &attributes, &arguments, &variables)
        close(ends[1])
        guard failure == 0 else {
            throw CountersignError(
                .environment, "cannot run \(words[0]): \(String(cString: strerror(failure)))",
                hint: failure == ENOENT
                    ? "the service needs systemd; without it, run `countersign serve` at login yourself" : nil)
        }
        let said = read(ends[0])
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        return (signal == 0 ? (status >> 8) & 0xFF : 128 + signal, said)
    }

    /// Up to 64 KiB; the rest is discarded.
    private static func read(_ descriptor: Int32) -> String {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            if bytes.count < 64 << 10 { bytes += chunk[..<count] }
        }
    }
}
