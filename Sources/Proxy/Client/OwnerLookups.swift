// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// Searches of the kernel's tables for the process of a client, on threads, because they read many files. The event
/// loops must run until all have ended: a result that is delivered to a loop that has stopped is an error.
final class OwnerLookups: Sendable {
    private struct State {
        var running = 0
        /// The callers of ``OwnerLookups/finish()``.
        var finishers: [CheckedContinuation<Void, Never>] = []
    }

    private let state = NIOLockedValueBox(State())
    private let threads: NIOThreadPool

    init(threads: NIOThreadPool = .singleton) {
        self.threads = threads
    }

    /// Runs `search` on a thread and delivers its result on `loop`.
    func run<Value: Sendable>(
        on loop: any EventLoop, _ search: @escaping @Sendable () throws -> Value
    ) -> EventLoopFuture<Value> {
        state.withLockedValue { $0.running += 1 }
        let found = threads.runIfActive(eventLoop: loop, search)
        found.whenComplete { _ in self.ended() }
        return found
    }

    /// Returns when no search is running and every result has been delivered.
    func finish() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLockedValue { state in
                if state.running > 0 { state.finishers.append(continuation) }
                return state.running == 0
            }
            if isIdle { continuation.resume() }
        }
    }

    private func ended() {
        let finishers = state.withLockedValue { state -> [CheckedContinuation<Void, Never>] in
            state.running -= 1
            guard state.running == 0 else { return [] }
            defer { state.finishers = [] }
            return state.finishers
        }
        for finisher in finishers { finisher.resume() }
    }
}
