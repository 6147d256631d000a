// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignChallenges
import CountersignSitePolicy
import CountersignTLS
import Testing

@testable import CountersignProxy

@Suite struct PolicyTests {
    private static let origin = Origin(scheme: .https, host: "a.example", port: 443)
    private static let short = TrustException(leaf: [1], until: 100, answers: true)
    private static let long = TrustException(leaf: [2], until: nil, answers: false)

    private static func policy() throws -> Policy {
        Policy(
            sites: try SiteList(files: []), enrolled: .closed(reason: "test"),
            originTLS: try TLSClientContext(
                verifier: ChainVerifier(anchors: try TrustAnchors(system: false)), now: { 0 }),
            interceptionAuthority: nil, trustExceptions: [origin: [short, long]], generation: 1)
    }

    @Test func aTrustExceptionIsForOneOriginAndLeaf() throws {
        let policy = try Self.policy()
        #expect(policy.trustException(for: Self.origin, leaf: [1], now: 0) == Self.short)
        #expect(policy.trustException(for: Self.origin, leaf: [2], now: 0) == Self.long)
        #expect(policy.trustException(for: Self.origin, leaf: [3], now: 0) == nil)
        for other in [
            Origin(scheme: .https, host: "a.example", port: 444), Origin(scheme: .http, host: "a.example", port: 443),
            Origin(scheme: .https, host: "b.a.example", port: 443), Origin(scheme: .https, host: "example", port: 443),
        ] {
            #expect(policy.trustException(for: other, leaf: [1], now: 0) == nil)
            #expect(policy.trustExceptions(for: other, now: 0).isEmpty)
        }
    }

    @Test func aTrustExceptionCountsThroughItsLastSecond() throws {
        let policy = try Self.policy()
        #expect(policy.trustException(for: Self.origin, leaf: [1], now: 100) != nil)
        #expect(policy.trustException(for: Self.origin, leaf: [1], now: 101) == nil)
        #expect(policy.trustExceptions(for: Self.origin, now: 101) == [Self.long])
    }
}
