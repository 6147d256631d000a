// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// Bridges from synchronous to asynchronous code.
package enum Blocking {
    /// The interval between checks whether the caller has given up.
    private static let interval = DispatchTimeInterval.milliseconds(250)

    /// Runs `body` on other threads and waits for its result. Cancels it if `isAbandoned`, which is called a few times
    /// per second, returns true, and waits for its end nevertheless.
    package static func run<Value: Sendable>(
        isAbandoned: (() -> Bool)? = nil, _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        let outcome = Mutex<Result<Value, any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        let task = Task.detached {
            let result: Result<Value, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            outcome.withLock { $0 = result }
            done.signal()
        }
        while true {
            if let isAbandoned {
                if done.wait(timeout: .now() + interval) == .timedOut, isAbandoned() { task.cancel() }
            } else {
                done.wait()
            }
            if let result = outcome.withLock({ $0 }) { return try result.get() }
        }
    }
}
