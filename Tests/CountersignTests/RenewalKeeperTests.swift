// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Logging
import NIOConcurrencyHelpers
import Testing

@testable import Countersign
@testable import CountersignNIO

/// The periodic check for certificates that are due.
@Suite(.waiting) struct RenewalKeeperTests {
    /// Counts the checks that a log mentions.
    private struct CheckCounter: LogHandler {
        let checks: NIOLockedValueBox<Int>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            if event.message.description == RenewalKeeper.checkMessage { checks.withLockedValue { $0 += 1 } }
        }
    }

    @Test func aProxyUsesTheCheckOfItsController() async throws {
        let home = try LibraryHome("https://git.corp.example\n")
        let checks = NIOLockedValueBox(0)
        let controller = try ChallengeController(
            home: URL(filePath: home.path), logger: Logger(label: "test") { _ in CheckCounter(checks: checks) })
        let hasChecked = try await eventually { checks.withLockedValue { $0 } == 1 }
        #expect(hasChecked)
        let proxy = ChallengeProxy(controller)
        let running = Task { try await proxy.run() }
        _ = try await proxy.address
        // A second check would begin now. Its absence can only be observed by waiting.
        let end = ContinuousClock.now + .milliseconds(500)
        while checks.withLockedValue({ $0 }) == 1, ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(checks.withLockedValue { $0 } == 1)
        running.cancel()
        try await running.value
    }
}
