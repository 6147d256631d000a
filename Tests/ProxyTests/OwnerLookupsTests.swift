// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NIOConcurrencyHelpers
import NIOPosix
import Testing

@testable import CountersignProxy

@Suite struct OwnerLookupsTests {
    /// Event loops may stop after that: no search delivers a result to one.
    @Test func theEndIsAwaitedByThoseWhoStopTheLoops() async throws {
        let lookups = OwnerLookups()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let hasEnded = NIOLockedValueBox(false)
        let gate = DispatchSemaphore(value: 0)
        let found = lookups.run(on: group.next()) {
            gate.wait()
            hasEnded.withLockedValue { $0 = true }
            return 7
        }
        Task { gate.signal() }
        await lookups.finish()
        #expect(hasEnded.withLockedValue { $0 })
        #expect(try await found.get() == 7)
        await lookups.finish()
        try await group.shutdownGracefully()
    }
}
