// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// Asynchronous work of a command that does not stay: its signals end the process, as those of any command do.
enum Blocking {
    /// Waits for `body`, which runs on other threads.
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
