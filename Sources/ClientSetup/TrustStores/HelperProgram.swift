// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import CountersignHome
import Glibc

/// Runs a system program to completion, and collects its output.
struct HelperProgram {
    struct Outcome {
        /// The exit status, or 128 plus the number of the signal that ended the program, as in a shell.
        let status: Int32
        let output: [UInt8]
        let error: [UInt8]

        /// The first three lines of standard error, or of standard output if standard error is empty.
        var excerpt: String {
            for bytes in [error, output] {
                let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).prefix(3)
                if !lines.isEmpty { return lines.joined(separator: "; ") }
            }
            return "no output"
        }
    }

    /// The program's path and its arguments.
    let words: [String]
    var environment: [String: String]

    /// Runs the program with `input` as its standard input, and waits for it. It keeps access to the terminal.
    func run(input: [UInt8] = []) throws(CountersignError) -> Outcome {
        var standardInput: [Int32] = [-1, -1]
        var streams: [[Int32]] = [[-1, -1], [-1, -1]]
        defer { for end in standardInput + streams.flatMap(\.self) where end >= 0 { close(end) } }
        // A socket rather than a pipe, because MSG_NOSIGNAL prevents SIGPIPE if the program does not read its input.
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &standardInput) == 0, pipe(&streams[0]) == 0,
            pipe(&streams[1]) == 0
        else { throw .system(errno, "cannot run \(words[0])") }
        for end in standardInput + streams.flatMap(\.self) { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let child = try start([standardInput[0], streams[0][1], streams[1][1]])
        for end in [standardInput[0], streams[0][1], streams[1][1]] { close(end) }
        (standardInput[0], streams[0][1], streams[1][1]) = (-1, -1, -1)

        var rest = input[...]
        var said: [[UInt8]] = [[], []]
        while streams[0][0] >= 0 || streams[1][0] >= 0 {
            if rest.isEmpty, standardInput[1] >= 0 {
                close(standardInput[1])
                standardInput[1] = -1
            }
            var waiting = [
                pollfd(fd: standardInput[1], events: Int16(POLLOUT), revents: 0),
                pollfd(fd: streams[0][0], events: Int16(POLLIN), revents: 0),
                pollfd(fd: streams[1][0], events: Int16(POLLIN), revents: 0),
            ]
            if poll(&waiting, 3, -1) < 0, errno != EINTR { break }
            if waiting[0].revents != 0 {
                let count = rest.withUnsafeBytes {
                    send(
                        standardInput[1], $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)
                    )
                }
                // The program has closed its standard input; discard the rest.
                rest = count > 0 ? rest.dropFirst(count) : errno == EAGAIN || errno == EINTR ? rest : []
            }
            for index in 0..<2 where waiting[index + 1].revents != 0 {
                if !Self.read(streams[index][0], into: &said[index]) {
                    close(streams[index][0])
                    streams[index][0] = -1
                }
            }
        }
        return Outcome(status: Self.wait(for: child), output: said[0], error: said[1])
    }

    /// Runs the program and returns its standard output. Throws an excerpt of its output if it fails.
    @discardableResult
    func succeed(input: [UInt8] = []) throws(CountersignError) -> [UInt8] {
        let outcome = try run(input: input)
        guard outcome.status == 0 else {
            let name = words[0].split(separator: "/").last.map(String.init) ?? words[0]
            throw CountersignError(.environment, "\(name) failed with \(outcome.status): \(outcome.excerpt)")
        }
        return outcome.output
    }

    private func start(_ ends: [Int32]) throws(CountersignError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, end) in ends.enumerated() { posix_spawn_file_actions_adddup2(&actions, end, Int32(number)) }
        // Sockets of this process may be open without close-on-exec.
        _ = csn_close_from(&actions, 3)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigaddset(&signals, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var arguments = words.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var child: pid_t = 0
        let failure = posix_spawn(&child, words[0], &actions, &attributes, &arguments, &variables)
        guard failure == 0 else { throw .system(failure, "cannot run \(words[0])") }
        return child
    }

    /// Returns whether there may be more to read.
    private static func read(_ descriptor: Int32, into bytes: inout [UInt8]) -> Bool {
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        let count = Glibc.read(descriptor, &chunk, chunk.count)
        if count < 0 { return errno == EINTR }
        bytes += chunk.prefix(count)
        return count > 0
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

extension StoreLayout {
    /// A program with this layout's environment, in the C locale because its output is parsed.
    func helper(_ words: [String]) -> HelperProgram {
        var environment = environment
        environment["LC_ALL"] = "C"
        // Java programs print a notice about these variables, and may fail because of them.
        for name in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"] { environment[name] = nil }
        return HelperProgram(words: words, environment: environment)
    }

    /// A script for `sh`, with `arguments` as `$1` and following. With `asRoot`, uses `sudo` unless this process is
    /// root.
    func script(_ text: String, _ arguments: [String], asRoot: Bool) throws(CountersignError) -> HelperProgram {
        let words = ["/bin/sh", "-c", text, "sh"] + arguments
        guard asRoot, privilege != .own else { return helper(words) }
        guard privilege == .sudo, let sudo = program("sudo") else {
            throw CountersignError(.environment, "only root may write there")
        }
        return helper([sudo, "--"] + words)
    }
}
