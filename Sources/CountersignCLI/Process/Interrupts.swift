// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignHome
import Glibc
import Synchronization

/// Ctrl-C and other signals in a command that has something to clean up: they cancel its task, and end the process at
/// once if it has no task. A second Ctrl-C ends it at once.
final class Interrupts: Sendable {
    private let state = Mutex<(cancel: (@Sendable () -> Void)?, signal: Int32?)>((nil, nil))

    init() {
        Task.detached { [self] in
            for await arrival in SignalWatch.arrivals() {
                let cancel = state.withLock { state in
                    let isSecond = state.signal == SIGINT && arrival.number == SIGINT
                    state.signal = arrival.number
                    return isSecond ? nil : state.cancel
                }
                guard let cancel else { _exit(128 + arrival.number) }
                cancel()
            }
        }
    }

    /// From now on, the first signal does not end the process: the command has to check ``haveArrived``.
    func hold() { state.withLock { $0.cancel = {} } }

    /// Whether a signal has arrived.
    var haveArrived: Bool { state.withLock { $0.signal != nil } }

    /// The exit status of a shell after the signal that has arrived.
    var exitCode: ExitCode? { state.withLock { $0.signal.map { ExitCode(128 + $0) } } }

    /// Runs `body`. After a signal, reports that it was cancelled, and throws the exit status of a shell. A signal that
    /// arrives later does not end the process: the command has to check ``haveArrived``.
    func cancelling<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let task = Task { try await body() }
        state.withLock { $0.cancel = { task.cancel() } }
        defer { state.withLock { $0.cancel = {} } }
        do {
            return try await task.value
        } catch {
            guard let signal = state.withLock({ $0.signal }) else { throw error }
            Console.error(Diagnostic("the sign-in was cancelled; nothing was changed"))
            throw ExitCode(128 + signal)
        }
    }
}
