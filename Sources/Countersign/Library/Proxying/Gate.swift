// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers

/// A one-time event for which any number of tasks may wait.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var next: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = NIOLockedValueBox(State())

    var isOpen: Bool { state.withLockedValue { $0.isOpen } }

    func open() {
        let waiting = state.withLockedValue { state in
            state.isOpen = true
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns when the gate is open or the task is cancelled.
    func wait() async {
        let number = state.withLockedValue { state in
            state.next &+= 1
            return state.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let goesOn = state.withLockedValue { state in
                    guard !state.isOpen, !Task.isCancelled else { return true }
                    state.waiting[number] = continuation
                    return false
                }
                if goesOn { continuation.resume() }
            }
        } onCancel: {
            state.withLockedValue { $0.waiting.removeValue(forKey: number) }?.resume()
        }
    }
}
