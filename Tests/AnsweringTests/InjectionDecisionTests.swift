// SPDX-License-Identifier: Apache-2.0

import CountersignAnswering
import CountersignChallenges
import Testing

/// The credential that is added to requests.
@Suite struct InjectionDecisionTests {
    private static let line = "credential=enrollment inject="

    private static func decision(_ place: String, token: String? = nil) throws -> CredentialDecision {
        let exchange = try AnsweredExchange(line + place, token: token)
        let rule = try #require(exchange.rule)
        return exchange.policy.injectionDecision(for: rule, at: AnsweredExchange.origin)
    }

    @Test func aTokenIsInjectedAndAPasswordSigns() throws {
        let aws = "aws placeholder=countersign"
        #expect(try Self.decision(aws) == .useCredential(.password(AnsweredExchange.password)))
        #expect(
            try Self.decision("query:key={secret}", token: "t")
                == .useCredential(.token(AnsweredExchange.token("t", 1))))
        for (place, token) in [(aws, "t"), ("query:key={secret}", nil)] {
            guard case .rejectProtectionSpace(let reason) = try Self.decision(place, token: token) else {
                Issue.record("\(place) is given the credential of another kind")
                continue
            }
            #expect(reason.text.contains("\"enrollment\" is "), "\(reason.text)")
        }
    }
}
