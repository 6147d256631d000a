// SPDX-License-Identifier: Apache-2.0

import CountersignCLinux
import CountersignCryptography
import CountersignHome
import FoundationEssentials
import Glibc

/// A secret that a program writes: the first line of its standard output. No shell is involved. It has no input, and
/// what it says on standard error is shown.
struct ProgramSecret {
    /// An absolute path, and arguments.
    private let words: [String]

    /// How long the program may take.
    private static let limit = Duration.seconds(10)
    private static let maximumBytes = 16 << 10

    /// The words are divided by spaces.
    init(_ command: Substring) { words = command.split(separator: " ").map(String.init) }

    /// Throws `environment` for a program that fails, writes nothing, or takes too long. The error names it.
    func read() throws(CountersignError) -> Secret {
        var ends: [Int32] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw .system(errno, "cannot run \(name)") }
        defer { for end in ends where end >= 0 { close(end) } }
        let child = try start(writingTo: ends[1])
        close(ends[1])
        ends[1] = -1
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.maximumBytes + 1)
        defer { bytes.wipe() }
        let deadline = ContinuousClock.now + Self.limit
        let isInTime = read(ends[0], into: &bytes, until: deadline)
        // A program that writes more does not wait for somebody to read it.
        close(ends[0])
        ends[0] = -1
        let status = wait(for: child, until: isInTime ? deadline : .now)
        guard bytes.count <= Self.maximumBytes else { throw failure("wrote more than \(Self.maximumBytes) bytes") }
        guard isInTime, let status else {
            throw failure("did not end within \(Self.limit.components.seconds) seconds")
        }
        guard status == 0 else { throw failure("ended with status \(status)") }
        let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        guard !line.isEmpty else { throw failure("wrote no line") }
        return Secret(line)
    }

    private var name: String { words.first ?? "" }

    private func failure(_ what: String) -> CountersignError {
        CountersignError(
            .environment, "\(name) \(what), and the client secret is the first line that it writes",
            hint: "run it yourself to see why: \(words.joined(separator: " "))")
    }

    private func start(writingTo output: Int32) throws(CountersignError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        _ = csn_close_from(&actions, 3)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for number in [SIGPIPE, SIGXFSZ] { sigaddset(&signals, number) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var arguments = words.map { strdup($0) } + [nil]
        var variables = ProcessInfo.processInfo.environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var child: pid_t = 0
        let failure = posix_spawn(&child, name, &actions, &attributes, &arguments, &variables)
        guard failure == 0 else {
            throw CountersignError(
                .environment,
                "cannot run \(name), which writes the client secret: \(String(cString: strerror(failure)))",
                hint: "--client-secret-from needs the absolute path of a program")
        }
        return child
    }

    /// Reads to the end. Returns false if that takes longer. Reads no more than it has to.
    private func read(_ descriptor: Int32, into bytes: inout [UInt8], until deadline: ContinuousClock.Instant) -> Bool {
        var chunk = [UInt8](repeating: 0, count: 4096)
        defer { chunk.wipe() }
        while bytes.count <= Self.maximumBytes {
            let rest = (deadline - .now) / .milliseconds(1)
            guard rest > 0 else { return false }
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, Int32(rest) + 1) > 0 else { continue }
            let count = Glibc.read(descriptor, &chunk, min(chunk.count, Self.maximumBytes + 1 - bytes.count))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return true }
            bytes += chunk[..<count]
        }
        return true
    }

    /// Ends the program at `deadline`. Returns its status, or 128 plus the signal that ended it; nil if it was too
    /// slow.
    private func wait(for child: pid_t, until deadline: ContinuousClock.Instant) -> Int32? {
        var status: Int32 = 0
        while true {
            let found = waitpid(child, &status, WNOHANG)
            if found == child {
                let signal = status & 0x7F
                return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
            }
            if found < 0, errno != EINTR { return 1 }
            guard ContinuousClock.now < deadline else { break }
            usleep(10_000)
        }
        kill(child, SIGKILL)
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        return nil
    }
}
