// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
import CountersignCLinux
import FoundationEssentials
import Glibc

/// A program that is run for what it writes, which is treated as a secret. No shell is involved.
package struct ProgramRun: Sendable {
    /// An absolute path, and arguments.
    package let words: [String]
    /// What a failure means, such as `and nothing is stored`.
    private let consequence: String
    /// Whether its standard error is part of the error if it fails; otherwise it is that of this process.
    private let reportsErrors: Bool
    private let environment: [String: String]

    /// How long a program may take.
    package static let limit = Duration.seconds(10)
    package static let maximumBytes = 16 << 10

    /// Without an `environment`, the program has that of this process.
    package init(
        _ words: [String], consequence: String, reportsErrors: Bool = false, environment: [String: String]? = nil
    ) {
        self.words = words
        self.environment = environment ?? ProcessInfo.processInfo.environment
        self.consequence = consequence
        self.reportsErrors = reportsErrors
    }

    private var name: String { words.first ?? "" }

    /// Runs the program with `input`, or no input, as its standard input, and returns what it has written. Throws
    /// `environment` for a program that cannot be started, that fails, or that takes too long. The error names it.
    package func output(input: Secret? = nil, until limit: Duration = limit) throws(CountersignError) -> Secret {
        var pipes = Pipes()
        defer { pipes.closeAll() }
        guard pipes.open(input: input, errors: reportsErrors) else { throw .system(errno, "cannot run \(name)") }
        let child = try start(&pipes)
        pipes.closeChildEnds()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.maximumBytes + 1)
        defer { bytes.wipe() }
        var reason: [UInt8] = []
        let deadline = ContinuousClock.now + limit
        let isInTime = read(pipes, into: &bytes, &reason, until: deadline)
        // A program that writes more does not wait for somebody to read it.
        pipes.closeOutput()
        let status = wait(for: child, until: isInTime ? deadline : .now)
        // Not until its end: a program that this one has left behind may still have it.
        while pipes.errors.reading >= 0, receive(pipes.errors.reading, into: &reason) == .some(true) {}
        guard bytes.count <= Self.maximumBytes else { throw failure("wrote more than \(Self.maximumBytes) bytes") }
        guard isInTime, let status else {
            throw failure("did not end within \(limit.components.seconds) seconds")
        }
        guard status == 0 else { throw failure("ended with status \(status)" + Self.sentence(reason)) }
        return Secret(bytes)
    }

    /// An error about what the program has done.
    func failure(_ what: String) -> CountersignError {
        CountersignError(
            .environment, "\(name) \(what), \(consequence)",
            hint: "run it yourself to see why: \(words.map(ShellWord.quoted).joined(separator: " "))")
    }

    /// The last line that the program has written on standard error.
    private static func sentence(_ reason: [UInt8]) -> String {
        let lines = String(decoding: reason, as: UTF8.self).split(whereSeparator: \.isNewline)
        guard let last = lines.last else { return "" }
        return " (\(PrintableText.longer(String(last))))"
    }

    private func start(_ pipes: inout Pipes) throws(CountersignError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if pipes.input.reading >= 0 {
            posix_spawn_file_actions_adddup2(&actions, pipes.input.reading, STDIN_FILENO)
        } else {
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, pipes.output.writing, STDOUT_FILENO)
        if pipes.errors.writing >= 0 {
            posix_spawn_file_actions_adddup2(&actions, pipes.errors.writing, STDERR_FILENO)
        }
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
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var child: pid_t = 0
        let failure = posix_spawn(&child, name, &actions, &attributes, &arguments, &variables)
        guard failure == 0 else {
            throw CountersignError(
                .environment, "cannot run \(name): \(String(cString: strerror(failure))), \(consequence)",
                hint: "a program is named by its absolute path")
        }
        return child
    }

    /// Reads to the end of the output. Returns false if that takes longer. Reads no more than it has to.
    private func read(
        _ pipes: Pipes, into bytes: inout [UInt8], _ reason: inout [UInt8], until deadline: ContinuousClock.Instant
    ) -> Bool {
        while bytes.count <= Self.maximumBytes {
            let rest = (deadline - .now) / .milliseconds(1)
            guard rest > 0 else { return false }
            var waiting = [
                pollfd(fd: pipes.output.reading, events: Int16(POLLIN), revents: 0),
                pollfd(fd: pipes.errors.reading, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&waiting, 2, Int32(rest) + 1) > 0 else { continue }
            if waiting[1].revents != 0, receive(pipes.errors.reading, into: &reason) == false {
                // The program has closed it before its output.
                return readRest(pipes, into: &bytes, until: deadline)
            }
            if waiting[0].revents != 0, receive(pipes.output.reading, into: &bytes) == false { return true }
        }
        return true
    }

    private func readRest(
        _ pipes: Pipes, into bytes: inout [UInt8], until deadline: ContinuousClock.Instant
    ) -> Bool {
        var output = pipes
        output.errors = (-1, -1)
        var nothing: [UInt8] = []
        return read(output, into: &bytes, &nothing, until: deadline)
    }

    /// Appends what can be read at once. Returns whether there was something; false at the end, nil if it would wait.
    private func receive(_ descriptor: Int32, into bytes: inout [UInt8]) -> Bool? {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&ready, 1, 0) > 0 else { return nil }
        var chunk = [UInt8](repeating: 0, count: 4096)
        defer { chunk.wipe() }
        let count = Glibc.read(descriptor, &chunk, min(chunk.count, Self.maximumBytes + 1 - bytes.count))
        if count < 0, errno == EINTR { return nil }
        guard count > 0 else { return false }
        bytes += chunk[..<count]
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

/// The pipes to and from a program. A descriptor that is not open is -1.
private struct Pipes {
    var input: (reading: Int32, writing: Int32) = (-1, -1)
    var output: (reading: Int32, writing: Int32) = (-1, -1)
    var errors: (reading: Int32, writing: Int32) = (-1, -1)

    /// Returns false with `errno` if one cannot be opened. The input, at most 16 KiB, fits into its pipe.
    mutating func open(input secret: Secret?, errors wantsErrors: Bool) -> Bool {
        guard Self.open(&output), !wantsErrors || Self.open(&errors) else { return false }
        guard let secret else { return true }
        guard secret.count <= ProgramRun.maximumBytes, Self.open(&input) else { return false }
        let written = secret.withBytes { write(input.writing, $0.baseAddress, $0.count) }
        Self.close(&input.writing)
        return written == secret.count
    }

    mutating func closeChildEnds() {
        Self.close(&input.reading)
        Self.close(&output.writing)
        Self.close(&errors.writing)
    }

    mutating func closeOutput() { Self.close(&output.reading) }

    mutating func closeAll() {
        closeChildEnds()
        closeOutput()
        Self.close(&input.writing)
        Self.close(&errors.reading)
    }

    private static func open(_ pair: inout (reading: Int32, writing: Int32)) -> Bool {
        var ends: [Int32] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { return false }
        pair = (ends[0], ends[1])
        return true
    }

    private static func close(_ descriptor: inout Int32) {
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
    }
}
