// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Runs the tests of a suite on threads that may wait.
///
/// Most of these tests wait for another program: a server, a browser, the command itself. On Swift's own threads, of
/// which there is one per processor, two waiting tests keep all others from running, and a test whose answer comes from
/// a task waits forever.
public struct WaitingTrait: SuiteTrait, TestTrait, TestScoping {
    /// The trait holds for the suites in the suite, too.
    public var isRecursive: Bool { true }

    /// Runs a test on one of the threads.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing run: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(WaitingThreads.shared, operation: run)
    }
}

extension Trait where Self == WaitingTrait {
    /// The tests wait for other programs.
    public static var waiting: WaitingTrait { WaitingTrait() }
}

/// Threads that run one job after another. There are twice as many as tests that `Scripts/test` runs at the same time,
/// because a test may have tasks of its own.
private final class WaitingThreads: TaskExecutor {
    static let shared = WaitingThreads(count: 24)

    private let jobs = JobQueue()

    private init(count: Int) {
        for _ in 0..<count {
            let thread = Thread { [jobs] in
                while true { jobs.next().runSynchronously(on: self.asUnownedTaskExecutor()) }
            }
            thread.stackSize = 8 << 20
            thread.start()
        }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        jobs.append(UnownedJob(job))
    }
}

private final class JobQueue: @unchecked Sendable {
    private let condition = NSCondition()
    private var jobs: [UnownedJob] = []

    func append(_ job: UnownedJob) {
        condition.withLock {
            jobs.append(job)
            condition.signal()
        }
    }

    /// Waits for a job.
    func next() -> UnownedJob {
        condition.withLock {
            while jobs.isEmpty { condition.wait() }
            return jobs.removeFirst()
        }
    }
}
