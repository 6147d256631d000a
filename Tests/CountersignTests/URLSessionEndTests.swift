// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import FoundationNetworking
import Synchronization
import Testing

@testable import Countersign
@testable import CountersignNIO
@testable import CountersignURLSession

/// Tasks that are cancelled, and sessions that are invalidated, while they end. Each test is a process of its own,
/// because Foundation ends the process at a mistake.
@Suite(.waiting, .serialized) struct URLSessionEndTests {
    /// Who learns of a task's end. An `awaited` task is one of `AnsweringSession`, because Foundation up to Swift 6.3
    /// may wait forever when the Swift task is cancelled that awaits URLSession's own methods
    /// (swift-corelibs-foundation, issue 5412).
    private enum Style: CaseIterable {
        case awaited, completion, delegate
    }

    /// Ten times as many if `COUNTERSIGN_LONG_TESTS` is set.
    private static var rounds: Int {
        ProcessInfo.processInfo.environment["COUNTERSIGN_LONG_TESTS"] == nil ? 600 : 6000
    }

    /// Counts the ends of each task, by the round that has made it.
    private final class Ends: NSObject, URLSessionDataDelegate, Sendable {
        private let counts = Mutex<[Int: Int]>([:])

        func add(_ round: Int) { counts.withLock { $0[round, default: 0] += 1 } }

        /// Whether each of `rounds` tasks has ended, and whether once only.
        func reached(_ rounds: Int) -> (all: Bool, once: Bool) {
            counts.withLock { ($0.count == rounds, $0.values.allSatisfy { $0 == 1 }) }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            add(task.taskDescription.flatMap(Int.init) ?? -1)
        }
    }

    /// The duration of an undisturbed request, in nanoseconds.
    private static let usual = Mutex<UInt64>(1_000_000)

    /// Another moment of a request's life in each round, most of them near its end. The thread does not sleep, because
    /// it would wake up late.
    private static func pause(_ round: Int) {
        let part = round.isMultiple(of: 4) ? round % 97 : 60 + round % 61
        let end = DispatchTime.now().uptimeNanoseconds + usual.withLock { $0 } * UInt64(part) / 97
        while DispatchTime.now().uptimeNanoseconds < end {}
    }

    private static func run(
        _ round: @Sendable (ChallengeProxy, URLSessionConfiguration, PlainOrigin, URL, Int) async throws -> Void
    ) async throws {
        // A test that waits forever ends by a signal.
        alarm(UInt32(rounds / 2))
        let body = String(repeating: "x", count: 20_000)
        let origin = try await PlainOrigin(head: "200 OK", body: body)
        try await withProxy(try LibraryHome("\(origin.site) plaintext=yes\n")) { proxy, _ in
            let configuration = try await URLSessionConfiguration.ephemeral.answering(through: proxy)
            let url = try #require(URL(string: origin.site))
            let session = URLSession(configuration: configuration)
            for number in 0..<rounds {
                if number.isMultiple(of: 20) {
                    let begin = DispatchTime.now().uptimeNanoseconds
                    _ = try await session.data(from: url)
                    let now = DispatchTime.now().uptimeNanoseconds
                    // Not longer on a busy machine.
                    usual.withLock { $0 = min(($0 + now - begin) / 2, 5_000_000) }
                }
                try await round(proxy, configuration, origin, url.appendingPathComponent("\(number)"), number)
            }
        }
        try await origin.stop()
    }

    @Test func aTaskMayBeCancelledAtAnyTime() async {
        await #expect(processExitsWith: .success) {
            let ends = Ends()
            let kept = Mutex<(answering: AnsweringSession?, plain: [Style: URLSession])>((nil, [:]))
            try await URLSessionEndTests.run { proxy, configuration, _, url, round in
                let style = Style.allCases[round % Style.allCases.count]
                if style == .awaited {
                    let session: AnsweringSession
                    if let known = kept.withLock({ $0.answering }) {
                        session = known
                    } else {
                        session = try await AnsweringSession(configuration: configuration, through: proxy)
                        kept.withLock { $0.answering = session }
                    }
                    let task = Task { _ = try? await session.data(from: url) }
                    URLSessionEndTests.pause(round)
                    task.cancel()
                    await task.value
                    return ends.add(round)
                }
                let session = kept.withLock { kept in
                    if let session = kept.plain[style] { return session }
                    let new = URLSession(
                        configuration: configuration, delegate: style == .delegate ? ends : nil, delegateQueue: nil)
                    kept.plain[style] = new
                    return new
                }
                let task =
                    style == .delegate
                    ? session.dataTask(with: url)
                    : session.dataTask(with: url) { _, _, _ in ends.add(round) }
                task.taskDescription = "\(round)"
                task.resume()
                URLSessionEndTests.pause(round)
                task.cancel()
            }
            let hasEnded = try await eventually { ends.reached(URLSessionEndTests.rounds).all }
            #expect(hasEnded)
            #expect(ends.reached(URLSessionEndTests.rounds).once)
        }
    }

    @Test func aSessionMayBeInvalidatedAtAnyTime() async {
        await #expect(processExitsWith: .success) {
            let ends = Ends()
            try await URLSessionEndTests.run { _, configuration, origin, url, round in
                let before = origin.requests.count
                let session = URLSession(
                    configuration: configuration, delegate: round.isMultiple(of: 2) ? ends : nil, delegateQueue: nil)
                let awaited = round.isMultiple(of: 2) ? nil : Task { _ = try? await session.data(from: url) }
                if round.isMultiple(of: 2) { session.dataTask(with: url).resume() }
                // Foundation ends the process if a task is made after the invalidation.
                while awaited != nil,
                    !origin.requests.dropFirst(before).contains(where: { $0.hasPrefix("GET /\(round) ") })
                {
                    await Task.yield()
                }
                URLSessionEndTests.pause(round)
                if round.isMultiple(of: 3) { session.finishTasksAndInvalidate() } else { session.invalidateAndCancel() }
                await awaited?.value
            }
        }
    }

    @Test func aSuspendedTaskGoesOn() async throws {
        // Foundation crashes if a task that has just ended is resumed.
        let isResumed = DispatchSemaphore(value: 0)
        let origin = try await PlainOrigin { _ in
            _ = isResumed.wait(timeout: .now() + 20)
            return PlainOrigin.response("200 OK", "content")
        }
        try await withProxy(try LibraryHome("\(origin.site) plaintext=yes\n")) { proxy, _ in
            let configuration = try await URLSessionConfiguration.ephemeral.answering(through: proxy)
            let session = URLSession(configuration: configuration)
            let url = try #require(URL(string: origin.site))
            for round in 0..<(ProcessInfo.processInfo.environment["COUNTERSIGN_LONG_TESTS"] == nil ? 2000 : 20_000) {
                let content: Data? = await withCheckedContinuation { continuation in
                    let task = session.dataTask(with: url) { data, _, _ in continuation.resume(returning: data) }
                    task.resume()
                    for _ in 0..<(round % 7) { sched_yield() }
                    task.suspend()
                    for _ in 0..<(round % 5) { sched_yield() }
                    task.resume()
                    isResumed.signal()
                }
                #expect(content == Data("content".utf8))
            }
        }
        try await origin.stop()
    }
}
