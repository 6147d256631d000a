// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import CountersignChannelTLS
@testable import CountersignTLS

@Suite struct EventLoopGateTests {
    @Test func nothingIsScheduledAfterTheGateIsClosed() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let gate = EventLoopGate(loop)
        let calls = Atomic(0)
        gate.execute { calls.add(1, ordering: .relaxed) }
        try await loop.submit {}.get()
        #expect(calls.load(ordering: .relaxed) == 1)
        gate.close()
        gate.execute { calls.add(1, ordering: .relaxed) }
        try await loop.submit {}.get()
        #expect(calls.load(ordering: .relaxed) == 1)
    }
}
