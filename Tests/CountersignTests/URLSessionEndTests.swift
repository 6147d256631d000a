// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationNetworking
import Synchronization
import Testing

@testable import Countersign
@testable import CountersignNIO
@testable import CountersignURLSession

/// Tasks that are cancelled, and sessions that are invalidated, while they end. Each test is a process of its own,
/// because Foundation ends the process at a mistake.
@Suite(.serialized) struct URLSessionEndTests {
    /// How a task is made, and who learns of its end.
    private enum Style {
        case awaited, completion, delegate
    }

    /// Ten times as many if `COUNTERSIGN_LONG_TESTS` is set.
    private static var rounds: Int {
        ProcessInfo.processInfo.environment["COUNTERSIGN_LONG_TESTS"] == nil ? 600 : 6000
    }

    /// Counts the ends of tasks.
    private final class Ends: NSObject, URLSessionDataDelegate, Sendable {
        let count = Mutex(0)

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            count.withLock { $0 += 1 }
        }
    }

    /// How long a request takes that nobody disturbs, in nanoseconds.
    private static let usual = Mutex<UInt64>(1_000_000)

    /// Another moment of a request's life in each round, most of them near its end. The thread does not sleep, because
    /// it would wake up late.
    private static func pause(_ round: Int) {
        let part = round.isMultiple(of: 4) ? round % 97 : 60 + round % 61
        let end = DispatchTime.now().uptimeNanoseconds + usual.withLock { $0 } * UInt64(part) / 97
        while DispatchTime.now().uptimeNanoseconds < end {}
    }

    private static func run(
        _ round: @Sendable (URLSessionConfiguration, PlainOrigin, URL, Int) async throws -> Void
    ) async throws {
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
                try await round(configuration, origin, url.appendingPathComponent("\(number)"), number)
            }
        }
        try await origin.stop()
    }

    @Test func aTaskMayBeCancelledAtAnyTime() async {
        await #expect(processExitsWith: .success) {
            let ends = Ends()
            let kept = Mutex<[Style: URLSession]>([:])
            try await URLSessionEndTests.run { configuration, _, url, round in
                let style = [Style.awaited, .completion, .awaited, .delegate][round % 4]
                let session = kept.withLock { kept in
                    if let session = kept[style] { return session }
                    let new = URLSession(
                        configuration: configuration, delegate: style == .delegate ? ends : nil, delegateQueue: nil)
                    kept[style] = new
                    return new
                }
                switch style {
                case .awaited:
                    let task = Task { _ = try? await session.data(from: url) }
                    URLSessionEndTests.pause(round)
                    task.cancel()
                    await task.value
                    ends.count.withLock { $0 += 1 }
                case .completion, .delegate:
                    let task =
                        style == .delegate
                        ? session.dataTask(with: url)
                        : session.dataTask(with: url) { _, _, _ in ends.count.withLock { $0 += 1 } }
                    task.resume()
                    URLSessionEndTests.pause(round)
                    task.cancel()
                }
            }
            // Every call has returned, and nothing ends twice.
            let count = ends.count.withLock { $0 }
            #expect(count >= URLSessionEndTests.rounds / 2 && count <= URLSessionEndTests.rounds)
        }
    }

    @Test func aSessionMayBeInvalidatedAtAnyTime() async {
        await #expect(processExitsWith: .success) {
            let ends = Ends()
            try await URLSessionEndTests.run { configuration, origin, url, round in
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
        let origin = try await PlainOrigin(head: "200 OK", body: "content")
        try await withProxy(try LibraryHome("\(origin.site) plaintext=yes\n")) { proxy, _ in
            let configuration = try await URLSessionConfiguration.ephemeral.answering(through: proxy)
            let session = URLSession(configuration: configuration)
            let url = try #require(URL(string: origin.site))
            for round in 0..<50 {
                let content: Data? = await withCheckedContinuation { continuation in
                    let task = session.dataTask(with: url) { data, _, _ in continuation.resume(returning: data) }
                    task.resume()
                    for _ in 0..<(round % 7) { sched_yield() }
                    task.suspend()
                    for _ in 0..<(round % 5) { sched_yield() }
                    task.resume()
                }
                #expect(content == Data("content".utf8))
            }
        }
        try await origin.stop()
    }
}
