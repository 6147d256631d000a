// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignCLinux
import CountersignCryptography
import CountersignHome
import Dispatch
import FoundationEssentials
import Glibc

/// A child in the foreground: it shares this process's terminal, streams and process group.
enum ChildProcess {
    /// Runs `words` and returns the status that a shell would: the child's own, or 128 plus the signal that killed it.
    /// Forwards signals that another process sent. It does not forward the terminal's, which the kernel delivers to the
    /// whole foreground process group. If the child cannot be started, reports why and throws 127 or 126.
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

    /// Starts `words`, with the descriptors `passed` under the same numbers, and with the signals `blocked`. If that
    /// fails, reports why and throws 127 or 126.
    static func start(
        _ words: [String], _ environment: [String: String], _ descriptors: InheritedDescriptors,
        passing passed: [Int32] = [], blocking blocked: sigset_t? = nil
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        descriptors.restrict(&actions, passing: passed)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The child starts as it would from a shell: no signal blocked or ignored.
        var mask = sigset_t()
        sigemptyset(&mask)
        if let blocked { mask = blocked }
        posix_spawnattr_setsigmask(&attributes, &mask)
        var defaults = sigset_t()
        sigemptyset(&defaults)
        for number in [SIGPIPE, SIGXFSZ] { sigaddset(&defaults, number) }
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var arguments = words.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { (arguments + variables).forEach { free($0) } }
        var child: pid_t = 0
        let failure = posix_spawnp(&child, words[0], &actions, &attributes, &arguments, &variables)
        guard failure == 0 else {
            Console.error(.cannotRun(words[0], failure))
            throw ExitCode(failure == ENOENT || failure == ENOTDIR ? 127 : 126)
        }
        return child
    }

    /// Waits for the end of the child, and returns its status as ``run(_:environment:descriptors:)`` does. Blocks.
    static func wait(for child: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 {
            guard errno == EINTR else { return 1 }
        }
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }
}

extension Diagnostic {
    /// `number`: of the failed posix_spawnp(3).
    static func cannotRun(_ program: String, _ number: Int32) -> Diagnostic {
        let quoted = ShellWord.quoted(program)
        let hint =
            switch number {
            case ENOENT where program.contains("/"): "`ls -l \(quoted)` shows whether it is there"
            case ENOENT: "it is in no folder of PATH: check the spelling, or pass its path"
            case EACCES: "`ls -ld \(quoted)` shows whether it is a file that your user may run"
            default: "`file \(quoted)` shows whether this machine can run it"
            }
        return Diagnostic("cannot run \(program): \(String(cString: strerror(number)))", hint: hint)
    }
}

/// The file descriptors that this process inherited, which are the only ones that a child may inherit.
///
/// SwiftNIO opens sockets and its epoll descriptors without close-on-exec; a child would otherwise keep the proxy's
/// listening sockets and authenticated connections open.
struct InheritedDescriptors: Sendable {
    private struct Descriptor: Sendable {
        let number: Int32
        /// The file that it was open on. The number may be another one's later.
        let device: dev_t
        let inode: ino_t

        /// Nil if it is not open, or was opened by this process: exec leaves none open that has close-on-exec.
        init?(inherited number: Int32) {
            let flags = fcntl(number, F_GETFD)
            var found = stat()
            guard flags >= 0, flags & FD_CLOEXEC == 0, fstat(number, &found) == 0 else { return nil }
            self.number = number
            (device, inode) = (found.st_dev, found.st_ino)
        }

        var isUnchanged: Bool {
            guard let now = Descriptor(inherited: number) else { return false }
            return now.device == device && now.inode == inode
        }
    }

    /// From 3 on, in order.
    private let descriptors: [Descriptor]

    /// Those at the start of the process. ``Startup`` reads them while there is no other thread, which could open one.
    static let atStart = InheritedDescriptors()

    /// Records the descriptors that are open now and have no close-on-exec.
    init() {
        let listed = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        descriptors = listed.compactMap { Int32($0) }.filter { $0 > 2 }.sorted().compactMap(Descriptor.init(inherited:))
    }

    /// Closes all other descriptors in the child but `passed`, also those that other threads open before it starts.
    func restrict(_ actions: inout posix_spawn_file_actions_t, passing passed: [Int32] = []) {
        // A copy onto itself clears close-on-exec.
        for number in passed { posix_spawn_file_actions_adddup2(&actions, number, number) }
        let kept = descriptors.filter(\.isUnchanged).map(\.number) + passed
        var next: Int32 = 3
        for number in kept.sorted() {
            for closed in next..<number { posix_spawn_file_actions_addclose(&actions, closed) }
            next = number + 1
        }
        _ = csn_close_from(&actions, next)
    }
}
