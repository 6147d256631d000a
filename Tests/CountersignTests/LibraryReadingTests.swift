// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import Dispatch
import Foundation
import Synchronization
import CountersignTestOrigin
import Testing

@testable import Countersign
@testable import CountersignNIO

/// Calls to a controller while its home is being read, and the files that it writes.
@Suite(.waiting) struct LibraryReadingTests {
    /// Keeps the home of `controller` being read until the end of `body`, or for half a minute.
    private static func whileReading(
        _ controller: ChallengeController,
        _ body: @Sendable (_ isReading: @escaping @Sendable () -> Bool) async throws -> Void
    ) async throws {
        let hasBegun = Mutex(false)
        let isOver = Mutex(false)
        let end = DispatchSemaphore(value: 0)
        Thread {
            controller.keeper.setAnswering {
                hasBegun.withLock { $0 = true }
                _ = end.wait(timeout: .now() + 30)
                isOver.withLock { $0 = true }
                return true
            }
        }.start()
        defer { end.signal() }
        try #require(try await eventually { hasBegun.withLock { $0 } })
        try await body { isOver.withLock { !$0 } }
    }

    private final class Count: Sendable { let value = Mutex(0) }

    /// The switch is read on event loops, which must not block.
    @Test func theSwitchCanBeReadWhileTheHomeIsBeingRead() async throws {
        let controller = try LibraryHome("https://git.corp.example\n").controller()
        let origin = try ProtectionSpace.git(.basic).origin()
        try await Self.whileReading(controller) { isReading in
            let wasRead = Mutex(false)
            Thread { controller.isIntegratedAuthenticationEnabled = false }.start()
            Thread {
                while controller.isIntegratedAuthenticationEnabled { usleep(1000) }
                if isReading() { wasRead.withLock { $0 = true } }
            }.start()
            _ = try await eventually { wasRead.withLock { $0 } || !isReading() }
            #expect(wasRead.withLock { $0 })
        }
        let isOff = try await eventually {
            if case .answer = controller.keeper.policy.current.sites.verdict(for: origin) { false } else { true }
        }
        #expect(isOff)
    }

    @Test func theLastOfManyValuesIsInEffect() async throws {
        let controller = try LibraryHome("https://git.corp.example\n").controller()
        let origin = try ProtectionSpace.git(.basic).origin()
        for _ in 0..<20 {
            await withTaskGroup(of: Void.self) { group in
                for isOn in [true, false, true, false] {
                    group.addTask { controller.isIntegratedAuthenticationEnabled = isOn }
                }
            }
            let isListed =
                if case .answer = controller.keeper.policy.current.sites.verdict(for: origin) { true } else { false }
            #expect(isListed == controller.isIntegratedAuthenticationEnabled)
        }
    }

    @Test func manyCallsBlockNoThreadWhileTheHomeIsBeingRead() async throws {
        let controller = try LibraryHome("https://git.corp.example\n").controller()
        let answers = Count()
        let count = ProcessInfo.processInfo.activeProcessorCount * 4
        try await Self.whileReading(controller) { isReading in
            for _ in 0..<count {
                Task {
                    let challenge = AuthenticationChallenge(protectionSpace: .git(.basic))
                    _ = await controller.handle(challenge)
                    controller.answerAccepted(challenge)
                    answers.value.withLock { $0 += 1 }
                }
            }
            // More calls than there are threads in the pool.
            for _ in 0..<count { await Task { await Task.yield() }.value }
            #expect(isReading())
            #expect(answers.value.withLock { $0 } == 0)
        }
        let areAnswered = try await eventually { answers.value.withLock { $0 } == count }
        #expect(areAnswered)
    }

    // MARK: Files

    @Test func anInterceptionCAIsCreatedOnlyWhileAProxyRuns() async throws {
        let home = try LibraryHome("")
        let root = Home(path: home.path).rootCertificate.path
        try await withProxy(home) { proxy, controller in
            let other = ChallengeProxy(controller)
            let running = Task { try await other.run() }
            _ = try await proxy.address
            _ = try await other.address
            running.cancel()
            try await running.value
            // One of two proxies has stopped.
            try home.write(sites: "https://git.corp.example\n")
            controller.keeper.refresh(force: true)
            #expect(FileManager.default.fileExists(atPath: root))
        }
        let second = try LibraryHome("")
        let later = Mutex<ChallengeController?>(nil)
        try await withProxy(second) { proxy, controller in
            _ = try await proxy.address
            later.withLock { $0 = controller }
        }
        let controller = try #require(later.withLock { $0 })
        try second.write(sites: "https://git.corp.example\n")
        #expect(try controller.canHandle(.git(.basic)))
        #expect(!FileManager.default.fileExists(atPath: Home(path: second.path).rootCertificate.path))
    }
}
