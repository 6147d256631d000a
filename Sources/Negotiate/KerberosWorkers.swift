// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// Runs calls of GSS-API, which may wait for a KDC, on a few threads of its own.
///
/// - Steps for the same service take turns. The first obtains the service's ticket, which the others find in the
///   cache. If it fails, so do those that were waiting for it: one request to the KDC serves all.
/// - At most ``threadLimit`` steps run at once, and at most ``queueLimit`` wait.
/// - A step whose time is up fails. Its thread stays busy until the library returns.
package final class KerberosWorkers: Sendable {
    package static let shared = KerberosWorkers()

    /// A step, until its result has been reported.
    private final class Job: Sendable {
        let service: String?
        let deadline: DispatchTime
        let run: @Sendable () -> Void
        /// Only the first call has an effect.
        let fail: @Sendable (KerberosError) -> Void

        init(
            service: String?, deadline: DispatchTime, run: @escaping @Sendable () -> Void,
            fail: @escaping @Sendable (KerberosError) -> Void
        ) {
            self.service = service
            self.deadline = deadline
            self.run = run
            self.fail = fail
        }
    }

    private struct State {
        var running: [ObjectIdentifier: Job] = [:]
        /// In the order of arrival.
        var waiting: [Job] = []
        var isWatching = false

        /// The next job that may run, if there is one.
        mutating func next(atMost limit: Int) -> Job? {
            guard running.count < limit else { return nil }
            let busy = Set(running.values.compactMap(\.service))
            guard let index = waiting.firstIndex(where: { $0.service.map(busy.contains) != true }) else { return nil }
            let job = waiting.remove(at: index)
            running[ObjectIdentifier(job)] = job
            return job
        }
    }

    package let threadLimit: Int
    package let queueLimit: Int
    private let timeLimit: DispatchTimeInterval
    private let queue = DispatchQueue(label: "countersign.kerberos", attributes: .concurrent)
    private let state = Mutex(State())

    package init(threadLimit: Int = 8, queueLimit: Int = 512, timeLimit: DispatchTimeInterval = .seconds(20)) {
        self.threadLimit = threadLimit
        self.queueLimit = queueLimit
        self.timeLimit = timeLimit
    }

    /// Runs `body` on another thread, and calls `done` once with its result, on any thread. `service` is the name for
    /// which `body` may obtain a ticket; nil if it asks no KDC.
    package func run<Value: Sendable>(
        for service: String?, _ body: @escaping @Sendable () throws(KerberosError) -> Value,
        done: @escaping @Sendable (Result<Value, KerberosError>) -> Void
    ) {
        let isReported = Once()
        let report: @Sendable (Result<Value, KerberosError>) -> Void = { result in
            if isReported.isFirst() { done(result) }
        }
        let job = Job(
            service: service, deadline: .now() + timeLimit,
            run: { [self] in
                let result = Result { () throws(KerberosError) in try body() }
                report(result)
                if case .failure(let error) = result, let service { failWaiting(for: service, error) }
            },
            fail: { report(.failure($0)) })
        let isAccepted = state.withLock { state in
            guard state.waiting.count < queueLimit else { return false }
            state.waiting.append(job)
            return true
        }
        guard isAccepted else {
            return report(
                .failure(KerberosError(.overloaded, "too many requests are waiting for Kerberos", hint: "try again")))
        }
        startJobs()
        watch()
    }

    private func startJobs() {
        while let job = state.withLock({ $0.next(atMost: threadLimit) }) {
            queue.async { [self] in
                job.run()
                state.withLock { $0.running[ObjectIdentifier(job)] = nil }
                startJobs()
            }
        }
    }

    private func failWaiting(for service: String, _ error: KerberosError) {
        let failed = state.withLock { state in
            let failed = state.waiting.filter { $0.service == service }
            state.waiting.removeAll { $0.service == service }
            return failed
        }
        for job in failed { job.fail(error) }
    }

    // MARK: Time

    /// Checks for late steps, as long as there are any steps.
    private func watch() {
        let mustBegin = state.withLock { state in
            guard !state.isWatching, !state.running.isEmpty || !state.waiting.isEmpty else { return false }
            state.isWatching = true
            return true
        }
        guard mustBegin else { return }
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(500)) { [self] in
            let now = DispatchTime.now()
            let late = state.withLock { state in
                state.isWatching = false
                let late =
                    state.waiting.filter { $0.deadline <= now } + state.running.values.filter { $0.deadline <= now }
                state.waiting.removeAll { $0.deadline <= now }
                return late
            }
            for job in late { job.fail(KerberosError(.timedOut, "Kerberos took too long", hint: "check the network")) }
            watch()
        }
    }
}

/// Whether something happens for the first time, asked on several threads.
private final class Once: Sendable {
    private let hasHappened = Atomic(false)

    func isFirst() -> Bool { !hasHappened.exchange(true, ordering: .acquiringAndReleasing) }
}
