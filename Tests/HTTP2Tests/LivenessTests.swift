// SPDX-License-Identifier: Apache-2.0

import CountersignHTTP2
import Testing

/// When a silent origin is asked, and when it is given up.
@Suite struct LivenessTests {
    var liveness = HTTP2Liveness()

    /// The actions of `count` ticks without a read.
    private mutating func silence(_ count: Int, lastRead: UInt64 = 1, _ frames: UInt64 = 1) -> [HTTP2Liveness.Action] {
        (0..<count).map { _ in liveness.tick(lastRead: lastRead, messageFrames: frames) }
    }

    @Test mutating func silentOriginIsAskedAndGivenUp() {
        liveness.begin(lastRead: 1)
        #expect(silence(3) == [.wait, .ping, .giveUp])
    }

    @Test mutating func anythingReadStartsAgain() {
        liveness.begin(lastRead: 1)
        #expect(silence(1) == [.wait])
        #expect(silence(3, lastRead: 2, 2) == [.wait, .wait, .ping])
        #expect(silence(3, lastRead: 3, 3) == [.wait, .wait, .ping])
    }

    @Test mutating func requestAfterAPauseStartsAgain() {
        liveness.begin(lastRead: 1)
        #expect(silence(2) == [.wait, .ping])
        liveness.begin(lastRead: 1)
        #expect(silence(3) == [.wait, .ping, .giveUp])
    }

    /// Servers of gRPC count PING that come within five minutes.
    @Test mutating func originThatAnswersIsAskedRarely() {
        liveness.begin(lastRead: 1)
        #expect(silence(2) == [.wait, .ping])
        let later = silence(30, lastRead: 2)
        #expect(later.firstIndex(of: .ping).map { Int64($0) * HTTP2Liveness.tickSeconds > 300 } == true)
        #expect(silence(4, lastRead: 3, 2) == [.wait, .wait, .ping, .giveUp])
    }
}
