// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension Task where Failure == Never {
    /// The task's value, or nil if it has none within `patience`. The task goes on in that case.
    func value(within patience: Duration) async -> Success? {
        await withCheckedContinuation { continuation in
            let first = SingleResumption(continuation)
            let alarm = Task<Void, Never>.detached {
                do { try await Task<Never, Never>.sleep(for: patience) } catch { return }
                first.resume(returning: nil)
            }
            Task<Void, Never>.detached {
                first.resume(returning: await self.value)
                alarm.cancel()
            }
        }
    }
}

/// Resumes a continuation with the first of several results.
private final class SingleResumption<Value: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Value?, Never>?>

    init(_ continuation: CheckedContinuation<Value?, Never>) { self.continuation = Mutex(continuation) }

    func resume(returning result: Value?) {
        let waiting = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: result)
    }
}
