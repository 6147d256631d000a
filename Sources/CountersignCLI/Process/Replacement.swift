// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignHome
import CountersignNIO
import CountersignCLinux
import Dispatch
import FoundationEssentials
import Glibc
import Synchronization

/// Replaces a running `serve` by a new process of the same executable with the same arguments and environment, which
/// inherits its listening sockets. Until the new process is ready, this one does all the work. Then it ceases to accept
/// clients before the new one begins to; in between they wait in the sockets' queues, so no connection is refused.
///
/// The key of a vault that a passphrase has opened is not handed over. Otherwise, anyone who can send a signal could
/// make this process give the key to a program that they have put in the executable's place, or to which they attach
/// before it protects its memory.
final class Replacement: Sendable {
    /// The outcome of starting the new process.
    enum Outcome: Sendable {
        case ready(pid_t)
        case failed(String)
    }

    /// A new process, and the connection to it.
    private struct Successor {
        let process: pid_t
        let socket: Int32
    }

    /// The reason for a failure, in words.
    private struct Refusal: Error { let reason: String }

    /// The number of an error of the system.
    private struct Failure: Error { let number: Int32 }

    private let keeper: PolicyKeeper
    private let executable: String
    private let state = Mutex(State())

    private struct State {
        var isInProgress = false
        /// Before it is ready.
        var child: pid_t?
    }

    /// How long the new process may take.
    private static let limitMilliseconds: Int32 = 30_000

    /// Call it early: the executable may be replaced or removed later.
    init(_ keeper: PolicyKeeper) {
        self.keeper = keeper
        let link = "/proc/self/exe"
        executable = (try? FileManager.default.destinationOfSymbolicLink(atPath: link)) ?? link
    }

    /// Throws the reason if this process cannot be replaced now. Otherwise ``run(_:)`` must follow.
    func begin() throws(CountersignError) {
        guard getpid() != 1 else {
            throw CountersignError(
                .refused, "it is process 1, with which its container ends", hint: "restart the container")
        }
        guard keeper.vault?.key != .passphrase else {
            throw CountersignError(
                .refused, "the new process could not open the vault without its passphrase",
                hint: "stop `countersign serve` and start it, or lock the vault first with `countersign vault lock`")
        }
        let isFirst = state.withLock { state in
            defer { state.isInProgress = true }
            return !state.isInProgress
        }
        guard isFirst else { throw CountersignError(.refused, "it is being replaced already") }
    }

    /// Starts the new process, waits until it is ready, and leaves the clients to it. If that fails, this process
    /// continues.
    func run(_ runtime: ProxyRuntime) async -> Outcome {
        let started = await withCheckedContinuation { continuation in
            DispatchQueue(label: "countersign.replacement").async { [self] in
                continuation.resume(returning: start(runtime))
            }
        }
        state.withLock { state in
            state.child = nil
            if case .failure = started { state.isInProgress = false }
        }
        switch started {
        case .success(let successor):
            await runtime.setAccepting(false)
            close(successor.socket)
            return .ready(successor.process)
        case .failure(let refusal): return .failed(refusal.reason)
        }
    }

    /// Ends a new process that is not ready yet.
    func cancel() {
        if let child = state.withLock({ $0.child }) { kill(child, SIGKILL) }
    }

    private func start(_ runtime: ProxyRuntime) -> Result<Successor, Refusal> {
        func refused(_ reason: String) -> Result<Successor, Refusal> { .failure(Refusal(reason: reason)) }
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            return refused(String(cString: strerror(errno)))
        }
        var isReady = false
        defer { if !isReady { close(ends[0]) } }
        var passed = runtime.listeningSockets.map {
            (descriptor: $0.descriptor, name: $0.isOwn ? InheritedSockets.own : InheritedSockets.activated)
        }
        if let control = runtime.controlSocket { passed.append((control, InheritedSockets.control)) }
        passed.append((ends[1], InheritedSockets.ready))
        let child: pid_t
        switch spawn(passing: passed) {
        case .success(let started): child = started
        case .failure(let failure):
            close(ends[1])
            return refused("cannot run \(executable): \(String(cString: strerror(failure.number)))")
        }
        close(ends[1])
        state.withLock { $0.child = child }
        isReady = awaitReady(ends[0])
        if isReady { return .success(Successor(process: child, socket: ends[0])) }
        kill(child, SIGKILL)
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        return refused(
            signal == 0
                ? "the new process has ended with status \((status >> 8) & 0xFF)"
                : "the new process was not ready within \(Self.limitMilliseconds / 1000) seconds, or was killed")
    }

    private func awaitReady(_ socket: Int32) -> Bool {
        var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        let deadline = ContinuousClock.now + .milliseconds(Int64(Self.limitMilliseconds))
        while true {
            let rest = (deadline - .now).components
            let milliseconds = Int32(max(0, rest.seconds * 1000 + rest.attoseconds / 1_000_000_000_000_000))
            let found = poll(&waiting, 1, milliseconds)
            if found < 0, errno == EINTR { continue }
            var byte: UInt8 = 0
            return found > 0 && read(socket, &byte, 1) == 1
        }
    }

    private func spawn(
        passing descriptors: [(descriptor: Int32, name: String)]
    ) -> Result<pid_t, Failure> {
        let count = Int32(descriptors.count)
        // Above all their places in the child, so that none is overwritten before it has been moved.
        let copies = descriptors.map { fcntl($0.descriptor, F_DUPFD_CLOEXEC, 3 + count) }
        defer { for copy in copies where copy >= 0 { close(copy) } }
        guard copies.allSatisfy({ $0 >= 0 }) else { return .failure(Failure(number: errno)) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (index, copy) in copies.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, copy, 3 + Int32(index))
        }
        _ = csn_close_from(&actions, 3 + count)

        var variables = ProcessInfo.processInfo.environment
        for name in InheritedSockets.variables { variables[name] = nil }
        variables["LISTEN_PID"] = "\(getpid())"
        variables["LISTEN_FDS"] = "\(count)"
        variables["LISTEN_FDNAMES"] = descriptors.map(\.name).joined(separator: ":")
        variables["COUNTERSIGN_RESTART"] = "\(getpid())"
        var environment = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        defer { (environment + arguments).forEach { free($0) } }
        var child: pid_t = 0
        // The signals stay blocked: the new process receives those that arrive before it waits for them.
        let failure = posix_spawn(&child, executable, &actions, nil, &arguments, &environment)
        return failure == 0 ? .success(child) : .failure(Failure(number: failure))
    }
}
