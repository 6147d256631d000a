// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Dispatch
import Testing

@testable import Countersign

import struct CountersignChallenges.AuthenticationError
import struct CountersignChallenges.DialogueToken

/// Tokens that a scheme computes on another thread.
@Suite(.waiting) struct LibraryTokenWaitTests {
    @Test func aTokenOfAnotherThreadIsAwaited() throws {
        let expected = DialogueToken([1], expectsReply: true)
        let token = try ChallengeExchange.wait(
            for: { computed in DispatchQueue.global().async { computed(.success(expected)) } }, atMost: .seconds(60))
        #expect(token == expected)
    }

    @Test func aTokenThatIsNeverComputedIsAnError() {
        #expect(throws: AuthenticationError(.tokenFailed, "no token was computed in time")) {
            try ChallengeExchange.wait(for: { _ in }, atMost: .milliseconds(1))
        }
    }
}
