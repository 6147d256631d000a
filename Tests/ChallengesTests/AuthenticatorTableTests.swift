// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import Testing

@testable import CountersignChallenges

@Suite struct AuthenticatorTableTests {
    private static let every: [AuthenticationScheme] = AuthenticationScheme.allCases

    @Test(arguments: [
        ("Basic realm=\"x\", Negotiate, NTLM", every, [OfferKind.ntlm, .ntlmInNegotiate, .basic]),
        ("basic realm=x, nTLM", every, [.ntlm, .basic]),
        ("Basic realm=\"x\", Negotiate, NTLM", [.basic], [.basic]),
        ("Basic realm=\"x\", Negotiate, NTLM", [.ntlm], [.ntlm, .ntlmInNegotiate]),
        ("Basic realm=\"x\", Negotiate, NTLM", [.negotiate, .certificate, .digest, .bearer], []),
        ("Basic realm=\"x\", NTLM", [], []),
        ("NTLM, NTLM, Negotiate, Negotiate abc", every, [.ntlm, .ntlmInNegotiate]),
        ("Basic", every, [.basic]), ("Basic, Basic, NTLM, Basic oops", every, [.ntlm, .basic]),
        ("Digest realm=\"x\", Bearer, Basics realm=\"x\", XNTLM", every, []),
        ("", every, []),
    ])
    func strongestPermittedComesFirst(fields: String, permitted: [AuthenticationScheme], kinds: [OfferKind]) throws {
        let challenges = try ChallengeParser.parse(fields: [fields])
        let offers = AuthenticatorTable.ofTests.offers(in: challenges, permitted: permitted)
        #expect(offers.map { ObjectIdentifier($0.authenticator) } == kinds.map { ObjectIdentifier($0.authenticator) })
    }

    @Test func realmsOfBasicKeepTheirOrder() throws {
        let challenges = try ChallengeParser.parse(fields: ["Basic realm=b, Basic, Basic realm=a"])
        let offers = AuthenticatorTable.ofTests.offers(in: challenges, permitted: [.basic])
        #expect(offers.map(\.challenge.realm) == ["b", nil, "a"])
    }

    @Test func onlyBasicHasARealmInItsSpace() throws {
        let origin = Origin(scheme: .https, host: "wiki.corp.example", port: 443)
        let challenges = try ChallengeParser.parse(fields: ["Basic realm=b, NTLM realm=c, Negotiate"])
        #expect(
            AuthenticatorTable.ofTests.offers(in: challenges, permitted: [.ntlm, .basic]).map { $0.space(at: origin) }
                == [
                    AuthenticationSpace(origin: origin, realm: nil, scheme: .ntlm),
                    AuthenticationSpace(origin: origin, realm: nil, scheme: .ntlm),
                    AuthenticationSpace(origin: origin, realm: "b", scheme: .basic),
                ])
    }
}
