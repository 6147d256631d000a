// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignNegotiate
import Dispatch
import Synchronization
import Testing

/// Threads, turns and time limits, without Kerberos.
@Suite struct KerberosWorkersTests {
    private static let failure = KerberosError(.unreachableKDC, "no KDC responds")

    /// The results of steps that were started in order.
    private final class Results: Sendable {
        private let box = Mutex<[Result<Int, KerberosError>]>([])
        private let counted = DispatchSemaphore(value: 0)

        func add(_ result: Result<Int, KerberosError>) {
            box.withLock { $0.append(result) }
            counted.signal()
        }

        /// Waits for so many results.
        func wait(_ count: Int) -> [Result<Int, KerberosError>] {
            for _ in 0..<count { guard counted.wait(timeout: .now() + 60) == .success else { break } }
            return box.withLock { $0 }
        }
    }

    @Test func stepsForOneServiceTakeTurns() {
        let workers = KerberosWorkers()
        let results = Results()
        let running = Atomic(0)
        for number in 0..<50 {
            workers.run(for: "HTTP/www") { () throws(KerberosError) -> Int in
                let others = running.add(1, ordering: .relaxed).oldValue
                running.subtract(1, ordering: .relaxed)
                return others == 0 ? number : -1
            } done: {
                results.add($0)
            }
        }
        #expect(results.wait(50) == (0..<50).map { .success($0) })
    }

    /// Steps for other services, and those that ask no KDC, do not wait for one that hangs.
    @Test func otherServicesDoNotWait() {
        let workers = KerberosWorkers(threadLimit: 2)
        let (hanging, others) = (Results(), Results())
        let gate = DispatchSemaphore(value: 0)
        workers.run(for: "HTTP/hangs") { () throws(KerberosError) -> Int in
            gate.wait()
            return 0
        } done: {
            hanging.add($0)
        }
        for number in 0..<4 {
            workers.run(for: number == 0 ? nil : "HTTP/\(number)") { () throws(KerberosError) -> Int in
                number
            } done: {
                others.add($0)
            }
        }
        #expect(others.wait(4).count == 4)
        gate.signal()
        #expect(hanging.wait(1) == [.success(0)])
    }

    @Test func thoseThatWaitForAFailingStepFailWithIt() {
        let workers = KerberosWorkers()
        let results = Results()
        let asked = Atomic(0)
        let gate = DispatchSemaphore(value: 0)
        for _ in 0..<10 {
            workers.run(for: "HTTP/www") { () throws(KerberosError) -> Int in
                asked.add(1, ordering: .relaxed)
                gate.wait()
                throw Self.failure
            } done: {
                results.add($0)
            }
        }
        gate.signal()
        #expect(results.wait(10) == Array(repeating: .failure(Self.failure), count: 10))
        #expect(asked.load(ordering: .relaxed) == 1)
    }

    @Test func theQueueIsBounded() {
        let workers = KerberosWorkers(threadLimit: 1, queueLimit: 2)
        let (accepted, refused) = (Results(), Results())
        let gate = DispatchSemaphore(value: 0)
        let hasBegun = DispatchSemaphore(value: 0)
        for number in 0..<3 {
            workers.run(for: nil) { () throws(KerberosError) -> Int in
                hasBegun.signal()
                gate.wait()
                return number
            } done: {
                accepted.add($0)
            }
            if number == 0 { hasBegun.wait() }
        }
        workers.run(for: nil) { () throws(KerberosError) -> Int in
            3
        } done: {
            refused.add($0)
        }
        #expect(refused.wait(1) == [.failure(KerberosError(.overloaded, ""))])
        for _ in 0..<3 { gate.signal() }
        #expect(accepted.wait(3) == [.success(0), .success(1), .success(2)])
    }

    /// A step that hangs fails when its time is up, and so does one that waits for it.
    @Test func aStepThatTakesTooLongFails() {
        let workers = KerberosWorkers(threadLimit: 1, timeLimit: .milliseconds(50))
        let results = Results()
        let gate = DispatchSemaphore(value: 0)
        for _ in 0..<2 {
            workers.run(for: nil) { () throws(KerberosError) -> Int in
                gate.wait()
                return 0
            } done: {
                results.add($0)
            }
        }
        #expect(results.wait(2) == Array(repeating: .failure(KerberosError(.timedOut, "")), count: 2))
        gate.signal()
    }
}
