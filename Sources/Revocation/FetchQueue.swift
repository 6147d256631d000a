// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// Runs fetches, which block, on a bounded number of threads. One origin gets only some of them, so that a slow one
/// does not delay others.
final class FetchQueue: Sendable {
    static let threadLimit = 8
    static let threadLimitPerHost = 2
    static let waitingLimit = 256

    private struct State {
        var running: [String: Int] = [:]
        var waiting: [(host: String, job: @Sendable () -> Void)] = []
        /// The indices of the threads that have nothing to do.
        var idle = Array(0..<threadLimit)
    }

    private let state = Mutex(State())
    /// Serial queues, because each gets a thread of its own: a concurrent one would block those of the process's
    /// global queue.
    private let threads = (0..<threadLimit).map { DispatchQueue(label: "countersign.revocation.\($0)") }

    /// Runs `job`, now or later. False if too many are waiting.
    func submit(host: String, _ job: @escaping @Sendable () -> Void) -> Bool {
        let isAccepted = state.withLock { state in
            guard state.waiting.count < Self.waitingLimit else { return false }
            state.waiting.append((host, job))
            return true
        }
        runNext()
        return isAccepted
    }

    /// Starts the first job that may run.
    private func runNext() {
        let next = state.withLock { state -> (host: String, job: @Sendable () -> Void, thread: Int)? in
            let running = state.running
            guard
                let index = state.waiting.firstIndex(where: {
                    running[$0.host, default: 0] < Self.threadLimitPerHost
                }), let thread = state.idle.popLast()
            else { return nil }
            let (host, job) = state.waiting.remove(at: index)
            state.running[host, default: 0] += 1
            return (host, job, thread)
        }
        guard let next else { return }
        threads[next.thread].async { [self] in
            next.job()
            state.withLock { state in
                state.idle.append(next.thread)
                let left = state.running[next.host, default: 1] - 1
                state.running[next.host] = left > 0 ? left : nil
            }
            runNext()
        }
    }
}
