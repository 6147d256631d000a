// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// Bridges from a synchronous command to asynchronous code.
enum Blocking {
    /// Runs `body` on other threads and waits for its result.
    static func run<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value {
        let outcome = Mutex<Result<Value, any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            let result: Result<Value, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            outcome.withLock { $0 = result }
            done.signal()
        }
        while true {
            done.wait()
            if let result = outcome.withLock({ $0 }) { return try result.get() }
        }
    }
}
