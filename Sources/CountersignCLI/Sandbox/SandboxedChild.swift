// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignCLinux
import CountersignHome
import Dispatch
import Glibc

/// A command that bwrap(1) runs in a sandbox, in the foreground. It waits in ``SandboxDoor`` until ``run()``.
///
/// The terminal sends its signals to the whole process group, also to bwrap, which would end at them and take the
/// command along. They are therefore blocked in bwrap, and those of other processes are sent to the command itself.
final class SandboxedChild: Sendable {
    /// The listening socket of the sandbox. The proxy owns it.
    let listener: Int32
    private let door: Int32
    /// A process descriptor of the command.
    private let process: Int32
    private let statuses: AsyncStream<Int32>

    private init(listener: Int32, door: Int32, process: Int32, statuses: AsyncStream<Int32>) {
        (self.listener, self.door, self.process, self.statuses) = (listener, door, process, statuses)
    }

    deinit {
        close(door)
        close(process)
    }

    /// Starts the program `bwrap` with the arguments that `arguments` makes from the descriptors of the filter of
    /// system calls and of the door. If it makes no sandbox, reports why and throws 126.
    static func start(
        _ bwrap: String, environment: [String: String], descriptors: InheritedDescriptors,
        arguments: (_ filter: Int32, _ door: Int32) throws -> [String]
    ) async throws -> SandboxedChild {
        let ends = try Ends()
        let words: [String]
        do {
            words = try [bwrap] + arguments(ends.filter, ends.inner)
        } catch {
            ends.closeInner()
            close(ends.door)
            throw error
        }
        let (statuses, status) = AsyncStream.makeStream(of: Int32.self)
        return try await withCheckedThrowingContinuation { continuation in
            // The system ends bwrap when the thread that started it ends (PR_SET_PDEATHSIG). So one thread starts it
            // and waits for it.
            DispatchQueue(label: "countersign.sandbox").async {
                var child: pid_t = 0
                do {
                    defer { ends.closeInner() }
                    child = try ChildProcess.start(
                        words, environment, descriptors, passing: [ends.filter, ends.inner],
                        blocking: SignalWatch.set)
                } catch {
                    close(ends.door)
                    return continuation.resume(throwing: error)
                }
                guard let (listener, process) = receive(ends.door) else {
                    close(ends.door)
                    _ = ChildProcess.wait(for: child)
                    Console.error(SandboxFailure.diagnostic)
                    return continuation.resume(throwing: ExitCode(126))
                }
                continuation.resume(
                    returning: SandboxedChild(
                        listener: listener, door: ends.door, process: process, statuses: statuses))
                status.yield(ChildProcess.wait(for: child))
                status.finish()
            }
        }
    }

    /// Lets the command begin and returns its status: its own, or 128 plus the signal that killed it. Forwards signals
    /// that another process sent. Call it once.
    func run() async -> Int32 {
        let signals = Task {
            for await arrival in SignalWatch.arrivals() where arrival.isFromProcess {
                _ = csn_signal_process(process, arrival.number)
            }
        }
        var byte: UInt8 = 1
        _ = send(door, &byte, 1, Int32(MSG_NOSIGNAL))
        let status = await wait()
        signals.cancel()
        return status
    }

    /// Ends the sandbox without running the command.
    func abandon() async {
        shutdown(door, Int32(SHUT_RDWR))
        _ = await wait()
    }

    private func wait() async -> Int32 {
        for await status in statuses { return status }
        return 1
    }

    /// The listening socket that comes through the door, and a descriptor of the process that has sent it; nil if it
    /// has ended.
    private static func receive(_ door: Int32) -> (listener: Int32, process: Int32)? {
        var number: Int32 = 0
        let listener = csn_receive_descriptor(door, &number)
        guard listener >= 0 else { return nil }
        // It waits for us, so that its number is its own.
        let process = number > 0 ? csn_open_process(number) : -1
        guard process >= 0 else {
            close(listener)
            return nil
        }
        return (listener, process)
    }

    /// The descriptors of a sandbox. They are closed by exec, in every child but bwrap.
    private struct Ends {
        /// Ours.
        let door: Int32
        /// The other end, for ``SandboxDoor``.
        let inner: Int32
        /// A pipe with the filter of system calls, and its end.
        let filter: Int32

        init() throws(CountersignError) {
            var pair: [Int32] = [-1, -1]
            guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &pair) == 0 else {
                throw .system(errno, "cannot make a sandbox")
            }
            (door, inner) = (pair[0], pair[1])
            var pipe: [Int32] = [-1, -1]
            let isReady =
                csn_pipe2(&pipe) == 0 && csn_write_sandbox_filter(pipe[1]) == 0 && csn_receive_credentials(door) == 0
            let failure = errno
            if pipe[1] >= 0 { close(pipe[1]) }
            filter = pipe[0]
            guard isReady else {
                for descriptor in pair + [filter] where descriptor >= 0 { close(descriptor) }
                throw .system(failure, "cannot make a sandbox")
            }
        }

        func closeInner() {
            close(inner)
            close(filter)
        }
    }
}
