// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignAddresses
import CountersignChallenges
import Testing

@testable import Countersign

@Suite(.waiting) struct FindingSentenceTests {
    private static let key = Breaker.Key(
        space: AuthenticationSpace(
            origin: Origin(scheme: .https, host: "www.corp.example", port: 443), realm: "r", scheme: .basic),
        credential: CredentialReference(name: "printer", source: .vault(generation: 1)))

    @Test(
        arguments: [
            .paused(seconds: 1800), .rejected(.silence, everywhere: false), .rejected(.silence, everywhere: true),
        ] as [Breaker.Finding])
    func silenceNamesTheCommandThatEndsIt(_ finding: Breaker.Finding) throws {
        let sentence = try #require(finding.sentence(Self.key))
        #expect(sentence.hasSuffix("; `countersign credential retry printer` permits an attempt"))
    }

    @Test func aRejectionByAChallengeAsksForAnotherPassword() throws {
        let sentence = try #require(Breaker.Finding.rejected(.challenge, everywhere: false).sentence(Self.key))
        #expect(sentence.hasSuffix("is not sent there again until it changes"))
    }
}
